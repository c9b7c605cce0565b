"""Quantized ONNX models: sizes by element types, parameters as stored, rows as of the plain operator."""

import math

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from hw.errors import InputError
from hw.scheduler.graph.fuse import fuse_elementwise
from hw.scheduler.graph.importers.onnx_model import import_onnx
from hw.scheduler.plan_model import plan_model
from tests.hw.scheduler.graph.onnx_models import IMAGE, check_accesses, model, node, weights

SCALE, ZERO = np.float32(0.02), np.uint8(0)
SCALES = {"s": SCALE, "z": ZERO, "zi": np.int8(0), "ws": np.float32(0.02)}


def whole_weights(*shape, kind=np.int8):
    return np.random.default_rng(3).integers(1, 9, shape).astype(kind)


def quantized(nodes, inputs, constants, **options):
    """A model of whole numbers between a quantization of each input and a dequantization."""
    first = [node("QuantizeLinear", name, "s", "z", outputs=[f"{name}q"]) for name in inputs]
    last = node("DequantizeLinear", "yq", "s", "z")
    return model([*first, *nodes, last], inputs, SCALES | constants, **options)


def seen_by_the_runtime(content):
    """Bytes and shapes of all tensors as onnxruntime makes them, by name."""
    made = onnx.load_model_from_string(content)
    known = {value.name for value in made.graph.output}
    names = [name for each in made.graph.node for name in each.output if name and name not in known]
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feeds = {each.name: np.ones(each.shape, np.float32) for each in session.get_inputs()}
    results = session.run(None, feeds)
    return {each.name: value for each, value in zip(session.get_outputs(), results, strict=True)} | feeds


def check_sizes(content):
    """Compare every tensor of the graph with the runtime's: floating point counts a byte an element."""
    graph = import_onnx(content)
    seen = seen_by_the_runtime(content)
    for tensor in graph.tensors:
        value = seen[tensor.name]
        assert tensor.shape == value.shape
        width = 1 if value.dtype.kind == "f" else value.dtype.itemsize
        assert tensor.size_bytes == value.size * width, tensor
    return graph


CONVOLUTION = quantized(
    [node("QLinearConv", "xq", "s", "z", "w", "ws", "zi", "s", "z", "b", outputs=["yq"],
          strides=[2, 2], pads=[1, 1, 1, 1])],
    IMAGE,
    {"w": whole_weights(4, 3, 3, 3), "b": np.zeros(4, np.int32)},
)  # fmt: skip
PRODUCT = quantized(
    [node("QLinearMatMul", "xq", "s", "z", "w", "ws", "zi", "s", "z", outputs=["yq"])],
    {"x": (1, 6, 8)},
    {"w": whole_weights(8, 5)},
)
SUM = quantized(
    [node("QLinearAdd", "xq", "s", "z", "x2q", "s", "z", "s", "z", outputs=["yq"], domain="com.microsoft")],
    {"x": (1, 3, 8, 8), "x2": (1, 3, 8, 8)},
    {},
    runtime=True,
)


def test_a_convolution():
    graph = check_sizes(CONVOLUTION)
    operator = graph.operators[1]
    assert (operator.kind, operator.macs) == ("conv", 4 * 4 * 4 * 27)
    assert operator.weight_bytes == 4 * 27 + 4 * 4, (
        "weights of 8 bits, biases of 32; no scales, no zero points"
    )
    check_accesses(CONVOLUTION, exact=["x"], fused=True)


def test_a_product():
    graph = check_sizes(PRODUCT)
    assert (graph.operators[1].kind, graph.operators[1].macs) == ("matmul", 6 * 8 * 5)
    assert graph.operators[1].weight_bytes == 40
    check_accesses(PRODUCT, exact=["x"], fused=True)


def test_a_product_of_two_activations():
    content = quantized(
        [node("QLinearMatMul", "xq", "s", "z", "kq", "s", "z", "s", "z", outputs=["yq"])],
        {"x": (1, 2, 6, 8), "k": (1, 2, 8, 6)},
        {},
    )
    check_sizes(content)
    check_accesses(content, exact=["x"], whole=["k"], fused=True)


