"""Operands that do not fit: each is refused, with its operator's name, as onnxruntime refuses it."""

import numpy as np
import pytest

from hw.errors import InputError
from hw.scheduler.graph.importers.onnx_model import import_onnx
from hw.scheduler.graph.importers.onnx_operators import OPERATORS, VIEWS
from hw.scheduler.graph.importers.onnx_products import PRODUCTS
from hw.scheduler.graph.importers.onnx_standins import STAND_INS
from hw.scheduler.graph.importers.rules.table import RULES
from tests.hw.scheduler.graph.onnx_models import model, node, run, weights

INT = np.int64
IMAGE = (1, 4, 8, 8)
ONE, TWO = weights(4), weights(3)
W = weights(6, 4, 3, 3)


def ints(*values):
    return np.array(values, INT)


def bytes_of(*shape):
    return np.ones(shape, np.uint8)


QUANTIZED = {"s": np.float32(1), "z": np.uint8(0)}

#: Operator, operands by name (a shape is an input, an array a parameter), attributes, version, and the words.
MISFITS = [
    ("Conv", {"x": IMAGE, "w": weights(6, 3, 3, 3)}, {}, 20, "channels of operand W (6, 3, 3, 3)"),
    ("Conv", {"x": IMAGE, "w": W}, {"group": 3}, 20, "group of"),
    ("Conv", {"x": IMAGE, "w": weights(6, 1, 3, 3)}, {"group": 4}, 20, "filters of operand W"),
    ("Conv", {"x": IMAGE, "w": W, "b": weights(4)}, {}, 20, "shape of operand B"),
    ("Conv", {"x": IMAGE, "w": W, "b": weights(6, 1)}, {}, 20, "shape of operand B"),
    ("Conv", {"x": IMAGE, "w": W}, {"kernel_shape": [3, 5]}, 20, "kernel_shape"),
    ("Conv", {"x": IMAGE, "w": W}, {"strides": [2]}, 20, "strides"),
    ("Conv", {"x": IMAGE, "w": W}, {"strides": [0, 1]}, 20, "strides"),
    ("Conv", {"x": IMAGE, "w": W}, {"pads": [1, 1]}, 20, "pads"),
    ("Conv", {"x": IMAGE, "w": W}, {"pads": [-1, 0, 0, 0]}, 20, "pads"),
    ("Conv", {"x": IMAGE, "w": W}, {"dilations": [5, 1]}, 20, "kernel of"),
    ("Conv", {"x": IMAGE, "w": W}, {"auto_pad": "VALID", "pads": [1] * 4}, 20, "pads"),
    ("Conv", {"x": (4, 8, 8), "w": W}, {}, 20, "shape of operand W"),
    ("Conv", {"x": IMAGE, "w": W.astype(np.float64)}, {}, 20, "element type of operand W"),
    ("ConvTranspose", {"x": IMAGE, "w": weights(3, 6, 3, 3)}, {}, 20, "channels of operand W"),
    ("ConvTranspose", {"x": IMAGE, "w": W[:4]}, {"group": 3}, 20, "group"),
    ("ConvTranspose", {"x": IMAGE, "w": W[:4], "b": weights(6)}, {}, 20, "shape of operand B"),
    ("ConvTranspose", {"x": IMAGE, "w": W[:4]}, {"output_padding": [1, 1]}, 20, "output_padding"),
    ("ConvTranspose", {"x": IMAGE, "w": W[:4]}, {"output_shape": [40, 40]}, 20, "output_shape"),
    ("ConvTranspose", {"x": IMAGE, "w": W[:4]}, {"pads": [9] * 4}, 20, "pads"),
    ("DeformConv", {"x": IMAGE, "w": W, "o": (1, 9, 6, 6)}, {}, 20, "shape of operand offset"),
    ("DeformConv", {"x": IMAGE, "w": W, "o": (1, 18, 8, 8)}, {}, 20, "shape of operand offset"),
    ("DeformConv", {"x": IMAGE, "w": W, "o": (1, 54, 6, 6)}, {"offset_group": 3}, 20, "offset_group"),
    ("DeformConv", {"x": IMAGE, "w": W, "o": (1, 18, 6, 6), "b": ONE}, {}, 20, "operand B"),
    (
        "DeformConv", {"x": IMAGE, "w": W, "o": (1, 18, 6, 6), "b": weights(6), "m": (1, 18, 6, 6)}, {}, 20,
        "shape of operand mask",
    ),
    ("MaxPool", {"x": IMAGE}, {"kernel_shape": [3]}, 20, "kernel_shape"),
    ("MaxPool", {"x": IMAGE}, {"kernel_shape": [2, 2], "pads": [2, 0, 0, 0]}, 20, "pads"),
    ("AveragePool", {"x": IMAGE}, {"kernel_shape": [2, 2], "strides": [2]}, 20, "strides"),
    ("GlobalAveragePool", {"x": (4, 8)}, {}, 20, "shape of operand X"),
    ("BatchNormalization", {"x": IMAGE, **dict.fromkeys("sbm", ONE), "v": TWO}, {}, 20, "operand input_var"),
    ("BatchNormalization", {"x": IMAGE, "s": weights(1), **dict.fromkeys("bmv", ONE)}, {}, 20, " scale of"),
    ("InstanceNormalization", {"x": IMAGE, "s": ONE, "b": TWO}, {}, 20, "shape of operand B"),
    ("GroupNormalization", {"x": IMAGE, "s": ONE, "b": ONE}, {"num_groups": 3}, 21, "num_groups"),
    ("GroupNormalization", {"x": IMAGE, "s": ONE, "b": ONE}, {"num_groups": 2}, 20, "a value for each group"),
    ("GroupNormalization", {"x": IMAGE, "s": ONE[:2], "b": ONE[:2]}, {"num_groups": 2}, 21, "each channel"),
    ("LayerNormalization", {"x": (2, 5, 4), "s": TWO}, {}, 20, "shape of operand Scale"),
    ("LayerNormalization", {"x": (2, 5, 4), "s": ONE, "b": weights(5)}, {}, 20, "shape of operand B"),
    ("RMSNormalization", {"x": (2, 5, 4), "s": weights(5)}, {}, 23, "shape of operand scale"),
    ("Softmax", {"x": (2, 3)}, {"axis": 2}, 20, "axis"),
    ("LRN", {"x": (2, 3)}, {"size": 3}, 20, "shape of operand X"),
    ("MatMul", {"x": (2, 3, 4), "z": (5, 4)}, {}, 20, "rows of operand B (5, 4)"),
    ("MatMul", {"x": (2, 3, 4), "z": (3, 4, 5)}, {}, 20, "batches of operand B"),
    ("Gemm", {"x": (3, 4), "z": (5, 4)}, {}, 20, "inner dimension of operand B"),
    ("Gemm", {"x": (3, 4), "z": (4, 5)}, {"transA": 1}, 20, "inner dimension of operand B"),
    ("Gemm", {"x": (3, 4), "z": (4, 5), "c": weights(3)}, {}, 20, "shape of operand C"),
    ("Gemm", {"x": (1, 3, 4), "z": (4, 5)}, {}, 20, "shape of operand A"),
    ("Einsum", {"x": (3, 4), "z": (5, 6)}, {"equation": "ij,jk->ik"}, 20, "dimension 0 of operand 1 (5, 6)"),
    ("Einsum", {"x": (3, 4), "z": (4, 6)}, {"equation": "ijk,jk->ik"}, 20, "shape of operand Inputs"),
    ("Einsum", {"x": (3, 4), "z": (4, 6)}, {"equation": "ij->i"}, 20, "equation"),
    ("Einsum", {"x": (3, 4), "z": (4, 6)}, {"equation": "ij,jk->iq"}, 20, "equation"),
    ("Einsum", {"x": (3, 1)}, {"equation": "ii->i"}, 20, "shape of operand Inputs"),
    ("Add", {"x": (2, 3), "z": (2, 4)}, {}, 20, "shape of operand B"),
    ("Max", {"x": (2, 3), "z": (1, 3), "u": (5, 1, 2)}, {}, 20, "shape of operand 2"),
    ("Where", {"c": np.ones((2, 2), bool), "x": (2, 3), "z": (2, 3)}, {}, 20, "shape of operand X"),
    ("PRelu", {"x": IMAGE, "s": ONE}, {}, 20, "shape of operand slope"),
    ("Clip", {"x": IMAGE, "s": ONE}, {}, 20, "shape of operand min"),
    ("Expand", {"x": (2, 3), "s": ints(2, 4)}, {}, 20, "shape of operand input"),
    ("Tile", {"x": (2, 3), "s": ints(2)}, {}, 20, "repeats"),
    ("Concat", {"x": (2, 3), "z": (3, 3)}, {"axis": 1}, 20, "shape of operand 1"),
    ("Concat", {"x": (2, 3), "z": (2, 3, 1)}, {"axis": 1}, 20, "shape of operand 1"),
    ("Concat", {"x": (2, 3), "z": (2, 3)}, {"axis": 2}, 20, "axis"),
    ("Split", {"x": (2, 5), "s": ints(2, 2)}, {"axis": 1}, 20, "sizes of the parts"),
    ("Split", {"x": (2, 5), "s": ints(2, 2, 1)}, {"axis": 1}, 20, "sizes of the parts"),
    ("Split", {"x": (2, 5)}, {"axis": 1, "split": [2, 2]}, 11, "sizes of the parts"),
    ("Split", {"x": (2, 5)}, {"axis": 1}, 11, "in 2 parts"),
    ("Split", {"x": (2, 5)}, {"axis": 1}, 20, "num_outputs"),
    ("Slice", {"x": (2, 5), "f": ints(0), "t": ints(1, 1)}, {}, 20, "lengths of starts, ends, axes"),
    ("Slice", {"x": (2, 5), "f": ints(0), "t": ints(1), "a": ints(2)}, {}, 20, "axes"),
    ("Slice", {"x": (2, 5), "f": ints(0), "t": ints(1), "a": ints(1), "p": ints(0)}, {}, 20, "steps"),
    ("Pad", {"x": (2, 5), "p": ints(1, 1)}, {}, 20, "pads"),
    ("Pad", {"x": (2, 5), "p": ints(-2, 0, -1, 0)}, {}, 20, "pads"),
    ("Pad", {"x": (2, 5), "p": ints(2, 0, 0, 0)}, {"mode": "reflect"}, 18, "pads"),
    ("Gather", {"x": (3, 4), "i": ints(0, 3)}, {}, 20, "indices of operand indices"),
    ("Gather", {"x": (3, 4), "i": ints(-5)}, {"axis": 1}, 20, "indices of operand indices"),
    ("Gather", {"x": (3, 4), "i": ints(0)}, {"axis": 2}, 20, "axis"),
    ("GatherND", {"x": (3, 4), "i": ints(0, 4)}, {}, 20, "indices of operand indices"),
    ("GatherND", {"x": (3, 4), "i": ints(0, 0, 0)}, {}, 20, "last dimension of operand indices"),
    ("Reshape", {"x": (8, 12), "s": ints(1, 12)}, {}, 20, "elements of view [1, 12] of operand data (8, 12)"),
    ("Reshape", {"x": (8, 12), "s": ints(-1, 7)}, {}, 20, "elements of view"),
    ("Reshape", {"x": (8, 12), "s": ints(8, 12, 0)}, {}, 20, "view"),
    ("Squeeze", {"x": (2, 1), "s": ints(0)}, {}, 20, "dimension 0 of operand data (2, 1)"),
    ("Unsqueeze", {"x": (2, 1), "s": ints(4)}, {}, 20, "axes"),
    ("Flatten", {"x": (2, 1)}, {"axis": 3}, 20, "axis"),
    ("Transpose", {"x": (2, 3)}, {"perm": [0, 0]}, 20, "perm"),
    ("Transpose", {"x": (2, 3)}, {"perm": [0, 1, 2]}, 20, "perm"),
    ("DepthToSpace", {"x": IMAGE}, {"blocksize": 3}, 20, "channels of operand input"),
    ("SpaceToDepth", {"x": IMAGE}, {"blocksize": 3}, 20, "rows and columns of operand input"),
    ("Resize", {"x": IMAGE, "r": weights(0), "s": weights(2)}, {}, 20, "scales"),
    ("Upsample", {"x": IMAGE, "s": weights(3)}, {}, 9, "scales"),
    ("TopK", {"x": (2, 3), "k": ints(4)}, {}, 20, "K of"),
    ("ArgMax", {"x": (2, 3)}, {"axis": 2}, 20, "axis"),
    ("ReduceMean", {"x": (2, 3), "a": ints(2)}, {}, 20, "axes"),
    ("ReduceMean", {"x": (2, 3)}, {"axes": [-3]}, 13, "axes"),
    ("Trilu", {"x": (3,)}, {}, 20, "shape of operand input"),
    ("QuantizeLinear", {"x": IMAGE, "s": weights(3)}, {}, 20, "shape of operand y_scale"),
    ("QuantizeLinear", {"x": IMAGE, "s": ONE, "z": bytes_of(3)}, {}, 20, "shape of operand y_zero_point"),
    ("QuantizeLinear", {"x": (4, 8), "s": weights(4, 3)}, {"block_size": 4}, 21, "one a block of 4"),
]  # fmt: skip


