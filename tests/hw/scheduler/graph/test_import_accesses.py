"""Accesses of operators, against the result rows that change when one operand row changes."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hw.errors import InputError
from hw.scheduler.graph.importers.onnx_model import import_onnx
from tests.hw.scheduler.graph.onnx_models import check_accesses, model, node, weights

FEW = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
IMAGE = {"x": (1, 2, 9, 3)}
TOKENS = {"x": (1, 5, 4)}
INT = np.int64


def one(op, inputs, constants=None, *, opset=20, read=None, **attributes):
    names = read if read is not None else [*inputs, *(constants or {})]
    return model([node(op, *names, **attributes)], inputs, constants, opset=opset)


@FEW
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.integers(0, 3), st.integers(1, 3))
def test_convolution(kernel, stride, above, below, dilation):
    assume((kernel - 1) * dilation + 1 <= 9 + above + below)
    content = one(
        "Conv", IMAGE, {"w": weights(3, 2, kernel, 1)},
        strides=[stride, 1], pads=[above, 0, below, 0], dilations=[dilation, 1],
    )  # fmt: skip
    check_accesses(content, exact=("x",) if dilation == 1 and max(above, below) < kernel else ())


@FEW
@given(st.integers(1, 5), st.integers(1, 3), st.integers(0, 4), st.integers(0, 2), st.integers(1, 2))
def test_transposed_convolution(kernel, stride, above, below, dilation):
    assume(above < (kernel - 1) * dilation + 1 and below < (kernel - 1) * dilation + 1)
    content = one(
        "ConvTranspose", IMAGE, {"w": weights(2, 3, kernel, 1)},
        strides=[stride, 1], pads=[above, 0, below, 0], dilations=[dilation, 1],
    )  # fmt: skip
    check_accesses(content, exact=("x",) if stride == dilation == 1 else ())


def test_a_transposed_convolution_that_overlaps_nothing_reads_one_row():
    content = one("ConvTranspose", IMAGE, {"w": weights(2, 3, 2, 2)}, strides=[2, 2])
    graph = check_accesses(content, exact=("x",))
    assert graph.operators[0].macs == 9 * 3 * 2 * 3 * 2 * 2


@pytest.mark.parametrize("automatic", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("op", ["Conv", "MaxPool", "ConvTranspose"])
@pytest.mark.parametrize(("kernel", "stride"), [(3, 2), (4, 2), (4, 1), (2, 3)])
def test_padding_that_follows_from_the_shapes(op, automatic, kernel, stride):
    if op == "MaxPool":
        if stride > kernel:
            stride = kernel  # the runtime accepts no others
        content = one(op, IMAGE, kernel_shape=[kernel, 1], strides=[stride, 1], auto_pad=automatic)
    else:
        shape = (3, 2, kernel, 1) if op == "Conv" else (2, 3, kernel, 1)
        content = one(op, IMAGE, {"w": weights(*shape)}, strides=[stride, 1], auto_pad=automatic)
    check_accesses(content, exact=("x",) if op != "ConvTranspose" else ())


@pytest.mark.parametrize("more", [{"output_shape": [18, 3]}, {"output_padding": [1, 0]}])
def test_a_transposed_convolution_with_a_stated_size(more):
    content = one("ConvTranspose", IMAGE, {"w": weights(2, 3, 3, 1)}, strides=[2, 1], **more)
    check_accesses(content)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize(("kernel", "stride", "pad"), [(2, 2, 0), (3, 2, 1), (3, 1, 1)])
def test_pooling(op, kernel, stride, pad):
    shape = {"kernel_shape": [kernel, 1], "strides": [stride, 1], "pads": [pad, 0, pad, 0]}
    # A maximum does not depend visibly on every row of its window.
    check_accesses(one(op, IMAGE, **shape), exact=() if op == "MaxPool" else ("x",))


@pytest.mark.parametrize("automatic", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("kernel", "stride", "dilation"), [(1, 3, 1), (2, 2, 2), (3, 3, 2), (3, 2, 1)])
def test_pooling_that_pads_itself(automatic, kernel, stride, dilation):
    more = {"dilations": [dilation, 1], "ceil_mode": 1, "auto_pad": automatic}
    check_accesses(one("AveragePool", IMAGE, kernel_shape=[kernel, 1], strides=[stride, 1], **more))


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
def test_what_needs_all_rows_needs_its_operand_whole(op):
    check_accesses(one(op, IMAGE), whole=("x",))
    check_accesses(one("InstanceNormalization", IMAGE, {"s": weights(2), "b": weights(2)}), whole=("x",))


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_concatenation(axis):
    shapes = {"x": [2, 2, 4, 3], "z": [2, 2, 4, 3]}
    shapes["z"][axis] += 1
    check_accesses(one("Concat", shapes, axis=axis), exact=("x", "z"))


def test_a_tensor_below_itself_is_needed_whole():
    check_accesses(one("Concat", TOKENS, read=["x", "x"], axis=1), whole=("x",))
    check_accesses(one("Concat", TOKENS, read=["x", "x"], axis=2), exact=("x",))


def test_products():
    check_accesses(one("MatMul", {"x": (5, 4), "z": (4, 3)}), exact=("x",), whole=("z",))
    check_accesses(one("MatMul", {"x": (2, 5, 4), "z": (4, 3)}), exact=("x",), whole=("z",))
    check_accesses(one("MatMul", {"x": (5, 4), "z": (2, 4, 3)}), exact=("x",), whole=("z",))
    check_accesses(one("MatMul", {"x": (4,), "z": (4, 3)}), whole=("x", "z"))
    graph = check_accesses(one("MatMul", {"x": (1, 2, 5, 4), "z": (1, 2, 4, 3)}), exact=("x",), whole=("z",))
    assert graph.operators[0].macs == 2 * 5 * 4 * 3


def test_a_product_of_a_tensor_with_itself_needs_it_whole():
    check_accesses(one("MatMul", {"x": (4, 4)}, read=["x", "x"]), whole=("x",))


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("bias", [(5, 3), (1, 3), (3,)])
def test_general_products(transposed, bias):
    shapes = {"x": (4, 5) if transposed else (5, 4), "z": (4, 3), "c": bias}
    graph = check_accesses(
        one("Gemm", shapes, transA=transposed),
        exact=("x", "c") if bias == (5, 3) else ("x",),
        whole=("z",) if bias == (5, 3) else ("z", "c"),
    )
    assert graph.operators[0].macs == 5 * 4 * 3


@pytest.mark.parametrize(("opset", "axis"), [(20, 0), (20, 1), (20, 2), (11, 0), (11, 1), (11, 2)])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax(op, opset, axis):
    content = one(op, {"x": (2, 5, 4)}, opset=opset, axis=axis)
    by_rows = axis == 2 or (opset == 20 and axis == 0)
    check_accesses(content, exact=("x",) if by_rows else (), whole=() if by_rows else ("x",))


@pytest.mark.parametrize(("opset", "by_rows"), [(20, True), (11, False)])
def test_softmax_without_an_axis(opset, by_rows):
    content = one("Softmax", {"x": (2, 5, 4)}, opset=opset)
    check_accesses(content, exact=("x",) if by_rows else (), whole=() if by_rows else ("x",))


@pytest.mark.parametrize("axis", [-1, 1, 0])
def test_layer_normalization(axis):
    shape = (1, 5, 4)[axis:]
    content = one("LayerNormalization", TOKENS, {"s": weights(*shape), "b": weights(*shape)}, axis=axis)
    check_accesses(content, exact=("x",) if axis == -1 else (), whole=() if axis == -1 else ("x",))
    content = one("RMSNormalization", TOKENS, {"s": weights(*shape)}, axis=axis, opset=23)
    (operator,) = import_onnx(content).operators
    assert ("x" in operator.accesses) == (axis == -1)


def test_response_normalization_of_sequences():
    (operator,) = import_onnx(one("LRN", {"x": (1, 5, 4)}, size=3)).operators
    assert operator.accesses["x"].axis == 2, "channels are no rows"
    check_accesses(one("LRN", IMAGE, size=3), exact=("x",))


@pytest.mark.parametrize("perm", [None, [0, 2, 3, 1], [0, 2, 1, 3], [3, 2, 1, 0], [0, 1, 2, 3]])
def test_transposition(perm):
    more = {} if perm is None else {"perm": perm}
    check_accesses(one("Transpose", {"x": (2, 3, 4, 5)}, **more), exact=("x",))


def test_heads_split_off_by_a_view_keep_the_tokens_as_rows():
    nodes = [node("Reshape", "x", "s", outputs=["v"]), node("Transpose", "v", perm=[0, 2, 1, 3])]
    content = model(nodes, TOKENS, {"s": np.array([1, 5, 2, 2], INT)})
    graph = check_accesses(content, exact=("x",))
    access = graph.operators[0].accesses["x"]
    assert (access.axis, access.output_axis) == (1, 2)


def test_a_view_in_which_rows_are_other_rows_makes_the_operand_whole():
    nodes = [node("Reshape", "x", "s", outputs=["v"]), node("Softmax", "v")]
    check_accesses(model(nodes, TOKENS, {"s": np.array([1, 2, 10], INT)}), whole=("x",))


@FEW
@given(st.integers(-12, 8), st.integers(-12, 20), st.integers(1, 4))
def test_slices(begin, end, step):
    constants = {"s": [begin], "e": [end], "a": [2], "t": [step]}
    assume(len(range(9)[begin:end:step]) > 0)
    content = one("Slice", IMAGE, {name: np.array(value, INT) for name, value in constants.items()})
    check_accesses(content, exact=("x",))


def test_slices_that_are_not_by_rows():
    backwards = {"s": [8], "e": [-20], "a": [2], "t": [-1]}
    content = one("Slice", IMAGE, {name: np.array(value, INT) for name, value in backwards.items()})
    check_accesses(content, whole=("x",))
    other = {"s": [1], "e": [3], "a": [3]}
    content = one("Slice", IMAGE, {name: np.array(value, INT) for name, value in other.items()})
    check_accesses(content, exact=("x",))
    check_accesses(one("Slice", IMAGE, opset=9, starts=[3], ends=[8], axes=[2]), exact=("x",))


@FEW
@given(
    st.sampled_from(["nearest", "linear", "cubic"]),
    st.sampled_from(
        ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"]
    ),
    st.sampled_from(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]),
    st.sampled_from([1.0, 1.5, 2.0, 2.05, 3.0, 4.0]),
)
def test_resize(mode, place, rounding, factor):
    content = one(
        "Resize", {"x": (1, 1, 9, 5)}, {"scales": np.array([1, 1, factor, 1], np.float32)},
        read=["x", "", "scales"], mode=mode, coordinate_transformation_mode=place, nearest_mode=rounding,
    )  # fmt: skip
    check_accesses(content)


@pytest.mark.parametrize(("op", "opset"), [("Resize", 10), ("Upsample", 9)])
def test_resize_of_older_models(op, opset):
    scales = np.array([1, 1, 3, 1], np.float32)
    check_accesses(one(op, IMAGE, {"scales": scales}, opset=opset), exact=("x",))


def test_resize_by_sizes_and_named_axes():
    sizes = {"sizes": np.array([27], INT)}
    content = one("Resize", IMAGE, sizes, read=["x", "", "", "sizes"], axes=[2])
    check_accesses(content, exact=("x",))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("above", [0, 2, -2])
def test_padding(mode, above):
    pads = {"p": np.array([0, 0, above, 1, 0, 0, 1, 0], INT)}
    content = one("Pad", IMAGE, pads, mode=mode)
    by_rows = mode != "reflect"
    check_accesses(content, exact=("x",) if by_rows else (), whole=() if by_rows else ("x",))


def test_space_and_depth():
    check_accesses(one("DepthToSpace", {"x": (1, 8, 3, 2)}, blocksize=2), exact=("x",))
    check_accesses(one("SpaceToDepth", {"x": (1, 2, 6, 4)}, blocksize=2), exact=("x",))


@pytest.mark.parametrize("axes", [[0], [1], [2], [1, 2], []])
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("opset", [20, 11])
def test_reductions(axes, keep, opset):
    shape = {"x": (2, 5, 4)}
    if opset == 20:
        content = one("ReduceMean", shape, {"a": np.array(axes, INT)} if axes else None, keepdims=keep)
    else:
        content = one("ReduceMean", shape, opset=11, keepdims=keep, **({"axes": axes} if axes else {}))
    by_rows = axes in ([0], [2])
    check_accesses(content, exact=("x",) if by_rows else (), whole=() if by_rows else ("x",))


def test_elementwise_operators_and_what_is_spread_over_the_rows():
    check_accesses(one("Add", {"x": (1, 2, 4, 3), "z": (4, 3)}), exact=("x", "z"))
    check_accesses(one("Mul", {"x": (1, 2, 4, 3), "z": (2, 1, 3)}), exact=("x",), whole=("z",))
    check_accesses(one("Sub", {"x": (1, 2, 4, 3), "z": (3,)}), exact=("x",), whole=("z",))
    parameters = {name: weights(2) for name in "sbmv"}
    check_accesses(one("BatchNormalization", IMAGE, parameters), exact=("x",))
    check_accesses(one("Expand", {"x": (1, 1, 3)}, {"s": np.array([1, 5, 3], INT)}), whole=("x",))


def test_lookups():
    constants = {"i": np.array([2, 0], INT)}
    check_accesses(one("Gather", {"x": (2, 5, 4)}, constants, axis=2), exact=("x",))
    check_accesses(one("Gather", {"x": (2, 5, 4)}, constants, axis=1), whole=("x",))


def test_parts_of_a_split():
    sizes = np.array([2, 1], INT)
    content = model(
        [node("Split", "x", "s", outputs=["y", "z"], axis=1)], {"x": (1, 3, 5, 4)}, {"s": sizes},
        outputs=("y", "z"),
    )  # fmt: skip
    check_accesses(content, exact=("x",))
    content = model(
        [node("Split", "x", "s", outputs=["y", "z"], axis=2)], {"x": (1, 4, 3, 4)}, {"s": sizes},
        outputs=("y", "z"),
    )  # fmt: skip
    check_accesses(content, whole=("x",))


def test_an_operand_that_may_be_read_anywhere_is_whole():
    shapes = {"x": (1, 2, 5, 5), "offset": (1, 18, 5, 5)}
    content = one("DeformConv", shapes, {"w": weights(3, 2, 3, 3)}, read=["x", "w", "offset"], pads=[1] * 4)
    (operator,) = import_onnx(content).operators
    assert set(operator.accesses) == {"offset"}
    assert operator.macs == 3 * 25 * 2 * 9


def test_a_slice_whose_place_is_computed_is_refused_or_whole():
    nodes = [node("Cast", "p", outputs=["s"], to=7), node("Slice", "x", "s", "e", "a")]
    constants = {"e": np.array([9], INT), "a": np.array([2], INT)}
    with pytest.raises(InputError, match="shape"):
        import_onnx(model(nodes, {**IMAGE, "p": (1,)}, constants))
