"""Models and samples that cannot be quantized are refused before any work."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hw.errors import InputError
from hw.network.graph.onnx_reader import read_network
from hw.network.graph.quantize import quantize


def convolution(*, batch=1, kind=np.float32, after=()):
    """Return a float model of one convolution, and further operators of one operand."""
    names = [f"t{number}" for number in range(len(after) + 1)]
    nodes = [helper.make_node("Conv", ["x", "w"], names[:1], name="conv")]
    for number, op in enumerate(after):
        more = {"kernel_shape": [2, 2]} if op == "MaxPool" else {}
        nodes.append(helper.make_node(op, [names[number]], [names[number + 1]], name=op, **more))
    weights = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(kind)
    graph = helper.make_graph(
        nodes,
        "convolution",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (batch, 3, 6, 5))],
        [helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


_SAMPLES = {"x": np.random.default_rng(1).normal(size=(2, 3, 6, 5)).astype(np.float32)}


@pytest.mark.parametrize(
    ("model", "samples", "message"),
    [
        (convolution(batch=2), _SAMPLES, "batch of input 'x' must be 1"),
        (convolution(kind=np.float64), _SAMPLES, "model must be one that onnxruntime quantizes"),
        (convolution(), {"x": np.float32(1)}, "samples of the calibration"),
    ],
)
def test_what_cannot_be_quantized_is_refused(model, samples, message):
    with pytest.raises(InputError, match=message):
        quantize(model.SerializeToString(), {name: np.asarray(array) for name, array in samples.items()})


def test_parameters_may_lie_in_another_file(tmp_path):
    onnx.save(
        convolution(), tmp_path / "a.onnx", save_as_external_data=True, location="a.bin", size_threshold=0
    )
    assert quantize(tmp_path / "a.onnx", _SAMPLES) == quantize(convolution().SerializeToString(), _SAMPLES)


def test_a_pool_of_real_numbers_may_be_flattened_before_its_scale():
    model = quantize(convolution(after=("MaxPool", "Flatten")).SerializeToString(), _SAMPLES, operators=True)
    proto = onnx.load_model_from_string(model)
    scale = [each.name for each in proto.graph.initializer if each.name == "t0_scale"]
    zero = [each.name for each in proto.graph.initializer if each.name == "t0_zero_point"]
    (last,) = (each.name for each in proto.graph.output)
    proto.graph.node.append(helper.make_node("QuantizeLinear", [last, *scale, *zero], ["end"]))
    del proto.graph.output[:]
    proto.graph.output.append(helper.make_tensor_value_info("end", TensorProto.INT8, None))
    network = read_network(proto.SerializeToString())
    assert [each.kind for each in network.operators] == ["conv", "max_pool"]