def built(op, operands, attributes, opset, *, domain=""):
    names = [name if each is not None else "" for name, each in operands.items()]
    inputs = {name: each for name, each in operands.items() if isinstance(each, tuple)}
    constants = {name: each for name, each in operands.items() if isinstance(each, (np.ndarray, np.generic))}
    results = ["y", "z"] if op in ("Split", "TopK") else ["y"]
    made = node(op, *names, outputs=results, name="misfit", domain=domain, **attributes)
    return made, inputs, constants, results, opset


def refused(made, inputs, constants, results, opset):
    content = model([made], inputs, constants, outputs=results, opset=opset, runtime=True)
    with pytest.raises(InputError) as caught:
        import_onnx(content)
    text = str(caught.value)
    assert "\n" not in text
    assert f"of operator 'misfit' ({made.op_type}) must be " in text
    return text


@pytest.mark.parametrize("number", range(len(MISFITS)), ids=[f"{each[0]}-{each[4]}" for each in MISFITS])
def test_operands_that_do_not_fit(number):
    op, operands, attributes, opset, words = MISFITS[number]
    case = built(op, operands, attributes, opset)
    assert words in refused(*case)
    made, inputs, constants, results, opset = case
    feeds = {name: np.ones(shape, np.float32) for name, shape in inputs.items()}
    with pytest.raises(Exception, match=r"ONNXRuntimeError|onnxruntime"):
        run([made], feeds, constants, results, opset=opset)


