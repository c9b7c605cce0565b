"""Attention, Einsum and fusions of runtimes: shapes, rows and multiply-accumulates."""

import math

import numpy as np
import onnx
import pytest
from onnx import helper

from hw.errors import InputError
from hw.scheduler.graph.importers.onnx_model import import_onnx
from tests.hw.scheduler.graph.onnx_models import check_accesses, model, node, weights
from tests.hw.scheduler.graph.test_import_quantized import check_sizes


def macs_of(content):
    return [operator.macs for operator in import_onnx(content).operators]


def test_attention_of_heads():
    inputs = {"q": (1, 2, 6, 8), "k": (1, 2, 9, 8), "v": (1, 2, 9, 4)}
    content = model([node("Attention", "q", "k", "v")], inputs, opset=23)
    check_sizes(content)
    assert macs_of(content) == [2 * 6 * 9 * (8 + 4)]
    check_accesses(content, exact=["q"], whole=["k", "v"])


def test_attention_with_a_mask_and_heads_side_by_side():
    inputs = {"q": (1, 6, 16), "k": (1, 9, 16), "v": (1, 9, 16), "m": (6, 9)}
    made = node("Attention", "q", "k", "v", "m", q_num_heads=4, kv_num_heads=4)
    content = model([made], inputs, opset=23)
    check_sizes(content)
    assert macs_of(content) == [6 * 9 * 32]
    check_accesses(content, exact=["q", "m"], whole=["k", "v"])


@pytest.mark.parametrize(
    ("shape", "fits"), [((6, 4), True), ((6, 1), True), ((6, 10), False), ((5, 9), False)]
)
def test_a_mask_of_attention_may_be_shorter_than_its_keys(shape, fits):
    inputs = {"q": (1, 2, 6, 8), "k": (1, 2, 9, 8), "v": (1, 2, 9, 8), "m": shape}
    content = model([node("Attention", *inputs)], inputs, opset=24)
    if fits:
        assert import_onnx(content).tensor["y"].shape == (1, 2, 6, 8)
    else:
        with pytest.raises(InputError, match="shape of operand attn_mask"):
            import_onnx(content)


def test_attention_with_what_earlier_runs_left():
    inputs = {"q": (1, 2, 1, 8), "k": (1, 2, 1, 8), "v": (1, 2, 1, 8)}
    inputs |= {"past_key": (1, 2, 5, 8), "past_value": (1, 2, 5, 8)}
    made = node("Attention", "q", "k", "v", "", "past_key", "past_value", outputs=["y", "pk", "pv"])
    content = model([made], inputs, outputs=("y", "pk", "pv"), opset=23)
    graph = check_sizes(content)
    assert graph.operators[0].macs == 2 * 6 * (8 + 8)
    assert graph.operators[0].accesses == {}
    assert graph.tensor["pk"].shape == (1, 2, 6, 8)
    assert graph.tensor["past_key"].kind.value == "cache"


def test_attention_with_its_projections():
    constants = {"w": weights(16, 48), "b": weights(48)}
    made = node("Attention", "x", "w", "b", domain="com.microsoft", num_heads=4)
    content = model([made], {"x": (1, 6, 16)}, constants, runtime=True)
    graph = check_sizes(content)
    assert graph.operators[0].macs == 6 * 16 * 48 + 2 * 6 * 6 * 16
    assert graph.operators[0].weight_bytes == 16 * 48 + 48
    check_accesses(content, whole=["x"])


def test_attention_of_heads_in_the_runtime():
    inputs = {"q": (1, 6, 16), "k": (1, 9, 16), "v": (1, 9, 16), "m": (1, 4, 6, 9)}
    made = node("MultiHeadAttention", "q", "k", "v", "", "", "m", domain="com.microsoft", num_heads=4)
    content = model([made], inputs, runtime=True)
    graph = check_sizes(content)
    assert graph.operators[0].macs == 6 * 9 * 32
    check_accesses(content, exact=["q", "m"], whole=["k", "v"])


def test_attention_of_heads_in_the_runtime_with_what_earlier_runs_left():
    inputs = {"q": (1, 1, 16), "k": (1, 1, 16), "v": (1, 1, 16)}
    inputs |= {"past_key": (1, 4, 5, 4), "past_value": (1, 4, 5, 4)}
    made = node(
        "MultiHeadAttention", *("q", "k", "v", "", "", ""), "past_key", "past_value",
        outputs=["y", "pk", "pv"], domain="com.microsoft", num_heads=4,
    )  # fmt: skip
    content = model([made], inputs, outputs=("y", "pk", "pv"), runtime=True)
    graph = check_sizes(content)
    assert graph.operators[0].macs == 6 * 32
    assert graph.tensor["pk"].shape == (1, 4, 6, 4)


