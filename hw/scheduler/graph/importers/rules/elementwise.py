"""Shapes of elementwise operators and of quantization."""

import math

from hw.scheduler.graph.importers.rules.call import (
    MAX_EXTENT,
    Misfit,
    NodeCall,
    Shape,
    broadcast,
    fits_into,
    joined,
)


def unary(call: NodeCall) -> list[Shape]:
    """The shape of the only operand."""
    return [call.shape(0)]


def broadcast_together(call: NodeCall) -> list[Shape]:
    """Operands broadcast together; before version 7 the second into the first, from ``axis`` on."""
    if call.op in _TWO and call.opset < 7:
        return [_broadcast_from(call)]
    return [broadcast(call, *range(len(call.shapes)))]


_TWO = frozenset(["Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"])


def _broadcast_from(call: NodeCall) -> Shape:
    shape, other = call.shape(0), call.shape(1)
    if not call.number("broadcast", 0):
        call.expect(1, shape)
        return shape
    axis = call.number("axis", len(shape) - len(other))
    if not 0 <= axis <= len(shape) - len(other):
        raise Misfit("axis", axis, f"from 0 to {len(shape) - len(other)}")
    part = shape[axis : axis + len(other)]
    if joined(other, part) != part:
        raise Misfit(f"shape of {call.label(1)}", other, f"one that fits {part}")
    return shape


def clip(call: NodeCall) -> list[Shape]:
    """Clip: between two values."""
    for position in (1, 2):
        call.one(position)
    return [call.shape(0)]


def prelu(call: NodeCall) -> list[Shape]:
    """PRelu: slopes are broadcast into the operand; before version 7 one, or one a channel."""
    shape = call.shape(0)
    if call.opset < 7 and call.has(1) and call.shape(1) in ((1,), shape[1:2]):
        return [shape]
    call.shape(1)
    fits_into(call, 1, shape)
    return [shape]


def dropout(call: NodeCall) -> list[Shape]:
    """Dropout: the operand, and a mask of its shape."""
    for position in (1, 2):
        call.one(position)
    return [call.shape(0), call.shape(0)]


def trilu(call: NodeCall) -> list[Shape]:
    """Trilu: the last two dimensions are a matrix."""
    shape = call.shape(0)
    if len(shape) < 2:
        raise Misfit(f"shape of {call.label(0)}", shape, "of at least 2 dimensions")
    call.one(1)
    return [shape]


def quantization(call: NodeCall) -> list[Shape]:
    """QuantizeLinear, DequantizeLinear: one scale, one an index of ``axis``, or one a block along it."""
    shape, scale = call.shape(0), call.shape(1)
    if call.has(2):
        legal = ((), (1,)) if scale in ((), (1,)) else (scale,)
        call.expect(2, *legal, why=f", as {call.label(1)}")
    block = call.number("block_size", 0, 0)
    if scale in ((), (1,)) and not block:
        return [shape]
    axis = call.axis(len(shape), 1)
    if block:
        blocks = tuple(-(-extent // block) if index == axis else extent for index, extent in enumerate(shape))
        call.expect(1, blocks, why=f": one a block of {block} along axis {axis} of {shape}")
    else:
        call.expect(1, (shape[axis],), why=f" or (): one an index of axis {axis} of {shape}")
    return [shape]


def dynamic_quantization(call: NodeCall) -> list[Shape]:
    """DynamicQuantizeLinear: numbers, their scale, their zero point."""
    return [call.shape(0), (), ()]


def constant_of_shape(call: NodeCall) -> list[Shape]:
    """ConstantOfShape: the operand's values are the shape."""
    sizes = call.whole(0) or []
    if sizes and min(sizes) < 0:
        raise Misfit(f"values of {call.label(0)}", sizes, "at least 0")
    return [tuple(sizes)]


def number_range(call: NodeCall) -> list[Shape]:
    """Range: from a start up to a limit in steps."""
    start, limit, step = (call.numbers(position)[0] for position in range(3))
    if not step or not all(map(math.isfinite, (start, limit, step))):
        raise Misfit("values of the operands", (start, limit, step), "finite, with a step that is not 0")
    return [(max(0, math.ceil((limit - start) / step)),)]


def eye_like(call: NodeCall) -> list[Shape]:
    """EyeLike: ones along a diagonal."""
    return [call.shape(0, 2)]


def one_hot(call: NodeCall) -> list[Shape]:
    """OneHot: an additional dimension of extent ``depth``."""
    indices, depth = call.shape(0), call.numbers(1)
    if len(depth) != 1 or not 0 <= depth[0] <= MAX_EXTENT:
        raise Misfit(f"values of {call.label(1)}", depth, "one value of at least 0")
    axis = call.axis(len(indices) + 1, -1)
    return [(*indices[:axis], int(depth[0]), *indices[axis:])]