RUNTIME = {
    "QLinearMul": (("xq", "s", "z", "x2q", "s", "z", "s", "z"), {}, ["x", "x2"]),
    "QLinearAdd": (("xq", "s", "z", "x2q", "s", "z", "s", "z"), {}, ["x", "x2"]),
    "QLinearLeakyRelu": (("xq", "s", "z", "s", "z"), {"alpha": 0.1}, ["x"]),
    "QLinearSigmoid": (("xq", "s", "z", "s", "z"), {}, ["x"]),
    "QLinearAveragePool": (
        ("xq", "s", "z", "s", "z"), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}, ["x"]
    ),
    "QLinearConcat": (("s", "z", "xq", "s", "z", "x2q", "s", "z"), {"axis": 2}, []),
    "QLinearGlobalAveragePool": (("xq", "s", "z", "s", "z"), {}, []),
    "QLinearSoftmax": (("xq", "s", "z", "s", "z"), {"axis": -1, "opset": 13}, ["x"]),
}  # fmt: skip


@pytest.mark.parametrize("op", RUNTIME)
def test_operators_of_the_runtime(op):
    operands, attributes, exact = RUNTIME[op]
    inputs = {name: (1, 3, 8, 8) for name in ("x", "x2") if f"{name}q" in operands}
    made = node(op, *operands, outputs=["yq"], domain="com.microsoft", **attributes)
    content = quantized([made], inputs, {}, runtime=True)
    check_sizes(content)
    check_accesses(content, exact=exact, fused=True)


def test_a_dense_layer_of_the_runtime():
    constants = {"w": whole_weights(8, 5), "b": np.zeros(5, np.int32)}
    made = node(
        "QGemm", "xq", "s", "z", "w", "ws", "zi", "b", "s", "z", outputs=["yq"], domain="com.microsoft"
    )
    content = quantized([made], {"x": (6, 8)}, constants, runtime=True)
    graph = check_sizes(content)
    assert graph.operators[1].weight_bytes == 40 + 20
    assert graph.operators[1].macs == 6 * 40
    check_accesses(content, exact=["x"], fused=True)


@pytest.mark.parametrize(
    ("op", "constant", "results", "macs"),
    [
        ("MatMulInteger", whole_weights(8, 5), 8 * 3 * 8 * 5 * 4, 3 * 8 * 8 * 5),
        ("ConvInteger", whole_weights(4, 3, 3, 3), 4 * 6 * 6 * 4, 4 * 36 * 27),
    ],
)
def test_whole_numbers_of_32_bits(op, constant, results, macs):
    """A dynamically quantized operand: its scale and zero point depend on all of it."""
    nodes = [
        node("DynamicQuantizeLinear", "x", outputs=["xq", "xs", "xz"]),
        node(op, "xq", "w", "xz", outputs=["a"]),
        node("Cast", "a", outputs=["f"], to=TensorProto.FLOAT),
        node("Mul", "f", "xs"),
    ]
    content = model(nodes, IMAGE, {"w": constant})
    graph = check_sizes(content)
    quantize, product, *_ = graph.operators
    assert quantize.accesses == {}
    assert product.inputs == ("xq", "xz")
    assert (product.macs, product.weight_bytes) == (macs, constant.size)
    assert graph.tensor["a"].element_bits == 32
    assert graph.tensor["a"].size_bytes == 4 * math.prod(graph.tensor["a"].shape)
    assert results % 4 == 0


def test_casting_as_another_tensor_reads_only_the_first():
    graph = import_onnx(model([node("CastLike", "x", "x2")], {"x": (2, 3), "x2": (4,)}))
    assert graph.operators[0].inputs == ("x",)
    assert graph.operators[0].kind == "cast"
    nodes = [node("Relu", "x2", outputs=["r"]), node("CastLike", "x", "r")]
    assert [each.kind for each in import_onnx(model(nodes, {"x": (2, 3), "x2": (4,)})).operators] == ["cast"]


def test_weights_of_four_bits():
    packed = helper.make_tensor("w", TensorProto.INT4, [8, 6], np.zeros(24, np.uint8).tobytes(), raw=True)
    made = onnx.load_model_from_string(
        model([node("DequantizeLinear", "w", "ws", outputs=["wf"]), node("MatMul", "x", "wf")],
              {"x": (1, 4, 8)}, {"ws": np.float32(1)}, opset=21)
    )  # fmt: skip
    made.graph.initializer.append(packed)
    graph = import_onnx(made.SerializeToString())
    assert graph.operators[0].weight_bytes == 24


