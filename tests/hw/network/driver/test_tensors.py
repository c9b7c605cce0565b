"""The user's arrays and stored elements: as onnxruntime quantizes them, in the model's own shapes."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from hw.errors import InputError
from hw.network.driver.tensors import real_outputs, stored_inputs
from hw.network.graph.network import Network, Value
from hw.network.graph.onnx_reader import read_network
from hw.network.graph.transformer.network import network_of
from sim.golden.network import execute
from tests.support.networks.sentences import ROWS, small

IMAGE, ROW = (1, 5, 4, 3), (1, 7)


def parameter(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def model_of_views(kind):
    """Return a model that quantizes an image, reads integers, and has views of both as outputs."""
    whole = TensorProto.UINT8 if kind is np.uint8 else TensorProto.INT8
    nodes = [
        helper.make_node("Transpose", ["image"], ["moved"], perm=[0, 3, 1, 2]),
        helper.make_node("QuantizeLinear", ["moved", "scale", "zero"], ["integers"]),
        helper.make_node("DequantizeLinear", ["integers", "scale", "zero"], ["reals"]),
        helper.make_node("Transpose", ["reals"], ["back"], perm=[0, 2, 3, 1]),
        helper.make_node("Flatten", ["reals"], ["flat"]),
        helper.make_node("Flatten", ["back"], ["flat_back"]),
        helper.make_node("DequantizeLinear", ["row", "scale", "zero"], ["row_reals"]),
        helper.make_node("DequantizeLinear", ["row", "scale", "zero"], ["row_again"]),
    ]
    outputs = [
        *(helper.make_tensor_value_info(name, whole, shape) for name, shape in [("integers", [1, 3, 5, 4])]),
        *(
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in [
                ("reals", [1, 3, 5, 4]), ("back", IMAGE), ("flat", [1, 60]), ("flat_back", [1, 60]),
                ("row_reals", ROW), ("row_again", ROW),
            ]
        ),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "views",
        [
            helper.make_tensor_value_info("image", TensorProto.FLOAT, IMAGE),
            helper.make_tensor_value_info("row", whole, ROW),
        ],
        outputs,
        [parameter("scale", np.float32(0.03)), parameter("zero", kind(5))],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def drawn(kind):
    rng = np.random.default_rng(0)
    row = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, ROW).astype(kind)
    return {"image": (rng.normal(size=IMAGE) * 3).astype(np.float32), "row": row}


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_views_are_onnxruntimes(kind):
    model, inputs = model_of_views(kind), drawn(kind)
    network = read_network(model)
    assert len(network.inputs) == 2
    stored = stored_inputs(network, inputs)
    assert {name: array.shape for name, array in stored.items()} == {"integers": (5, 4, 3), "row": (1, 1, 7)}
    found = real_outputs(network, stored)
    session = onnxruntime.InferenceSession(model)
    names = [each.name for each in session.get_outputs()]
    for name, wanted in zip(names, session.run(names, inputs), strict=True):
        assert found[name].dtype == wanted.dtype
        assert found[name].shape == wanted.shape
        assert (found[name] == wanted).all(), name


def test_the_batch_may_be_left_out_and_doubles_are_rounded():
    network, inputs = read_network(model_of_views(np.int8)), drawn(np.int8)
    bare = {
        name: array[0].astype(np.float64 if name == "image" else array.dtype)
        for name, array in inputs.items()
    }
    wanted, found = stored_inputs(network, inputs), stored_inputs(network, bare)
    assert all((found[name] == wanted[name]).all() for name in wanted)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("imagge", lambda array: array, "input must be an input of the model: image, row, .*'image'"),
        ("image", lambda array: array[:, :4], r"shape of input 'image' must be \(1, 5, 4, 3\)"),
        ("image", lambda array: np.repeat(array, 2, 0), "shape of input 'image'"),
        ("image", lambda array: array.astype(np.uint8), "of input 'image' must be float32, not 'uint8'"),
        ("image", lambda array: np.where(array > 2, np.nan, array), "NaN or infinity"),
        ("image", lambda array: np.where(array > 2, np.float64(1e300), array), "NaN or infinity"),
        ("row", lambda array: array.astype(np.int16), "element type of input 'row' must be int8"),
        ("row", lambda array: array.view(np.uint8), "element type of input 'row' must be int8"),
    ],
)  # fmt: skip
def test_arrays_that_are_not_the_models_are_refused(name, change, message):
    inputs = drawn(np.int8)
    arrays = inputs | {name: change(inputs.get(name, inputs["image"]))}
    with pytest.raises(InputError, match=message):
        stored_inputs(read_network(model_of_views(np.int8)), arrays)


def test_a_missing_input_is_refused():
    inputs = drawn(np.int8)
    del inputs["row"]
    with pytest.raises(InputError, match=r"input 'row' must be an array of shape \(1, 7\), not 'missing'"):
        stored_inputs(read_network(model_of_views(np.int8)), inputs)


def test_a_network_without_a_model_takes_and_gives_images():
    values = {"x": Value(name="x", shape=(2, 3, 4), scale=0.5, zero=-1)}
    network = Network(name="x", values=values, operators=(), inputs=("x",), outputs=("x",), constants={})
    array = np.arange(24).reshape(1, 2, 3, 4) / 2
    stored = stored_inputs(network, {"x": array})
    assert (stored["x"] == np.arange(24).reshape(2, 3, 4) - 1).all()
    assert (real_outputs(network, stored)["x"] == array).all()


def test_numbers_of_tokens_go_in_and_real_vectors_come_out():
    network = network_of(small("gelu"), (3, 2))
    ids = np.array([[1, 2, 3, 4, ROWS - 1]])
    (stored,) = stored_inputs(network, {"input_ids": ids}).values()
    assert stored.dtype == np.int32
    assert (stored == ids.reshape(1, 5, 1)).all()
    values = execute(network, {"input_ids": stored})
    found = real_outputs(network, values)["sentence"]
    value = network.values[network.outputs[0]]
    assert (found == values[value.name] * np.float32(value.scale)).all()
    assert found.shape == (1, 2, 64)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (np.array([[0, 1, 2, 3, ROWS]]), "number in input 'input_ids' must be from 0 to 49, not 50"),
        (np.array([[0, 1, 2, 3, -1]]), "not -1"),
        (np.zeros((1, 5), np.float32), "element type of input 'input_ids' must be int64"),
        (np.zeros((1, 4), np.int64), "shape of input 'input_ids'"),
    ],
)
def test_numbers_that_are_no_tokens_are_refused(ids, message):
    with pytest.raises(InputError, match=message):
        stored_inputs(network_of(small("gelu"), (3, 2)), {"input_ids": ids})
