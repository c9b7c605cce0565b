"""Open dimensions, external parameters and copied outputs of a model: reported, read, counted or named."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hw.errors import InputError
from hw.scheduler.graph.importers import load_model
from hw.scheduler.graph.importers.onnx_model import import_onnx
from tests.hw.scheduler.graph.onnx_models import model, node, small, weights


def opened(nodes, inputs, constants=None, outputs=("y",)):
    """A model whose inputs have names, None or numbers as extents."""
    made = onnx.load_model_from_string(model(nodes, dict.fromkeys(inputs, ()), constants, outputs=outputs))
    for value in made.graph.input:
        value.CopyFrom(helper.make_tensor_value_info(value.name, TensorProto.FLOAT, inputs[value.name]))
    return made.SerializeToString()


def changed(content, change):
    made = onnx.load_model_from_string(content)
    change(made)
    return made.SerializeToString()


def refused(content, **options):
    with pytest.raises(InputError) as caught:
        import_onnx(content, **options)
    return str(caught.value)


def shapes(content, **options):
    return {tensor.name: tensor.shape for tensor in import_onnx(content, **options).tensors}


SUM = [node("Add", "x", "z")]


def test_all_that_is_read_and_open_is_asked_for_at_once():
    content = opened(
        [node("Relu", "x", outputs=["a"]), node("Add", "a", "z"), node("Tanh", "u", outputs=["unread"])],
        {"x": ["n", 4], "z": [None, "m"], "u": ["k"], "w": [7]},
    )
    asked = "dimension n of input 'x', dimension 0 of input 'z', dimension m of input 'z'"
    assert refused(content) == f"{asked} must be given: --dim n=VALUE --shape z=D0,D1, not 'open'"
    found = shapes(content, dimensions={"n": 3}, shapes={"z": [3, 4]})
    assert found == {"x": (3, 4), "a": (3, 4), "z": (3, 4), "y": (3, 4)}


def test_a_shape_gives_dimensions_of_one_name_their_own_values():
    content = opened(SUM, {"x": ["d", "d"], "z": [1, "d"]})
    assert shapes(content, shapes={"x": (2, 5), "z": (1, 5)})["y"] == (2, 5)
    assert shapes(content, shapes={"x": (5, 5)})["z"] == (1, 5), "the name has one value there"
    assert "dimension d of input 'z'" in refused(content, shapes={"x": (2, 5)})
    assert shapes(content, shapes={"x": (2, 5)}, dimensions={"d": 5})["y"] == (2, 5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"q": (1, 2)}, "input of a shape must be one of x, z, not 'q'"),
        ({"x": (1, 2, 3)}, "shape of input 'x' must be D0,4, as the model has it, not '1,2,3'"),
        ({"x": (2, 5)}, "shape of input 'x' must be D0,4, as the model has it, not '2,5'"),
        ({"x": (-1, 4)}, "dimension 0 of the shape given for x must be from 0 to 4294967295, not -1"),
    ],
)
def test_shapes_that_cannot_be_given(given, message):
    assert refused(opened(SUM, {"x": ["n", 4], "z": ["n", 4]}), shapes=given) == message


def test_shapes_are_only_for_onnx():
    with pytest.raises(InputError, match="--shape must be left out"):
        load_model("resnet18", shapes={"x": (1,)})


def test_a_sequence_that_is_read_is_named():
    content = changed(
        model(SUM, {"x": (2, 2), "z": (2, 2)}),
        lambda made: made.graph.input[1].type.CopyFrom(
            helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
        ),
    )
    assert refused(content) == "model: type of input 'z' must be a tensor, not 'sequence'"
    unread = changed(content, lambda made: made.graph.node[0].input.__setitem__(1, "x"))
    assert shapes(unread) == {"x": (2, 2), "y": (2, 2)}


def test_a_past_of_no_length():
    nodes = [
        node("Concat", "past_key", "x", outputs=["k"], axis=1),
        node("Transpose", "k", outputs=["t"], perm=[0, 2, 1]),
        node("MatMul", "x", "t", outputs=["s"]),
        node("ReduceSum", "past_key", "axes", outputs=["nothing"], keepdims=1),
        node("Add", "s", "nothing"),
    ]
    content = opened(
        nodes, {"past_key": [1, "past", 4], "x": [1, 3, 4]}, {"axes": np.array([1, 2])}, outputs=("y", "k")
    )
    graph = import_onnx(content, dimensions={"past": 0})
    assert "past_key" not in graph.tensor
    assert graph.tensor["k"].shape == (1, 3, 4)
    assert [(each.kind, each.inputs) for each in graph.operators] == [
        ("concat", ("x",)), ("transpose", ("k",)), ("matmul", ("x", "t")), ("reduce_sum", ()),
        ("add", ("s", "nothing")),
    ]  # fmt: skip
    assert graph.operators[2].macs == 3 * 3 * 4
    assert import_onnx(content, dimensions={"past": 2}).operators[2].macs == 3 * 5 * 4


def test_what_makes_no_element_is_no_operator():
    text = refused(opened([node("Relu", "x")], {"x": ["n", 4]}), dimensions={"n": 0})
    assert "one with an operator that is more than a view" in text


def test_outputs_that_no_operator_makes_are_written():
    nodes = [
        node("Relu", "x"),
        node("Reshape", "x", "flat", outputs=["v"]),
        node("Shape", "x", outputs=["extents"]),
        node("Constant", outputs=["c"], value=numpy_helper.from_array(weights(3))),
    ]
    outputs = ("y", "x", "v", "w", "extents", "c")
    content = model(nodes, {"x": (2, 6)}, {"flat": np.array([12]), "w": weights(5)}, outputs=outputs)
    graph = import_onnx(content)
    assert [(each.kind, each.inputs, each.outputs, each.weight_bytes) for each in graph.operators] == [
        ("relu", ("x",), ("y",), 0),
        ("identity", ("x",), ("x:output",), 0),
        ("constant", (), ("w",), 5),
        ("constant", (), ("extents",), 16),
        ("constant", (), ("c",), 3),
    ]
    assert all(graph.tensor[each.outputs[0]].kind.value == "output" for each in graph.operators)
    alone = import_onnx(model(nodes[:2], {"x": (2, 6)}, {"flat": np.array([12])}, outputs=("y", "v")))
    assert (alone.tensor["v"].shape, alone.operators[1].inputs) == ((12,), ("x",))


def test_an_output_of_text_is_left_out_with_a_word():
    content = changed(
        model(
            [node("Relu", "x"), node("Identity", "s", outputs=["t"])],
            {"x": (2,), "s": (2,)},
            outputs=("y", "t"),
        ),
        lambda made: setattr(made.graph.input[1].type.tensor_type, "elem_type", TensorProto.STRING),
    )
    words = []
    assert set(import_onnx(content, say=words.append).tensor) == {"x", "y"}
    assert words == ["model: output 't' is text, whose bytes are not known: left out"]


def test_an_output_that_is_not_there():
    content = changed(small(), lambda made: made.graph.output.add(name="lost"))
    assert "output of the model must be made by an operator, an input or a parameter, not 'lost'" in refused(
        content
    )


def test_two_names_of_the_own_domain():
    content = changed(small(), lambda made: setattr(made.graph.node[0], "domain", "ai.onnx"))
    assert import_onnx(content) == import_onnx(small())
    content = changed(content, lambda made: setattr(made.opset_import[0], "domain", "ai.onnx"))
    assert import_onnx(content) == import_onnx(small())


def test_a_model_without_a_set_of_operators():
    text = refused(changed(small(), lambda made: made.ClearField("opset_import")))
    assert (
        "operator set of operator 'conv' (Conv) must be named, with its version: the model names no" in text
    )


def sparse(made, *, indices):
    dense = numpy_helper.to_array(made.graph.initializer[1]).copy()
    del made.graph.initializer[1]
    values = numpy_helper.from_array(dense[:2], "b")
    made.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(indices)), [4])
    )


def test_sparse_parameters():
    content = changed(small(), lambda made: sparse(made, indices=[0, 3]))
    assert import_onnx(content) == import_onnx(small())
    assert import_onnx(changed(small(), lambda made: sparse(made, indices=[[1], [2]]))) == import_onnx(
        small()
    )
    text = refused(changed(small(), lambda made: sparse(made, indices=[0, 4])))
    assert "indices of sparse parameter 'b' must be one for each of 2 values, within shape (4,)" in text


def test_small_parameters_in_other_files(tmp_path):
    nodes = [node("Reshape", "x", "s", outputs=["v"]), node("Softmax", "v")]
    made = onnx.load_model_from_string(model(nodes, {"x": (2, 6)}, {"s": np.array([3, -1])}))
    path = tmp_path / "net.onnx"
    onnx.save_model(made, path, save_as_external_data=True, location="net.bin", size_threshold=0)
    assert load_model(str(path)).tensor["y"].shape == (3, 4)
    (tmp_path / "net.bin").write_bytes(b"1234567")
    with pytest.raises(
        InputError, match=r"stored values of parameter 's' must be 2, .*not '7 bytes in net\.bin'"
    ):
        load_model(str(path))
    (tmp_path / "net.bin").unlink()
    with pytest.raises(InputError, match="shape of tensor"):
        load_model(str(path))


def test_a_pointer_of_large_file_storage(tmp_path):
    path = tmp_path / "net.onnx"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n")
    with pytest.raises(InputError, match="this is Git LFS' pointer to one: fetch it by `git lfs pull`"):
        load_model(str(path))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("com.microsoft.GatherBlockQuantized", "no fusion made it: import the network as it was before"),
        ("com.microsoft.CDist", "no fusion made it: export the network with ONNX's own operators"),
        ("com.microsoft.QAttention", "export without onnxruntime's fusions"),
        ("qonnx.custom_op.general.Quant", "QuantizeLinear and DequantizeLinear (QCDQ) instead of QONNX"),
        ("onnx.brevitas.Quant", "QuantizeLinear and DequantizeLinear (QCDQ) instead of QONNX"),
        ("com.example.Thing", "export it as ONNX's own operators"),
    ],
)
@pytest.mark.parametrize("operand", ["x", "w"])
def test_operators_of_others_are_named_on_activations_and_on_weights(name, words, operand):
    domain, _, op = name.rpartition(".")
    nodes = [node(op, operand, outputs=["q"], domain=domain), node("Add", "x", "q")]
    content = model(nodes, {"x": (2, 2)}, {"w": weights(2, 2)}, runtime=True)
    assert f"{name} (node q): " in refused(content)
    assert words in refused(content)


PACKED = {TensorProto.INT2: 2, TensorProto.UINT2: 2, TensorProto.INT4: 4, TensorProto.UINT4: 4,
          TensorProto.FLOAT4E2M1: 4, TensorProto.INT8: 8, TensorProto.FLOAT8E4M3FN: 8}  # fmt: skip


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("way", ["DequantizeLinear", "Cast"])
def test_weights_count_as_they_are_stored(kind, way):
    bits, size = PACKED[kind], 64 * 32
    packed = TensorProto(name="w", data_type=kind, dims=[2, 32, 32], raw_data=bytes(size * bits // 8))
    if way == "Cast":
        nodes = [
            node("Cast", "w", outputs=["c"], to=TensorProto.FLOAT),
            node("Sub", "c", "z", outputs=["d"]),
            node("Mul", "s", "d", outputs=["m"]),
        ]
    else:
        nodes = [node("DequantizeLinear", "w", "s", outputs=["m"], axis=1, block_size=32)]
    nodes += [node("Reshape", "m", "flat", outputs=["f"]), node("MatMul", "x", "f")]
    constants = {"s": weights(2, 1, 32), "z": weights(2, 1, 1), "flat": np.array([64, 32])}
    made = onnx.load_model_from_string(model(nodes, {"x": (4, 64)}, constants, opset=25))
    made.graph.initializer.append(packed)
    (operator,) = import_onnx(made.SerializeToString(), element_bits=16).operators
    assert operator.weight_bytes == size * bits // 8


def test_activations_of_two_bits():
    packed = TensorProto(name="z", data_type=TensorProto.UINT2, dims=[], raw_data=bytes(1))
    nodes = [node("QuantizeLinear", "x", "s", "z", outputs=["q"]), node("DequantizeLinear", "q", "s", "z")]
    made = onnx.load_model_from_string(model(nodes, {"x": (3, 3)}, {"s": np.float32(1)}, opset=25))
    made.graph.initializer.append(packed)
    assert import_onnx(made.SerializeToString()).tensor["q"].size_bytes == 3
