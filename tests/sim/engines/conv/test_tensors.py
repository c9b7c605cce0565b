"""A user's tensors become a layer whose sums and results are ONNX's; wrong ones are refused."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from hw.errors import InputError
from sim.engines.conv.adapter import ADAPTER
from sim.engines.conv.cases import SMALL
from sim.golden.conv.attributes import Attributes
from sim.run.adapter import UNWRITTEN
from sim.run.run import compare
from tests.support.conv.oracle import conv_integer


def layer(**changes):
    rng = np.random.default_rng(0)
    tensors = {
        "x": rng.normal(size=(6, 5, 7)),
        "w": rng.normal(size=(4, 6, 3, 3)),
        "bias": rng.normal(size=4),
        "pads": np.array([1, 1, 1, 1]),
    } | changes
    return {name: value for name, value in tensors.items() if value is not None}


def results(tensors):
    job = ADAPTER.job(tensors, SMALL)
    integers = ADAPTER.golden(job, SMALL)
    return job, integers, ADAPTER.results(job, SMALL, integers)


def onnx_deform(x, w, offset, mask, bias):
    """DeformConv-19 in float64, padded by one."""
    names = ["x", "w", "offset", "bias", "mask"]
    node = helper.make_node("DeformConv", names, ["y"], pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    inputs = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, None) for n in names]
    graph = helper.make_graph(
        [node], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    given = {"x": x[None], "w": w, "offset": offset[None], "mask": mask[None], "bias": bias}
    return session.run(None, {name: np.ascontiguousarray(given[name]) for name in names})[0][0]


def test_a_real_layer_is_quantized():
    """Within a few steps of int8 of the layer without quantization."""
    rng = np.random.default_rng(1)
    tensors = layer(offset=rng.normal(size=(18, 5, 7)), bound=np.array(3), mask=rng.random((9, 5, 7)))
    job, integers, real = results(tensors)
    offset = np.clip(tensors["offset"], -3, 3)
    wanted = onnx_deform(tensors["x"], tensors["w"], offset, tensors["mask"], tensors["bias"])
    assert np.abs(real["y_float"] - wanted).max() < 6 * job.y_scale
    assert ADAPTER.errors(job, SMALL, integers)["relative_rms"] < 0.02


def test_sums_of_a_whole_layer_are_those_of_onnx():
    """int8 in, offsets in units of 2^-F, masks of 1/256: the sums are ONNX's, times 4^F and 256."""
    rng = np.random.default_rng(2)
    x = rng.integers(-128, 128, (6, 5, 7), dtype=np.int8)
    w = rng.integers(-128, 128, (4, 6, 3, 3), dtype=np.int8)
    offset = rng.integers(-64, 65, (18, 5, 7), dtype=np.int16)
    mask = rng.integers(0, 256, (9, 5, 7), dtype=np.uint8)
    bias = rng.integers(-100, 100, 4)
    tensors = layer(x=x, w=w, offset=offset, mask=mask, bias=bias, x_zero=np.array(3))
    _, integers, _ = results(tensors)
    one = 2.0**SMALL.fraction_bits
    wanted = onnx_deform(x.astype(float) - 3, w.astype(float), offset / one, mask / 256, bias.astype(float))
    assert (integers["acc"] == wanted * one**2 * 256).all()


def test_memory_that_no_step_writes_is_compared_and_no_result():
    job, golden, real = results(layer())
    assert UNWRITTEN in golden
    assert UNWRITTEN not in real
    arenas = {f"maps{port}": content for port, content in enumerate(job.program.arenas())}
    assert np.array_equal(ADAPTER.outputs(job, SMALL, arenas)[UNWRITTEN], golden[UNWRITTEN])
    for port in arenas:
        arenas[port][0] ^= 1  # of the map that is read
        (line,) = compare(
            {UNWRITTEN: ADAPTER.outputs(job, SMALL, arenas)[UNWRITTEN]}, {UNWRITTEN: golden[UNWRITTEN]}
        )
        assert line.startswith("(unwritten memory) differs in 1 of")
        arenas[port][0] ^= 1


