"""ONNX's plain operators on real numbers behind integers: each returns the operator that awaits its scale."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from hw.network.graph.integers import output_scales
from hw.network.graph.network import (
    AveragePool,
    Concat,
    Convolution,
    MaxPool,
    Product,
    Softmax,
    Sum,
    Value,
    Window,
)
from hw.network.graph.refs import (
    FLAT_CHW,
    FLAT_HWC,
    NCHW,
    NHWC,
    VECTOR,
    Array,
    Constant,
    Pending,
    Real,
)
from hw.network.graph.views import Shape, UnsupportedError, attributes_of, hwc

#: Why a product with a bias that is no constant is refused.
COMPUTED_BIAS = "its bias is no constant"
#: First operator set whose Softmax is over one dimension, not over all from one on.
_SOFTMAX_OVER_ONE = 13


@dataclass(frozen=True, kw_only=True)
class Call:
    """One node with its operands."""

    node: onnx.NodeProto
    operands: Sequence[Real | Constant | Array | None]
    values: Mapping[str, Value]
    constants: Mapping[str, Any]  #: Of the model, by name.
    output: Shape  #: Shape of the first result.
    opset: int  #: Version of the operator set that the plain operator is of.
    constant: Callable[[Constant, tuple[int, int, int]], str]  #: Makes a constant a value of the network.

    @property
    def attributes(self) -> dict[str, Any]:
        """The node's attributes."""
        return attributes_of(self.node)

    @property
    def name(self) -> str:
        """The node's name, or its result's."""
        return self.node.name or self.node.output[0]

    def real(self, position: int = 0) -> tuple[Real, Value]:
        """Return an operand that is a value of the network."""
        operand = self.operands[position] if position < len(self.operands) else None
        if not isinstance(operand, Real):
            raise UnsupportedError(f"operand {position} is not a quantized tensor")
        return operand, self.values[operand.value]

    def pending(self, kind: str, inputs: tuple[str, ...], order: str, **fields: Any) -> Pending:
        """Return the operator, with the shape of the node's result."""
        flat = order in (FLAT_CHW, FLAT_HWC)
        shape = self.values[inputs[0]].shape if flat else hwc(self.output, order)
        return Pending(kind=kind, node=self.name, inputs=inputs, order=order, shape=shape, fields=fields)


def bounds(node: onnx.NodeProto, constants: Mapping[str, Any]) -> tuple[float, float]:
    """Return the bounds that a Relu or Clip sets."""
    if node.op_type == "Relu":
        return 0.0, math.inf
    found = attributes_of(node)
    ends = [found.get("min", -math.inf), found.get("max", math.inf)]
    for index, name in enumerate(node.input[1:3]):
        if name:
            if name not in constants:
                raise UnsupportedError("a bound that is computed while it runs")
            ends[index] = float(np.asarray(constants[name]).reshape(-1)[0])
    return ends[0], ends[1]