LATER = {"k": None, "v": None, "pk": None, "pv": None, "last": ints(4), "total": ints(5)}
TURNED = (1, 2, 6, 8)
K, V = weights(1, 9, 16), weights(1, 9, 16)
HEADS = {"num_heads": 4}
PACKED = {"K": 32, "N": 16, "bits": 4, "block_size": 32}
S, Z = QUANTIZED["s"], QUANTIZED["z"]

#: The same for onnxruntime's own operators, attention, and quantized operators.
RUNTIME = [
    ("Attention", {"x": (1, 6, 16), "w": weights(12, 48), "b": weights(48)}, HEADS, "rows of operand"),
    ("Attention", {"x": (1, 6, 16), "w": weights(16, 40), "b": weights(40)}, HEADS, "columns of operand"),
    ("Attention", {"x": (1, 6, 16), "w": weights(16, 48), "b": weights(16)}, HEADS, "shape of operand 2"),
    ("MultiHeadAttention", {"q": (1, 6, 18), "k": K, "v": V}, HEADS, "columns of operand 0"),
    ("MultiHeadAttention", {"q": (1, 6, 16), "k": weights(1, 9, 32), "v": V}, HEADS, "operand 1"),
    ("MultiHeadAttention", {"q": (1, 6, 16), "k": K, "v": weights(1, 8, 16)}, HEADS, "operand 2"),
    ("GroupQueryAttention", {"q": (1, 5, 60)}, {"num_heads": 4, "kv_num_heads": 2}, "columns of operand 0"),
    ("GroupQueryAttention", {"q": (1, 5, 64)}, {"num_heads": 4, "kv_num_heads": 3}, "num_heads"),
    ("FusedMatMul", {"x": (2, 6, 8), "z": (2, 8, 5)}, {"transB": 1}, "rows of operand"),
    ("FusedMatMul", {"x": (2, 6, 8), "z": (2, 8, 5)}, {"transBatchA": 1}, "transBatchA"),
    ("GroupQueryAttention", {"q": (2, 5, 64), **LATER}, {"num_heads": 4, "kv_num_heads": 2}, "operand 5"),
    (
        "MatMulIntegerToFloat",
        {"q": bytes_of(3, 4), "x": (4, 5), "s": S, "t": S, "z": Z, "u": Z, "b": weights(4)}, {}, "operand 6",
    ),
    ("MatMulNBits", {"x": (5, 32), "w": bytes_of(8, 1, 16), "s": weights(16)}, PACKED, "operand 1"),
    ("MatMulNBits", {"x": (5, 30), "w": bytes_of(16, 1, 16), "s": weights(16)}, PACKED, "columns of"),
    ("MatMulNBits", {"x": (5, 32), "w": bytes_of(16, 1, 16), "s": weights(8)}, PACKED, "operand 2"),
    ("RotaryEmbedding", {"x": TURNED, "i": ints(0), "c": weights(9, 3), "s": weights(9, 3)}, {}, "columns"),
    ("RotaryEmbedding", {"x": TURNED, "i": ints(0), "c": weights(9, 4), "s": weights(8, 4)}, {}, "operand 3"),
    ("MatMulNBits", {"x": (5, 32), "w": bytes_of(16, 1, 16), "s": weights(16), "z": Z}, PACKED, "operand 3"),
    ("BiasGelu", {"x": (1, 6, 8), "b": weights(6, 8)}, {}, "shape of operand 1"),
    ("FastGelu", {"x": (1, 6, 8), "b": weights(1)}, {}, "shape of operand 1"),
    ("SkipLayerNormalization", {"x": (1, 6, 8), "z": (1, 5, 8), "g": weights(8)}, {}, "shape of operand 1"),
    ("SkipLayerNormalization", {"x": (1, 6, 8), "z": (1, 6, 8), "g": weights(6)}, {}, "shape of operand 2"),
    ("QLinearAdd", {"a": bytes_of(2, 3), "s": S, "z": Z, "x": (2, 4), "u": S, "v": Z, "w": S}, {}, " 1"),
]  # fmt: skip
QLINEAR = [
    ("QLinearConv", {"w": bytes_of(6, 3, 3, 3)}, "channels of operand"),
    ("QLinearConv", {"ws": weights(4)}, "shape of operand 4 (ws) "),
    ("QLinearConv", {"ys": weights(6)}, "shape of operand 6 (ys) "),
    ("QLinearConv", {"b": np.ones(4, np.int32)}, "shape of operand 2"),
    ("QLinearMatMul", {"w": bytes_of(8, 5)}, "rows of operand"),
    ("QLinearMatMul", {"ws": weights(3)}, "shape of operand 4 (ws) "),
]