def test_accumulators_may_be_left_out():
    _, integers, real = results(layer(accumulators=np.array(0)))
    assert set(integers) == {"y", UNWRITTEN}
    assert set(real) == {"y", "y_float"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, "x and w, or layers by --network; x is missing"),
        ({"z": np.ones(3)}, "tensor name must be one of x, w"),
        ({"x": np.ones((2, 6, 5, 7))}, r"shape of x must be \[C, H, W\]"),
        ({"x": np.ones((6, 5, 7), np.int32)}, "type of x must be int8 or a real type"),
        ({"x": np.full((6, 5, 7), np.nan)}, "x must be finite"),
        ({"w": np.ones((4, 5, 3, 3))}, "shape of w must be of 6 / 1 input channels"),
        ({"w": np.ones((4, 6, 9, 3))}, "kernel must be from 1 to 7"),
        ({"w_scale": np.ones(4)}, "w_scale must be left out for a real w"),
        ({"x_zero": np.array(3)}, "x_zero must be left out for a real x"),
        ({"group": np.array(4)}, "group must be a divisor of 6 channels"),
        ({"strides": np.array([1, 2, 3])}, "strides must be 2 whole numbers"),
        ({"pads": np.array([1, 1, 1, 200])}, "pads must be from 0 to 127"),
        ({"mask": np.ones((9, 5, 7))}, "mask must be left out without an offset"),
        ({"offset": np.full((18, 5, 7), np.nan), "bound": np.array(2)}, "offset must be a number"),
        ({"offset": np.ones((9, 5, 7)), "bound": np.array(2)}, r"shape of offset must be \(18, 5, 7\)"),
        ({"bias": np.ones(3)}, r"shape of bias must be \(4,\)"),
        ({"y_scale": np.array(-1.0)}, "y_scale must be a number above 0"),
        ({"x": np.ones((6, 5, 7), np.uint8)}, "type of x must be int8 or a real type; of uint8 subtract 128"),
        ({"w": np.ones((4, 6, 3, 3), np.uint8)}, "type of w must be int8 or a real type; weights are symm"),
        ({"x": np.ones((2, 6, 5, 7), np.int8)}, "one map a launch, not a batch"),
        ({"x": np.ones((6, 5), np.int8)}, r"of one dimension, \[C, 1, W\]"),
        ({"offset": np.ones((18, 5, 7)), "mask": np.full((9, 5, 7), 2.0)}, "from 0 to 1; of masks up to 2"),
        ({"bias": np.full(4, 2**46)}, f"bias must be below {2**46} in units of w"),
        ({"bias": np.full(4, -(2**62))}, f"bias must be below {2**46} in units of w"),
        ({"bias": np.full(4, 2**64 - 1, np.uint64)}, f"bias must be below {2**46} in units of w"),
        ({"bias": np.full(4, 1e40)}, r"bias must be below 2\^47 units of the sums"),
        (
            {"bias": np.full(4, 2**36), "offset": np.ones((18, 5, 7)), "bound": np.array(2)},
            f"bias must be below {2**36} in units of w",
        ),
    ],
)  # fmt: skip
def test_wrong_tensors_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        ADAPTER.job(layer(**changes), SMALL)


@pytest.mark.parametrize("strip", [True, False])
@pytest.mark.parametrize(
    "changes",
    [
        {"w": (6, 1, 3, 3), "group": 6},
        {"w": (6, 1, 5, 2), "group": 6},
        {"w": (6, 1, 1, 1), "group": 6, "pads": 0},
        {"w": (6, 1, 3, 3), "group": 6, "dilations": (1, 2), "pads": 2},
        {"w": (4, 6, 3, 3)},
        {"w": (4, 6, 1, 1), "pads": 0},
    ],
    ids=lambda changes: "x".join(map(str, changes["w"])),
)
def test_sums_of_plain_layers_have_one_unit(changes, strip):
    """On every route through the engine ``acc`` is ``bias + w (x - zero)``, with a real bias
    rounded to that.
    """
    rng = np.random.default_rng(3)
    config = replace(SMALL, strip=strip)
    x = rng.integers(-128, 128, (6, 5, 7), dtype=np.int8)
    w = rng.integers(-128, 128, changes["w"], dtype=np.int8)
    others = {name: np.array(value) for name, value in changes.items() if name != "w"}
    scale = {"x_scale": np.array(0.5), "w_scale": np.array(0.25), "x_zero": np.array(-7)}
    for bias in (rng.integers(-100, 100, len(w)), rng.normal(size=len(w))):
        tensors = layer(x=x, w=w, bias=bias, **scale, **others)
        job = ADAPTER.job(tensors, config)
        integers = ADAPTER.golden(job, config)
        given = bias if bias.dtype.kind == "i" else np.rint(bias / 0.125).astype(int)
        attributes = Attributes(
            pads=(int(tensors["pads"].max()),) * 4,
            group=int(tensors.get("group", 1)),
            dilations=tuple(others.get("dilations", np.array((1, 1))).tolist()),
        )
        wanted = conv_integer(x, w, -7, attributes) + given.reshape(-1, 1, 1)
        assert (integers["acc"] == wanted).all()
        assert ADAPTER.results(job, config, integers)["acc_scale"] == 1


def test_sums_of_samples_with_fractions_say_their_scale():
    for mask, scale in ((None, 4**5), (np.ones((9, 5, 7)), 4**5 * 256)):
        _, _, real = results(layer(offset=np.ones((18, 5, 7)), bound=np.array(2), mask=mask))
        assert real["acc_scale"] == scale


def test_weights_of_four_bits_have_a_range():
    config = type(SMALL)(**{**vars(SMALL), "weight_bits": 4})
    w = np.full((4, 6, 3, 3), 8, np.int8)
    with pytest.raises(InputError, match="w must be from -7 to 7 with weights of 4 bits, not 8"):
        ADAPTER.job(layer(w=w), config)