def _window(call: Call, kernel: Sequence[int], before: tuple[int, int], *, fits: bool) -> Window:
    """Return the window of a convolution or pool; with ``fits`` its end pads grow to the stated result."""
    found = call.attributes
    strides = tuple(found.get("strides") or (1, 1))
    dilations = tuple(found.get("dilations") or (1, 1))
    if len(kernel) != 2:
        raise UnsupportedError(f"a kernel of {len(kernel)} dimensions: 2")
    top, left, bottom, right = found.get("pads") or (0, 0, 0, 0)
    mode = found.get("auto_pad", b"NOTSET")
    spans = [dilation * (size - 1) + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    after = call.output[2:]
    lacks = [
        max(0, (out - 1) * stride + span - size)
        for out, stride, span, size in zip(after, strides, spans, before, strict=True)
    ]
    if mode in (b"SAME_UPPER", b"SAME_LOWER"):
        up = mode == b"SAME_LOWER"
        top, left = ((lack + up) // 2 for lack in lacks)
        bottom, right = lacks[0] - top, lacks[1] - left
    elif fits:
        bottom, right = max(bottom, lacks[0] - top), max(right, lacks[1] - left)
    return Window(
        kernel=(kernel[0], kernel[1]),
        strides=(strides[0], strides[1]),
        dilations=(dilations[0], dilations[1]),
        pads=(top, left, bottom, right),
    )


def _weights(operand: Real | Constant | Array | None, axis: int) -> Constant:
    """Return quantized weights whose columns lie along ``axis``."""
    if not isinstance(operand, Constant):
        raise UnsupportedError("its weights are not quantized constants")
    for array in (operand.scales, operand.zeros):
        if array.size > 1 and (array.ndim > 1 or operand.axis != axis % operand.stored.ndim):
            raise UnsupportedError("its weights have other scales than one, or one a column")
    if not (np.isfinite(operand.scales) & (operand.scales >= 0)).all():
        raise UnsupportedError("a scale of its weights is negative or not finite")
    centered = operand.centered
    if centered.min(initial=0) < -128 or centered.max(initial=0) > 127:
        raise UnsupportedError("its weights less their zero point exceed int8")
    return operand


def check_sums(convolution: Convolution, before: Value, after: Value) -> None:
    """Refuse a column whose sums can exceed int32, unless all of its results are the zero point."""
    columns = convolution.weights.reshape(-1, convolution.weights.shape[-1])
    if before.group_shifts:
        columns = columns * (1 << np.resize(before.lifts, len(columns)))[:, np.newaxis]
    up, down = (end(columns, 0).sum(axis=0, dtype=np.int64) for end in (np.maximum, np.minimum))
    low, high = -128 - before.zero, 127 - before.zero
    least, most = (one * low + other * high + convolution.bias for one, other in ((up, down), (down, up)))
    factors = output_scales(before.finest_scale, convolution.weight_scales, after.scale)
    beyond = (least < -(2**31)) | (most > 2**31 - 1)
    if (beyond & (np.maximum(-least, most) * factors >= 0.5)).any():
        raise UnsupportedError(f"sums of {convolution.name} with its weights and bias can exceed int32")


def _bias(call: Call, position: int, units: Array) -> Array:
    """Return the bias in units of the sums; 0 where there is none."""
    operand = call.operands[position] if position < len(call.operands) else None
    if operand is None:
        return np.zeros(len(units), np.int32)
    if isinstance(operand, Real):
        raise UnsupportedError(COMPUTED_BIAS)
    if isinstance(operand, Constant):
        if np.allclose(np.broadcast_to(operand.scales, units.shape), units, rtol=1e-5):
            bias = operand.centered.reshape(-1)
        else:
            bias = _in_units(operand.real, units)
    elif operand.dtype.kind in "iu":  # of a QLinear operator
        bias = np.asarray(operand).reshape(-1)
    else:
        bias = _in_units(np.asarray(operand, np.float64), units)
    if not np.abs(bias.astype(np.float64)).max(initial=0) <= 2**31 - 1:
        raise UnsupportedError("its bias is not finite, or exceeds int32")
    return np.broadcast_to(bias.astype(np.int32), units.shape).copy()


def _in_units(real: Array, units: Array) -> Array:
    """Return real numbers in these units, rounded; 0 stays 0 in units of 0."""
    found = real.reshape(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(found == 0, 0, np.rint(found / units))


def _conv(call: Call) -> Pending:
    source, before = call.real()
    if source.order != NCHW:
        raise UnsupportedError("its input is no image")
    constant = _weights(call.operands[1], 0)
    weights = constant.centered.astype(np.int8)
    if weights.ndim != 4:
        raise UnsupportedError(f"weights of {weights.ndim} dimensions: 4")
    weights = weights.transpose(2, 3, 1, 0)
    scales = np.broadcast_to(constant.scales.astype(np.float32).reshape(-1), weights.shape[3:])
    bias = _bias(call, 2, np.float64(before.scale) * scales.astype(np.float64))
    return call.pending(
        Convolution.kind,
        (source.value,),
        NCHW,
        weights=weights.copy(),
        bias=bias,
        weight_scales=scales.copy(),
        window=_window(call, weights.shape[:2], before.shape[:2], fits=False),
        groups=call.attributes.get("group", 1),
    )


def _product(call: Call, *, transposed: bool) -> Pending:
    """Return a product of a vector and a constant matrix, as a convolution over the whole image."""
    source, before = call.real()
    height, width, channels = before.shape
    constant = _weights(call.operands[1], 0 if transposed else -1)
    matrix = constant.centered.astype(np.int8)
    if matrix.ndim != 2 or source.order == NCHW or source.order == NHWC:
        raise UnsupportedError("a product that is no vector times a matrix")
    if transposed:
        matrix = matrix.T
    columns = matrix.shape[1]
    if source.order == FLAT_CHW:
        weights = matrix.reshape(channels, height, width, columns).transpose(1, 2, 0, 3)
    else:
        weights = matrix.reshape(height, width, channels, columns)
    scales = np.broadcast_to(constant.scales.astype(np.float32).reshape(-1), (columns,))
    bias = _bias(call, 2, np.float64(before.scale) * scales.astype(np.float64))
    return call.pending(
        Convolution.kind,
        (source.value,),
        VECTOR,
        weights=weights.copy(),
        bias=bias,
        weight_scales=scales.copy(),
        window=Window(kernel=(height, width)),
    )


def _matmul(call: Call) -> Pending:
    return _product(call, transposed=False)


def _gemm(call: Call) -> Pending:
    found = call.attributes
    if found.get("alpha", 1.0) != 1 or found.get("beta", 1.0) != 1 or found.get("transA", 0):
        raise UnsupportedError("alpha, beta or transA")
    return _product(call, transposed=bool(found.get("transB", 0)))


def _pair(kind: str) -> Callable[[Call], Pending]:
    """Return the rule of an element-wise operator of two operands."""

    def rule(call: Call) -> Pending:
        reals = [each for each in call.operands if isinstance(each, Real)]
        if not reals or len(call.operands) != 2:
            raise UnsupportedError("no operand is a quantized tensor")
        order = reals[0].order
        names: list[str] = []
        places = sorted(range(2), key=lambda place: not isinstance(call.operands[place], Real))
        for operand in (call.operands[place] for place in places):
            if isinstance(operand, Real):
                if operand.order != order:
                    raise UnsupportedError("operands of different orders of dimensions")
                names.append(operand.value)
            elif isinstance(operand, Constant):
                channels = call.values[reals[0].value].shape[2]
                names.append(call.constant(operand, _constant_shape(operand.stored.shape, order, channels)))
            else:
                raise UnsupportedError("an operand is not quantized")
        # The second may have one pixel for all.
        pixels = [int(np.prod(call.values[name].shape[:2])) for name in names]
        if pixels[0] < pixels[1]:
            names.reverse()
            places.reverse()
        first, second = (call.values[name].shape for name in names)
        if second[:2] not in (first[:2], (1, 1)) or (
            first[2] != second[2] and 1 not in (first[2], second[2])
        ):
            raise UnsupportedError(f"shapes {first} and {second}: equal, or one pixel or one channel for all")
        fields = {"last": places.index(_added_last(call))} if kind == Sum.kind else {}
        return call.pending(kind, tuple(names), order, **fields)

    return rule


def _added_last(call: Call) -> int:
    """Return the place of the operand that onnxruntime's QLinearAdd adds last.

    It is the first one.  Where that is the same along the innermost dimension, the kernel swaps them.
    """
    shapes = []
    for operand in call.operands:
        if isinstance(operand, Real):
            height, width, channels = call.values[operand.value].shape
            sizes = {"N": 1, "C": channels, "H": height, "W": width}
            shapes.append([sizes[name] for name in operand.order])
        else:
            assert isinstance(operand, Constant)
            shapes.append(list(operand.stored.shape))
    sides = itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    first, second = next((side for side in sides if side != (1, 1)), (1, 1))
    return int(first == 1 and second != 1)


def _constant_shape(shape: Shape, order: str, channels: int) -> tuple[int, int, int]:
    """Return height, width and channels of a constant that is the same for all pixels."""
    if order not in (NCHW, NHWC, VECTOR):
        raise UnsupportedError("a constant beside a flattened image")
    whole = (1,) * (len(order) - len(shape)) + tuple(shape)
    found = hwc(whole, order)
    if found not in ((1, 1, 1), (1, 1, channels)):
        raise UnsupportedError(f"a constant of shape {shape}: one pixel or element for all")
    return 1, 1, channels


def _pool(kind: str) -> Callable[[Call], Pending]:
    """Return the rule of a pool."""

    def rule(call: Call) -> Pending:
        source, before = call.real()
        found = call.attributes
        if source.order != NCHW:
            raise UnsupportedError("its input is no image")
        window = _window(call, found["kernel_shape"], before.shape[:2], fits=True)
        fields: dict[str, Any] = {"window": window}
        if kind == AveragePool.kind:
            fields["counts_pads"] = bool(found.get("count_include_pad", 0))
            fields["zero_first"] = True  # the kernels of other means round before
            if fields["counts_pads"] and found.get("ceil_mode", 0):
                raise UnsupportedError("ceil_mode with count_include_pad")
        if found.get("storage_order", 0) or len(call.node.output) > 1:
            raise UnsupportedError("indices of the greatest values")
        return call.pending(kind, (source.value,), NCHW, **fields)

    return rule


def _global_average(call: Call) -> Pending:
    source, before = call.real()
    order = source.order
    if order not in (NCHW, NHWC) or call.attributes.get("channels_last", 0) != (order == NHWC):
        raise UnsupportedError("its input is no image")
    return call.pending(AveragePool.kind, (source.value,), order, window=Window(kernel=before.shape[:2]))


def _reduce_mean(call: Call) -> Pending:
    source, before = call.real()
    axes = call.attributes.get("axes")
    if axes is None and len(call.node.input) > 1:
        axes = np.asarray(call.constants[call.node.input[1]]).reshape(-1)
    image = {axis for axis, letter in enumerate(source.order) if letter in "HW"}
    if (
        source.order not in (NCHW, NHWC)
        or {int(axis) % 4 for axis in ([] if axes is None else axes)} != image
    ):
        raise UnsupportedError("a mean over other dimensions than height and width")
    order = source.order if call.attributes.get("keepdims", 1) else VECTOR
    return call.pending(AveragePool.kind, (source.value,), order, window=Window(kernel=before.shape[:2]))


def _concat(call: Call) -> Pending:
    reals = [call.real(position)[0] for position in range(len(call.operands))]
    order = reals[0].order
    axis = call.attributes.get("axis", 1)
    if len({real.order for real in reals}) > 1 or order not in (NCHW, NHWC, VECTOR):
        raise UnsupportedError("operands of different orders of dimensions")
    if order[axis % len(order)] != "C":
        raise UnsupportedError("along another dimension than the channels")
    return call.pending(Concat.kind, tuple(real.value for real in reals), order)


def _softmax(call: Call) -> Pending:
    source, before = call.real()
    order = source.order
    axis = call.attributes.get("axis", -1 if call.opset >= _SOFTMAX_OVER_ONE else 1)
    if order not in (NCHW, NHWC, VECTOR) or order[axis % len(order)] != "C":
        raise UnsupportedError("over another dimension than the channels")
    height, width, _ = before.shape
    if call.opset < _SOFTMAX_OVER_ONE and order == NCHW and height * width > 1:
        raise UnsupportedError(f"over all dimensions from the channels on, as before set {_SOFTMAX_OVER_ONE}")
    return call.pending(Softmax.kind, (source.value,), order)


PLAIN: dict[str, Callable[[Call], Pending]] = {
    "Conv": _conv,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Add": _pair(Sum.kind),
    "Mul": _pair(Product.kind),
    "MaxPool": _pool(MaxPool.kind),
    "AveragePool": _pool(AveragePool.kind),
    "GlobalAveragePool": _global_average,
    "ReduceMean": _reduce_mean,
    "Concat": _concat,
    "Softmax": _softmax,
}
