"""Tables of operators over their attributes: shapes and computed constants are onnxruntime's."""

import itertools

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hw.errors import InputError
from hw.scheduler.graph.importers.onnx_constants import evaluate
from hw.scheduler.graph.importers.onnx_model import import_onnx
from tests.hw.scheduler.graph.onnx_models import model, node, run, weights

INT = np.int64


def shape_of(made, inputs, constants, opset):
    """The shape that onnxruntime and the importer find, None where each refuses."""
    feeds = {name: np.ones(shape, np.float32) for name, shape in inputs.items()}
    try:
        expected = run([made], feeds, constants, ["y"], opset=opset)["y"].shape
    # onnxruntime raises any exception.
    except Exception:
        expected = None
    try:
        found = import_onnx(model([made], inputs, constants, opset=opset)).tensor["y"].shape
    except InputError:
        found = None
    return expected, found


def check(made, inputs, constants, opset):
    expected, found = shape_of(made, inputs, constants, opset)
    automatic = next((each.s for each in made.attribute if each.name == "auto_pad"), b"")
    if expected is None and automatic.startswith(b"SAME") and found is not None:
        # onnxruntime pads no dilated convolution so, nor windows with rows between them.
        strides = next(each.ints for each in made.attribute if each.name == "strides")
        rows = [-(-extent // stride) for extent, stride in zip(inputs["x"][2:], strides, strict=True)]
        assert list(found[2:]) == rows, (made, inputs)
        return
    # Where no window fits, onnxruntime makes no rows.
    empty = expected is not None and 0 in expected
    assert found == (None if empty else expected), (made, inputs, opset)


WINDOWS = list(itertools.product((5, 8), (1, 2, 3), (1, 2, 3), (0, 1, 2), (1, 2)))


@pytest.mark.parametrize("opset", [11, 22])
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_pooling(op, opset):
    for extent, kernel, stride, pad, ceil in WINDOWS[::2]:
        window = {"kernel_shape": [kernel, 2], "strides": [stride, 1], "ceil_mode": ceil - 1}
        for more in (
            {"pads": [pad, 0, pad // 2, 1]},
            {"auto_pad": ("VALID", "SAME_UPPER", "SAME_LOWER")[pad]},
        ):
            check(node(op, "x", **window, **more), {"x": (1, 2, extent, 4)}, {}, opset)


@pytest.mark.parametrize("dilation", [1, 2])
def test_convolutions(dilation):
    for extent, kernel, stride, pad, group in WINDOWS[::2]:
        window = {"strides": [stride], "dilations": [dilation], "group": group}
        for more in ({"pads": [pad, pad // 2]}, {"auto_pad": ("VALID", "SAME_UPPER", "SAME_LOWER")[pad]}):
            made = node("Conv", "x", "w", **window, **more)
            check(made, {"x": (1, 4, extent)}, {"w": weights(4, 4 // group, kernel)}, 17)


@pytest.mark.parametrize("extra", [0, 1, 2])
def test_transposed_convolutions(extra):
    for extent, kernel, stride, pad, group in WINDOWS[1::2]:
        window = {"strides": [stride], "output_padding": [extra], "group": group}
        for more in (
            {"pads": [pad, pad // 2]},
            {"auto_pad": ("VALID", "SAME_UPPER", "SAME_LOWER")[pad]},
            {"output_shape": [extent * stride]},
        ):
            made = node("ConvTranspose", "x", "w", **window, **more)
            check(made, {"x": (1, 4, extent)}, {"w": weights(4, 3, kernel)}, 17)


@pytest.mark.parametrize("opset", range(18, 24))
@pytest.mark.parametrize("values", [2, 4, 3])
def test_normalization_of_groups(opset, values):
    """Its parameters are a value a group until version 20, then one a channel."""
    made = node("GroupNormalization", "x", "s", "b", num_groups=2)
    found = shape_of(made, {"x": (1, 4, 5)}, {"s": weights(values), "b": weights(values)}, opset)[1]
    assert found == ((1, 4, 5) if values == (2 if opset < 21 else 4) else None)


@pytest.mark.parametrize("opset", [10, 13, 19])
def test_resizing(opset):
    for height, width in itertools.product((0.3, 0.7, 1.1, 1.3, 2.0, 2.05), (0.1, 0.7, 3.0)):
        scales = {"s": np.array([1, 1, height, width], np.float32)}
        operands = ("x", "s") if opset == 10 else ("x", "e", "s")
        empty = {"e": weights(0)} if opset > 10 else {}
        check(node("Resize", *operands, mode="linear"), {"x": (1, 1, 10, 30)}, scales | empty, opset)


@pytest.mark.parametrize("opset", [11, 13])
def test_resizing_without_a_region(opset):
    made = node("Resize", "x", "", "s", mode="linear")
    scales = {"s": np.array([1, 1, 2, 2], np.float32)}
    assert shape_of(made, {"x": (1, 1, 4, 5)}, scales, opset)[1] == (1, 1, 8, 10)


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
def test_resizing_to_sizes(policy):
    for sizes in itertools.product((3, 7, 9, 13), (4, 10, 15)):
        more = {"axes": [2, 3], "keep_aspect_ratio_policy": policy}
        made = node("Resize", "x", "", "", "s", mode="linear", **more)
        check(made, {"x": (1, 1, 7, 10)}, {"s": np.array(sizes, INT)}, 19)


@pytest.mark.parametrize("opset", [13, 18])
def test_parts(opset):
    for extent, parts in itertools.product(range(1, 8), (2, 3, 4)):
        made = helper.make_node("Split", ["x"], ["y", *"abc"[: parts - 1]], axis=0)
        if opset == 18:
            made.attribute.append(helper.make_attribute("num_outputs", parts))
        check(made, {"x": (extent, 2)}, {}, opset)


FLOATS = np.array([-1.5, 0.5, 1.5, 2.5], np.float32)
WHOLE, THREE = np.array([-7, 7, 8], INT), np.array(3, INT)
TRUE = np.array([True, False, True])
LAST = [np.array([each], INT) for each in (-1, -(2**63), 0, -1)]
CONSTANTS = [
    ("Floor Ceil Round Abs Neg Sqrt Exp Log Reciprocal Sign", [FLOATS], {}),
    ("Abs Neg Sign", [WHOLE], {}),
    ("Add Sub Mul Div Mod Max Min Equal Less Greater LessOrEqual GreaterOrEqual", [WHOLE, THREE], {}),
    ("Add Sub Mul Div Pow Max Min Equal Less Greater", [FLOATS, np.float32(2)], {}),
    ("Mod", [WHOLE, THREE], {"fmod": 1}),
    ("Cast", [FLOATS], {"to": TensorProto.INT64}),
    ("Cast", [WHOLE], {"to": TensorProto.FLOAT}),
    ("Cast", [FLOATS], {"to": TensorProto.BOOL}),
    ("And Or Xor", [TRUE, np.array(True)], {}),
    ("Not", [TRUE], {}),
    ("Where", [TRUE, WHOLE, THREE], {}),
    ("Range", [np.array(0, INT), np.array(10, INT), THREE], {}),
    ("Range", [np.float32(0), np.float32(1), np.float32(0.3)], {}),
    ("Range", [np.array(5, INT), np.array(0, INT), np.array(-2, INT)], {}),
    ("NonZero", [np.array([[0, 1], [1, 1]], np.float32)], {}),
    ("NonZero", [np.array(1, INT)], {}),
    ("ConstantOfShape", [np.array([2, 3], INT)], {}),
    ("Gather", [WHOLE, np.array([-1, 0], INT)], {}),
    ("Concat", [WHOLE, WHOLE], {"axis": 0}),
    ("Slice", [WHOLE, *LAST], {}),
    ("Squeeze Transpose", [WHOLE[None]], {}),
    ("Unsqueeze", [WHOLE, np.array([0], INT)], {}),
    ("Expand Tile Reshape", [WHOLE[:1], np.array([1], INT)], {}),
    ("ReduceProd ReduceSum ReduceMax ReduceMin", [WHOLE], {"keepdims": 0}),
    ("CumSum", [WHOLE, np.array(0, INT)], {}),
    ("ScatterND", [WHOLE, np.array([[1]], INT), np.array([5], INT)], {}),
    ("GatherElements", [WHOLE, np.array([2, 0], INT)], {}),
    ("Compress", [WHOLE, TRUE], {}),
    ("OneHot", [np.array([1, 2], INT), np.array(4, INT), np.array([0, 1], INT)], {}),
]
ALONE = [(op, operands, attributes) for ops, operands, attributes in CONSTANTS for op in ops.split()]


def test_constants_are_computed_as_the_runtime_computes_them():
    for op, operands, attributes in ALONE:
        names = [f"i{index}" for index in range(len(operands))]
        made = helper.make_node(op, names, ["y"], **attributes)
        constants = dict(zip(names, map(np.asarray, operands), strict=True))
        (found,) = evaluate(made, list(constants.values()), 20)
        expected = run([made], {}, constants, ["y"], opset=20)["y"]
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), op
        np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=op)


def arithmetic(opset):
    """The exporters' form of ceil(0.7 * height) of an image, and a range over it."""
    pick = {"axes": [0]} if opset < 13 else {}
    axes = [] if opset < 13 else ["zero"]
    return [
        node("Shape", "x", outputs=["s"]),
        node("Gather", "s", "two", outputs=["h"], axis=0),
        node("Cast", "h", outputs=["f"], to=TensorProto.FLOAT),
        node("Mul", "f", "factor", outputs=["m"]),
        node("Ceil", "m", outputs=["c"]),
        node("Cast", "c", outputs=["n"], to=TensorProto.INT64),
        node("Unsqueeze", "n", *axes, outputs=["u"], **pick),
        node("ConstantOfShape", "u", outputs=["ones"], value=numpy_helper.from_array(np.array([1], INT))),
        node("NonZero", "ones", outputs=["z"]),
        node("Transpose", "z", outputs=["t"], perm=[1, 0]),
        node("Squeeze", "t", *(["one"] if axes else []), outputs=["r"], **({} if axes else {"axes": [1]})),
        node("Gather", "x", "r", axis=2),
    ]


@pytest.mark.parametrize("opset", [9, 10, 11, 12, 13, 17])
def test_what_follows_from_shapes_by_floats_is_computed(opset):
    constants = {"two": np.array(2), "factor": np.float32(0.7), "zero": np.array([0]), "one": np.array([1])}
    graph = import_onnx(model(arithmetic(opset), {"x": (1, 3, 9, 4)}, constants, opset=opset))
    assert graph.tensor["y"].shape == (1, 3, 7, 4)
    assert [each.kind for each in graph.operators] == ["gather"]


def test_a_dimension_named_in_what_is_stated_has_its_value():
    """Without a rule the model's statement of a shape holds, after that ONNX's inference."""
    nodes = [node("Cast", "n", outputs=["s"], to=TensorProto.INT64), node("Reshape", "x", "s", outputs=["v"]),
             node("Relu", "v")]  # fmt: skip
    made = onnx.load_model_from_string(model(nodes, {"x": (2, 6), "n": (2,)}))
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    made.graph.value_info.append(helper.make_tensor_value_info("v", TensorProto.FLOAT, ["batch", 2]))
    with pytest.raises(InputError, match="dimension batch"):
        import_onnx(made.SerializeToString())
    assert import_onnx(made.SerializeToString(), dimensions={"batch": 6}).tensor["y"].shape == (6, 2)
    made.graph.value_info[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, [3, 2, 2]))
    words = []
    found = import_onnx(made.SerializeToString(), dimensions={"batch": 6}, say=words.append)
    assert found.tensor["y"].shape == (3, 2, 2)
    said = "the model states shape [3, 2, 2] of tensor 'v', ONNX infers [None, None]"
    assert words == [f"model: {said}; what the model states is taken"]
    del made.graph.value_info[:]
    with pytest.raises(InputError) as caught:
        import_onnx(made.SerializeToString(), dimensions={"batch": 6})
    words = "operator 'Reshape' of 'v' makes it from values that the model does not hold"
    assert f"shape of tensor 'v' must be known once the inputs' shapes are: {words}" in str(caught.value)