def test_attention_whose_heads_share_keys():
    """A decoder as onnxruntime exports it: queries, keys and values in one packed operand."""
    constants = {"last": np.array([[4]], np.int32), "total": np.array(5, np.int32)}
    made = node(
        "GroupQueryAttention", *("q", "", "", "", "", "last", "total"), outputs=["y", "pk", "pv"],
        domain="com.microsoft", num_heads=4, kv_num_heads=2,
    )  # fmt: skip
    content = model([made], {"q": (1, 5, 64)}, constants, outputs=("y", "pk", "pv"), runtime=True)
    graph = check_sizes(content)
    assert graph.tensor["y"].shape == (1, 5, 32)
    assert graph.operators[0].macs == 5 * 5 * 2 * 32


@pytest.mark.parametrize(("left", "right"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_products_of_transposed_operands(left, right):
    inputs = {"x": (2, 8, 6) if left else (2, 6, 8), "z": (2, 5, 8) if right else (2, 8, 5)}
    made = node("FusedMatMul", "x", "z", domain="com.microsoft", transA=left, transB=right)
    content = model([made], inputs, runtime=True)
    graph = check_sizes(content)
    assert graph.operators[0].macs == 2 * 6 * 8 * 5
    check_accesses(content, exact=[] if left else ["x"], whole=["x", "z"] if left else ["z"])


def test_a_normalization_that_only_the_runtime_knows():
    content = model(
        [node("SimplifiedLayerNormalization", "x", "g", axis=-1)], {"x": (1, 6, 8)}, {"g": weights(8)}
    )
    check_sizes(content)
    check_accesses(content, exact=["x"])


@pytest.mark.parametrize("shape", [(1, 2, 6, 8), (1, 6, 16)])
def test_rotary_embedding(shape):
    tables = {"cos": weights(1, 6, 4), "sin": weights(1, 6, 4)}
    heads = {} if len(shape) == 4 else {"num_heads": 2}
    content = model([node("RotaryEmbedding", "x", "cos", "sin", **heads)], {"x": shape}, tables, opset=23)
    graph = check_sizes(content)
    assert graph.operators[0].weight_bytes == 2 * 6 * 4
    check_accesses(content, exact=["x"])


def test_rotary_embedding_by_positions_counts_the_rows_looked_up():
    tables = {"cos": weights(50, 4), "sin": weights(50, 4), "ids": np.arange(6, dtype=np.int64)[None]}
    made = node("RotaryEmbedding", "x", "ids", "cos", "sin", domain="com.microsoft")
    content = model([made], {"x": (1, 2, 6, 8)}, tables, runtime=True)
    graph = check_sizes(content)
    assert graph.operators[0].weight_bytes == 2 * 6 * 4
    check_accesses(content, exact=["x"])


EINSUMS = {
    "product": ("ij,jk->ik", [(6, 8), (8, 5)], 6 * 8 * 5, ["x"], ["z"]),
    "implied result": ("ij,jk", [(6, 8), (8, 5)], 6 * 8 * 5, ["x"], ["z"]),
    "heads": ("bhqd,bhkd->bhqk", [(1, 2, 6, 8), (1, 2, 7, 8)], 2 * 6 * 7 * 8, ["x"], ["z"]),
    "tokens first": ("bqhd,bkhd->bhqk", [(1, 6, 2, 8), (1, 7, 2, 8)], 2 * 6 * 7 * 8, ["x"], ["z"]),
    "right operand first": ("bkd,bqd->bqk", [(1, 7, 8), (1, 6, 8)], 6 * 7 * 8, ["z"], ["x"]),
    "ellipsis": ("...ij,jk->...ik", [(1, 2, 6, 8), (8, 5)], 2 * 6 * 8 * 5, ["x"], ["z"]),
    "ellipsis of both": ("...ij,...jk", [(2, 6, 8), (2, 8, 5)], 2 * 6 * 8 * 5, ["x"], ["z"]),
    "elementwise": ("ij,ij->ij", [(6, 8), (6, 8)], 48, ["x", "z"], []),
    "transposed": ("ij->ji", [(6, 8)], 0, ["x"], []),
    "sum": ("ij->i", [(6, 8)], 0, ["x"], []),
    "diagonal": ("ii->i", [(6, 6)], 0, [], ["x"]),
}


@pytest.mark.parametrize("name", EINSUMS)
def test_einsum(name):
    equation, shapes, macs, exact, whole = EINSUMS[name]
    inputs = dict(zip(("x", "z"), shapes, strict=False))
    content = model([node("Einsum", *inputs, equation=equation)], inputs)
    check_sizes(content)
    assert macs_of(content) == [macs]
    check_accesses(content, exact=exact, whole=whole)


def test_einsum_of_many_operands_is_refused():
    inputs = {"x": (2, 3), "z": (3, 4), "u": (4, 5)}
    with pytest.raises(InputError, match="write the products one after the other"):
        import_onnx(model([node("Einsum", *inputs, equation="ij,jk,kl->il")], inputs))


@pytest.mark.parametrize(("repeats", "exact"), [((1, 1, 3), ["x"]), ((1, 2, 1), []), ((2, 1, 1), ["x"])])
def test_tile(repeats, exact):
    content = model([node("Tile", "x", "n")], {"x": (1, 4, 3)}, {"n": np.array(repeats, np.int64)})
    check_sizes(content)
    check_accesses(content, exact=exact, whole=[] if exact else ["x"])


@pytest.mark.parametrize("upper", [0, 1])
def test_triangles(upper):
    content = model([node("Trilu", "x", upper=upper)], {"x": (1, 6, 6)})
    check_sizes(content)
    check_accesses(content)


def test_rows_gathered_by_several_indices():
    indices = np.array([[[0, 1], [2, 0]], [[1, 1], [0, 0]]], np.int64)
    content = model([node("GatherND", "x", "i")], {"x": (3, 2, 4)}, {"i": indices})
    check_sizes(content)
    check_accesses(content, whole=["x"])
    table = model([node("Cast", "x", outputs=["c"], to=7), node("GatherND", "t", "c")], {"x": (1, 6, 1)},
                  {"t": weights(50, 4)})  # fmt: skip
    graph = import_onnx(table)
    assert graph.operators[1].weight_bytes == 6 * 4
    assert graph.operators[1].accesses["c"].output_axis == 1


def test_a_product_with_weights_of_few_bits():
    constants = {"w": np.zeros((16, 1, 16), np.uint8), "s": weights(16)}
    made = node("MatMulNBits", "x", "w", "s", domain="com.microsoft", K=32, N=16, bits=4, block_size=32)
    content = model([made], {"x": (1, 5, 32)}, constants, runtime=True)
    graph = check_sizes(content)
    assert graph.operators[0].macs == 5 * 32 * 16
    assert graph.operators[0].weight_bytes == 32 * 16 // 2 + 16


def test_a_sum_with_its_normalization():
    constants = {"g": weights(8), "b": weights(8)}
    made = node("SkipLayerNormalization", "x", "z", "g", "b", domain="com.microsoft", epsilon=1e-5)
    content = model([made], {"x": (1, 6, 8), "z": (1, 6, 8)}, constants, runtime=True)
    graph = check_sizes(content)
    assert graph.operators[0].weight_bytes == 16
    check_accesses(content, exact=["x", "z"])


@pytest.mark.parametrize("op", ["Gelu", "FastGelu", "QuickGelu", "BiasGelu"])
def test_activations_of_the_runtime(op):
    given = ("x", "b") if op == "BiasGelu" else ("x",)
    content = model(
        [node(op, *given, domain="com.microsoft")], {"x": (1, 6, 8)}, {"b": weights(8)}, runtime=True
    )
    check_sizes(content)
    check_accesses(content, exact=["x"])


def test_functions_of_the_model_are_its_operators():
    body = helper.make_function(
        "here", "Twice", ["a"], ["c"], [node("Add", "a", "a", outputs=["c"])], [helper.make_opsetid("", 20)]
    )
    made = onnx.load_model_from_string(model([node("Twice", "x", domain="here")], {"x": (2, 3)}))
    made.functions.append(body)
    made.opset_import.append(helper.make_opsetid("here", 1))
    graph = import_onnx(made.SerializeToString())
    assert [each.kind for each in graph.operators] == ["add"]
    assert math.prod(graph.tensor["y"].shape) == 6