def test_images_with_channels_last_are_refused():
    made = node(
        "QLinearGlobalAveragePool", "xq", "s", "z", "s", "z", outputs=["yq"], domain="com.microsoft",
        channels_last=1,
    )  # fmt: skip
    with pytest.raises(InputError, match=r"channels last \(node yq\)"):
        import_onnx(quantized([made], IMAGE, {}, runtime=True))


def network():
    """Convolutions with a shortcut, a global average and a dense layer."""
    same = {"pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
    nodes = [
        node("Conv", "x", "w1", "b1", outputs=["a"], name="c1", **same),
        node("Relu", "a", outputs=["r"], name="r1"),
        node("Conv", "r", "w2", "b2", outputs=["c"], name="c2", **same),
        node("Add", "c", "r", outputs=["d"], name="add"),
        node("Relu", "d", outputs=["e"], name="r2"),
        node("GlobalAveragePool", "e", outputs=["p"], name="pool"),
        node("Flatten", "p", outputs=["f"], name="flat"),
        node("Gemm", "f", "m", "bm", name="dense"),
    ]
    constants = {
        "w1": weights(8, 3, 3, 3), "b1": weights(8), "w2": weights(8, 8, 3, 3), "b2": weights(8),
        "m": weights(8, 10), "bm": weights(10),
    }  # fmt: skip
    return model(nodes, {"x": (1, 3, 16, 16)}, constants, opset=17)


class Images(CalibrationDataReader):
    def __init__(self):
        self.left = [
            {"x": np.random.default_rng(n).normal(size=(1, 3, 16, 16)).astype("f")} for n in range(2)
        ]

    def get_next(self):
        return self.left.pop() if self.left else None


@pytest.fixture(scope="module")
def formats(tmp_path_factory):
    """The network, and the same quantized by onnxruntime."""
    folder = tmp_path_factory.mktemp("quantized")
    (folder / "plain.onnx").write_bytes(network())
    for name in ("QDQ", "QOperator"):
        quantize_static(
            folder / "plain.onnx", folder / f"{name}.onnx", Images(), quant_format=QuantFormat[name],
            weight_type=QuantType.QInt8,
        )  # fmt: skip
    quantize_dynamic(folder / "plain.onnx", folder / "dynamic.onnx", weight_type=QuantType.QUInt8)
    return {path.stem: path.read_bytes() for path in folder.glob("*.onnx")}


def activations(graph):
    return sorted(tensor.size_bytes for tensor in graph.tensors if tensor.shape)


@pytest.mark.parametrize("name", ["QDQ", "QOperator"])
def test_a_network_that_the_runtime_quantized(formats, name):
    check_sizes(formats[name])
    plain, found = (fuse_elementwise(import_onnx(formats[each])) for each in ("plain", name))
    # In the one format a view stands between two quantizations, so that they stay an operator.
    kept = [each for each in found.operators if each.kind != "quantize_linear"]
    more = [found.tensor[each.outputs[0]].size_bytes for each in found.operators if each not in kept]
    assert more == ([8] if name == "QDQ" else [])
    assert [(each.kind, each.macs) for each in kept] == [(each.kind, each.macs) for each in plain.operators]
    assert activations(found) == sorted(activations(plain) + more)
    parameters = (8 * 27 + 8 * 72 + 80) + 4 * (8 + 8 + 10)
    assert sum(each.weight_bytes for each in found.operators) == parameters
    for one, other in zip(kept, plain.operators, strict=True):
        assert list(one.accesses.values()) == list(other.accesses.values())


def test_a_network_that_the_runtime_quantizes_as_it_runs(formats):
    graph = check_sizes(formats["dynamic"])
    plain = import_onnx(formats["plain"])
    kinds = [each.kind for each in graph.operators]
    assert kinds.count("conv") == 2
    assert kinds.count("dynamic_quantize_linear") >= 2
    assert sum(each.macs for each in graph.operators) == sum(each.macs for each in plain.operators)


def test_quantized_networks_are_planned_alike(formats):
    totals = [
        plan_model(fuse_elementwise(import_onnx(formats[name])), "4KiB", tiling="never").totals
        for name in ("QDQ", "QOperator")
    ]
    assert totals[0].offchip_read_bytes == totals[1].offchip_read_bytes
    assert totals[0].avoidable_bytes == totals[1].avoidable_bytes
    assert totals[0].parameter_bytes == totals[1].parameter_bytes
