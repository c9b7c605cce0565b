"""Float transformers in the forms of exporters become blocks with the same results."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from hw.errors import InputError
from hw.network.graph.onnx_reader import read_network
from hw.network.graph.transformer.blocks import pooled
from hw.network.graph.transformer.ranges import Runner
from hw.network.graph.transformer.reader import read_blocks
from tests.support.networks.sentences import float_results, model, sentences

_TOKENS = 24


@pytest.mark.parametrize(
    "forms",
    [
        (),
        ("norm", "heads", "mask", "int8"),
        ("gelu", "causal", "mask", "split", "before"),
        ("tanh", "gemm", "norm", "before"),
        ("attention", "gelu", "causal"),
        ("attention", "tanh", "int8", "split"),
    ],
)
def test_blocks_compute_what_onnxruntime_does(forms):
    source = model(*forms, layers=2)
    blocks, runner = read_blocks(source, tokens=_TOKENS), Runner(source, [])
    for ids in sentences(3):
        wanted = runner.run(ids, ["tokens"])["tokens"]
        assert np.abs(float_results(blocks, ids) - wanted).max() < 1e-4 * np.abs(wanted).max()
    attention = [block for block in blocks.blocks if type(block).__name__ == "Attention"]
    assert [block.causal for block in attention] == ["causal" in forms] * 2


@pytest.mark.parametrize("optimized", [False, True])
def test_a_dynamically_quantized_model_is_read_with_its_weights(tmp_path, optimized):
    """Both have the same weights; its activations are rounded."""
    from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions
    from onnxruntime.quantization import quantize_dynamic

    (tmp_path / "float.onnx").write_bytes(model("gelu"))
    quantize_dynamic(tmp_path / "float.onnx", tmp_path / "made.onnx", per_channel=True)
    if optimized:
        options = SessionOptions()
        options.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.optimized_model_filepath = str(tmp_path / "made.onnx")
        InferenceSession(tmp_path / "made.onnx", options, disabled_optimizers=["SkipLayerNormFusion"])
    source = (tmp_path / "made.onnx").read_bytes()
    ops = {node.op_type for node in onnx.load_model_from_string(source).graph.node}
    wanted = (
        {"MatMulIntegerToFloat", "DynamicQuantizeMatMul", "FusedMatMul"} if optimized else {"MatMulInteger"}
    )
    assert wanted <= ops
    blocks, runner = read_blocks(source, tokens=_TOKENS), Runner(source, [])
    for ids in sentences(2):
        wanted, found = runner.run(ids, ["tokens"])["tokens"], float_results(blocks, ids)
        cosines = (
            (wanted * found).sum(axis=1) / np.linalg.norm(wanted, axis=1) / np.linalg.norm(found, axis=1)
        )
        assert 0.999 < cosines.min() < 1


def test_the_mean_of_tokens_is_read_and_made():
    proto = onnx.load_model_from_string(model("gelu"))
    proto.graph.initializer.append(numpy_helper.from_array(np.array([1]), "axes"))
    proto.graph.node.append(helper.make_node("ReduceMean", ["tokens", "axes"], ["means"], keepdims=0))
    proto.graph.node.append(helper.make_node("Concat", ["means"], ["mean"], axis=1))
    proto.graph.output[0].name = "mean"
    del proto.graph.output[0].type.tensor_type.shape.dim[:]
    read = read_blocks(proto.SerializeToString(), tokens=_TOKENS)
    made = pooled(read_blocks(model("gelu"), tokens=_TOKENS))
    (ids,) = sentences(1)
    assert (float_results(read, ids) == float_results(made, ids)).all()
    assert list(made.outputs) == ["sentence"]


def _with(op, *inputs, **attributes):
    """Return a model with an operator at its end."""
    proto = onnx.load_model_from_string(model())
    names = [each if isinstance(each, str) else f"extra{place}" for place, each in enumerate(inputs)]
    for name, each in zip(names, inputs, strict=True):
        if not isinstance(each, str):
            proto.graph.initializer.append(numpy_helper.from_array(np.asarray(each), name))
    proto.graph.node.append(helper.make_node(op, names, ["last"], name="extra", **attributes))
    proto.graph.output[0].name = "last"
    proto.graph.output[0].type.Clear()
    proto.graph.output[0].type.tensor_type.elem_type = 1
    return proto.SerializeToString()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (_with("Softmax", "tokens"), r"extra \(Softmax: of anything but the scores of attention"),
        (_with("MatMul", "tokens", np.zeros((1, 64, 3), np.float32)), r"extra \(MatMul: weights of shape"),
        (_with("ReduceMean", "tokens"), r"extra \(ReduceMean: over other dimensions than the channels"),
        (_with("Pow", "tokens", np.ones(64, np.float32) * np.arange(64)), r"extra \(Pow: of operands tokens"),
        (
            _with("Transpose", "tokens", perm=[0, 2, 1]),
            r"extra \(Transpose: of a tensor that is not in heads",
        ),
        (_with("ReduceMax", "tokens"), r"extra \(ReduceMax: it has no rule; instead: MaxPool"),
    ],
)
def test_an_operator_without_a_counterpart_is_named_with_its_node(source, message):
    with pytest.raises(InputError, match=message):
        read_blocks(source, tokens=_TOKENS)


def test_a_model_on_tokens_is_no_network_of_images():
    with pytest.raises(InputError, match="one on images or vectors, and its input are numbers of tokens"):
        read_network(model())


def test_an_output_that_is_not_wanted_does_not_matter():
    source = model(outputs=True)
    with pytest.raises(InputError, match="not 'node:pooler reads the mean or the first"):
        read_blocks(source, tokens=_TOKENS)
    assert list(read_blocks(source, tokens=_TOKENS, outputs=["tokens"]).outputs) == ["tokens"]
    with pytest.raises(InputError, match="output must be one of tokens, pooler"):
        read_blocks(source, tokens=_TOKENS, outputs=["token"])


def test_an_output_of_numbers_is_refused():
    proto = onnx.load_model_from_string(model())
    proto.graph.node.append(helper.make_node("Identity", ["input_ids"], ["same"]))
    proto.graph.output.append(helper.make_tensor_value_info("same", onnx.TensorProto.INT64, None))
    with pytest.raises(InputError, match="output of the model must be a tensor of tokens, their mean or"):
        read_blocks(proto.SerializeToString(), tokens=_TOKENS)


def test_a_mask_that_hides_other_tokens_is_refused():
    proto = onnx.load_model_from_string(model("causal"))
    (node,) = (each for each in proto.graph.node if each.op_type == "Trilu")
    node.input.append("diagonal")
    proto.graph.initializer.append(numpy_helper.from_array(np.array(1), "diagonal"))
    with pytest.raises(InputError, match="a mask that hides other keys than later ones"):
        read_blocks(proto.SerializeToString(), tokens=_TOKENS)


def test_inputs_that_are_no_tokens_are_refused():
    proto = onnx.load_model_from_string(model())
    proto.graph.input.append(helper.make_tensor_value_info("picture", 1, [1, 3]))
    with pytest.raises(InputError, match="inputs of the model must be one of numbers of tokens"):
        read_blocks(proto.SerializeToString(), tokens=_TOKENS)
