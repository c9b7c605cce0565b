"""ONNX models as graphs: shapes, sizes, views, constants, and every wrong file."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from hw.errors import InputError
from hw.scheduler.graph.documents import graph_to_json, read_graph
from hw.scheduler.graph.graph import TensorKind
from hw.scheduler.graph.importers import load_model
from hw.scheduler.graph.importers.onnx_model import import_onnx
from tests.hw.scheduler.graph.onnx_models import IMAGE, light, model, node, small, weights


def test_a_small_model():
    graph = import_onnx(small(), name="net", made_by="me")
    assert (graph.name, graph.made_by) == ("net", "me")
    assert [operator.kind for operator in graph.operators] == ["conv", "relu", "matmul"]
    shapes = {tensor.name: (tensor.shape, tensor.size_bytes, tensor.kind.value) for tensor in graph.tensors}
    assert shapes == {
        "x": ((1, 3, 8, 8), 192, "input"),
        "a": ((1, 4, 4, 4), 64, "activation"),
        "r": ((1, 4, 4, 4), 64, "activation"),
        "y": ((1, 10), 10, "output"),
    }
    assert [operator.macs for operator in graph.operators] == [64 * 27, 0, 640]
    assert [operator.weight_bytes for operator in graph.operators] == [4 * 27 + 4, 0, 640]
    assert graph.operators[2].inputs == ("r",), "a view is no operator and no tensor"


def test_wider_elements_and_parameters_as_tensors():
    graph = import_onnx(small(), element_bits=16, weights=True)
    assert graph.tensor["a"].size_bytes == 128
    assert (graph.tensor["w"].kind, graph.tensor["w"].size_bytes) == (TensorKind.WEIGHT, 4 * 27 * 2)
    assert graph.operators[0].inputs == ("x", "w", "b")
    assert all(operator.weight_bytes == 0 for operator in graph.operators)


def test_whole_numbers_keep_their_type():
    nodes = [node("Cast", "x", outputs=["i"], to=TensorProto.INT32), node("Cast", "i", to=TensorProto.FLOAT)]
    graph = import_onnx(model(nodes, {"x": (4, 4)}))
    assert (graph.tensor["i"].size_bytes, graph.tensor["y"].size_bytes) == (64, 16)


def test_multiply_accumulates_of_a_known_network():
    graph = load_model(str(light("resnet50")))
    # He et al. (arXiv 1512.03385, table 1) state 3.8 G without shortcuts; 4.089 G with them is usual.
    assert round(sum(operator.macs for operator in graph.operators) / 1e9, 3) == 4.089
    assert graph.name == "light_resnet50"


def test_groups_count_in_multiply_accumulates():
    content = model([node("Conv", "x", "w", group=3)], IMAGE, {"w": weights(6, 1, 3, 3)})
    assert import_onnx(content).operators[0].macs == 6 * 6 * 6 * 9


def test_constants_are_computed_and_dead_operators_dropped():
    nodes = [
        node("Shape", "x", outputs=["s"]),
        node("Gather", "s", "zero", outputs=["batch"]),
        node("Concat", "batch", "rest", outputs=["target"], axis=0),
        node("Size", "x", outputs=["count"]),
        node("Relu", "x", outputs=["r"]),
        node("Tanh", "x", outputs=["nobody"]),
        node("Reshape", "r", "target", outputs=["v"]),
        node("Softmax", "v"),
    ]
    constants = {"zero": np.array([0], np.int64), "rest": np.array([-1], np.int64)}
    graph = import_onnx(model(nodes, {"x": (2, 3, 4)}, constants))
    assert [operator.kind for operator in graph.operators] == ["relu", "softmax"]
    assert graph.tensor["y"].shape == (2, 12)


def test_a_table_counts_with_the_rows_looked_up():
    table = {"table": weights(50, 4)}
    nodes = [node("Cast", "x", outputs=["i"], to=TensorProto.INT64), node("Gather", "table", "i")]
    graph = import_onnx(model(nodes, {"x": (1, 6)}, table))
    assert graph.operators[1].weight_bytes == 6 * 4
    assert graph.operators[1].accesses["i"].output_axis == 1


def test_caches_are_told_by_their_names():
    nodes = [node("Concat", "past_key", "x", outputs=["k"], axis=1), node("Softmax", "k")]
    graph = import_onnx(model(nodes, {"past_key": (1, 7, 4), "x": (1, 1, 4)}))
    assert graph.tensor["past_key"].kind is TensorKind.CACHE
    assert graph.tensor["x"].kind is TensorKind.INPUT


def test_a_result_that_is_read_on_is_an_output():
    nodes = [node("Relu", "x", outputs=["a"]), node("Tanh", "a")]
    graph = import_onnx(model(nodes, {"x": (2, 2)}, outputs=("a", "y")))
    assert graph.tensor["a"].kind is TensorKind.OUTPUT


def test_operators_without_a_name_or_with_one_name_are_told_apart():
    nodes = [node("Relu", "x", outputs=["a"], name="n"), node("Relu", "a", outputs=["b"], name="n")]
    graph = import_onnx(model([*nodes, node("Relu", "b")], {"x": (2, 2)}))
    assert len({operator.name for operator in graph.operators}) == 3


def test_parameters_in_other_files_are_not_read():
    made = onnx.load_model_from_string(small())
    for tensor in made.graph.initializer:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="nowhere.bin")
    assert graph_to_json(import_onnx(made.SerializeToString())) == graph_to_json(import_onnx(small()))


def test_import_is_the_same_every_time_and_survives_its_json(tmp_path):
    text = graph_to_json(import_onnx(small(), name="net"))
    path = tmp_path / "net.json"
    path.write_text(text)
    assert graph_to_json(read_graph(path)) == text == graph_to_json(import_onnx(small(), name="net"))


def opened(*labels):
    """A model with two inputs of open sizes."""
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, labels[0], 4]),
        helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, labels[-1], 4]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node("Concat", "x", "z", axis=1)], "open", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]).SerializeToString()


def test_open_dimensions_are_given_by_name(tmp_path):
    path = tmp_path / "open.onnx"
    path.write_bytes(opened("tokens", "past"))
    graph = load_model(str(path), dimensions={"tokens": 3, "past": 5})
    assert graph.tensor["y"].shape == (1, 8, 4)
    assert import_onnx(opened("n", "n"), dimensions={"n": 2}).tensor["y"].shape == (1, 4, 4)


@pytest.mark.parametrize(
    ("content", "dimensions", "words"),
    [
        (opened("tokens", "past"), {"past": 5}, "dimension tokens of input 'x'.*--dim tokens=VALUE"),
        (opened("tokens", "past"), {"past": 5, "tokens": 1, "word": 2}, "word.*|past, tokens"),
        (opened(3, 4), {"n": 1}, "left out: the model leaves none open"),
        (opened(None, 4), {}, "dimension 1 of input 'x' must be given: --shape x=1,D1,4"),
        (opened("n", 4), {"n": -3}, "dimension n must be from 0 to"),
        (opened("n", 4), {"n": 1 << 70}, "dimension n must be from 0 to"),
    ],
)
def test_wrong_dimensions(content, dimensions, words):
    with pytest.raises(InputError, match=words):
        import_onnx(content, dimensions=dimensions)


def test_dimensions_are_only_for_onnx():
    with pytest.raises(InputError, match="--dim"):
        load_model("resnet18", dimensions={"n": 1})


def test_all_unsupported_operators_are_named_at_once():
    nodes = [
        node("NonZero", "x", outputs=["a"]),
        node("Relu", "x", outputs=["b"]),
        node("Fancy", "b", outputs=["c"], domain="com.example"),
        node("NonZero", "c", outputs=["d"]),
        node("LSTM", "b", "d", "a", outputs=["y"], name="cell", hidden_size=1),
    ]
    with pytest.raises(InputError) as error:
        import_onnx(model(nodes, {"x": (2, 2)}))
    named = [line.split(":")[0] for line in error.value.value.split("; ")]
    assert named == ["LSTM (node cell)", "NonZero (node a)", "com.example.Fancy (node c)"]
    assert "end the model before it" in error.value.value
    assert "export the network unrolled" in error.value.value
    assert "as ONNX's own operators" in error.value.value


def test_an_unsupported_operator_is_named_before_an_open_dimension():
    made = onnx.load_model_from_string(opened("n", "n"))
    made.graph.node[0].op_type = "NonZero"
    with pytest.raises(InputError, match="NonZero"):
        import_onnx(made.SerializeToString())


def test_what_has_no_operand_is_no_constant():
    nodes = [node("RandomNormal", outputs=["r"], shape=[2, 2]), node("Add", "x", "r")]
    with pytest.raises(InputError, match="RandomNormal"):
        import_onnx(model(nodes, {"x": (2, 2)}))


def test_the_mask_of_a_dropout_is_a_constant():
    nodes = [node("Dropout", "x", outputs=["d", "mask"]), node("Where", "mask", "d", "z")]
    graph = import_onnx(model(nodes, {"x": (2, 2), "z": (2, 2)}))
    assert [(each.kind, each.inputs) for each in graph.operators] == [("where", ("x", "z"))]
    graph = import_onnx(model([*nodes[:1], node("Relu", "d")], {"x": (2, 5)}, outputs=("y", "mask")))
    assert (graph.tensor["mask"].size_bytes, graph.tensor["mask"].kind.value) == (10, "output")
    trained = node("Dropout", "x", "", "t", outputs=["d"])
    with pytest.raises(InputError, match=r"Dropout in training \(node d\): export the network for inference"):
        import_onnx(model([trained, node("Relu", "d")], {"x": (2, 2)}, {"t": np.array(True)}))


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([node("MatMul", "x", "x")], "rows of operand B .* must be 3, the columns of operand A"),
        ([node("Reshape", "x", "s", outputs=["v"]), node("Relu", "v")], "shape of tensor"),
        ([node("Reshape", "x", "c")], "more than a view"),
        ([], "at least one operator"),
    ],
)
def test_models_without_known_shapes_or_without_work(nodes, words):
    made = onnx.load_model_from_string(model(nodes, {"x": (2, 3)}, {"c": np.array([6], np.int64)}))
    made.graph.input.append(helper.make_tensor_value_info("s", TensorProto.INT64, [1]))
    with pytest.raises(InputError, match=words):
        import_onnx(made.SerializeToString())


@pytest.mark.parametrize("content", [b"", b"\x00" * 40, b"no model", small()[:-30], small()[7:]])
def test_damaged_files(tmp_path, content):
    path = tmp_path / "damaged.onnx"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"damaged\.onnx"):
        load_model(str(path))


def test_models_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match="file that exists"):
        load_model(str(tmp_path / "none.onnx"))
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(InputError, match="file that exists"):
        load_model(str(tmp_path / "folder.onnx"))
    with pytest.raises(InputError, match="resnet18"):
        load_model("resnet19")
    with pytest.raises(InputError, match=r"\.onnx, \.pt2 or \.json"):
        load_model(str(tmp_path / "net.tflite"))