@pytest.mark.parametrize("number", range(len(RUNTIME)), ids=[f"{each[0]}-{each[3]}" for each in RUNTIME])
def test_operands_of_the_runtimes_operators_that_do_not_fit(number):
    op, operands, attributes, words = RUNTIME[number]
    assert words in refused(*built(op, operands, attributes, 20, domain="com.microsoft"))


@pytest.mark.parametrize(("op", "other", "words"), QLINEAR)
def test_quantized_operands_that_do_not_fit(op, other, words):
    conv = op == "QLinearConv"
    weight = bytes_of(6, 4, 3, 3) if conv else bytes_of(4, 5)
    shape = IMAGE if conv else (3, 4)
    operands = {"q": None, "s": S, "z": Z, "w": weight, "ws": S, "wz": Z, "ys": S, "yz": Z}
    operands |= ({"b": np.ones(6, np.int32)} if conv else {}) | other
    constants = {name: each for name, each in operands.items() if each is not None}
    nodes = [node("QuantizeLinear", "x", "s", "z", outputs=["q"]), node(op, *operands, name="misfit")]
    with pytest.raises(InputError) as caught:
        import_onnx(model(nodes, {"x": shape}, constants))
    assert words in str(caught.value)
    assert f"of operator 'misfit' ({op}) must be" in str(caught.value)


QKV = {"q": (1, 2, 6, 8), "k": (1, 2, 9, 8), "v": (1, 2, 9, 4)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": (1, 2, 9, 6)}, "shape of operand K"),
        ({"v": (1, 2, 8, 4)}, "shape of operand V"),
        ({"k": (1, 3, 9, 8), "v": (1, 3, 9, 4)}, "heads of operand Q"),
        ({"m": (5, 9)}, "shape of operand attn_mask"),
        ({"m": (6, 8)}, "shape of operand attn_mask"),
        ({"m": (9,)}, "shape of operand attn_mask"),
        ({"q": (1, 6, 16)}, "q_num_heads"),
    ],
)
def test_queries_keys_and_values_that_do_not_fit(change, words):
    operands = QKV | change
    text = refused(node("Attention", *operands, name="misfit"), operands, {}, ["y"], 23)
    assert words in text


def test_a_mask_of_one_dimension_is_legal_from_operator_set_25_on():
    operands = QKV | {"m": (9,)}
    content = model([node("Attention", *operands, outputs=["y"])], operands, outputs=["y"], opset=25)
    graph = import_onnx(content)
    assert {tensor.name: tensor.shape for tensor in graph.tensors}["y"] == (1, 2, 6, 4)


def test_every_operator_has_a_rule():
    plain = {stand_in.op for stand_in in STAND_INS.values()}
    assert {*OPERATORS, *PRODUCTS, *VIEWS, *plain} <= RULES.keys()
