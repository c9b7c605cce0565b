"""Shapes of normalizations, and of their parameters."""

from hw.scheduler.graph.importers.rules.call import Misfit, NodeCall, Shape, fits_into


def batch_normalization(call: NodeCall) -> list[Shape]:
    """BatchNormalization: (N, C, ...), or (N) of one channel; four parameters of (C)."""
    shape = call.shape(0)
    if not shape:
        raise Misfit(f"shape of {call.label(0)}", shape, "of at least 1 dimension")
    channels = shape[1:2] or (1,)
    if not call.number("spatial", 1):  # before version 9: also a value for each pixel
        channels = shape[1:]
    for position in range(1, 5):
        call.shape(position)
        call.expect(position, channels, why=f", a value for each channel of {call.label(0)} {shape}")
    return [shape, *[channels] * 4]


def instance_normalization(call: NodeCall) -> list[Shape]:
    """InstanceNormalization: (N, C, D1 ...), scale and bias of (C)."""
    shape = call.spatial()
    for position in (1, 2):
        call.shape(position)
        call.expect(position, shape[1:2], why=f", a value for each channel of {call.label(0)} {shape}")
    return [shape]


def group_normalization(call: NodeCall) -> list[Shape]:
    """GroupNormalization: (N, C, D1 ...); scale and bias have a value a group before version 21, a value a
    channel since.
    """
    shape, groups = call.spatial(), call.number("num_groups", None, 1)
    if shape[1] % groups:
        raise Misfit("num_groups", groups, f"a divisor of {shape[1]}, the channels of {call.label(0)}")
    each, of = (groups, "group") if call.opset < 21 else (shape[1], "channel")
    for position in (1, 2):
        call.shape(position)
        call.expect(position, (each,), why=f", a value for each {of} (version {call.opset})")
    return [shape]


def layer_normalization(call: NodeCall) -> list[Shape]:
    """LayerNormalization, RMSNormalization, SimplifiedLayerNormalization: over all dimensions from ``axis``
    on; scale and bias are broadcast into these.
    """
    shape = call.shape(0)
    axis = call.axis(len(shape), -1)
    for position in range(1, 3):
        fits_into(call, position, shape)
    row = (*shape[:axis], *(1 for _ in shape[axis:]))
    return [shape, row, row]


def skip_normalization(call: NodeCall) -> list[Shape]:
    """onnxruntime's SkipLayerNormalization and SkipSimplifiedLayerNormalization: (B, S, C) or (T, C), a skip
    of the same shape or one for the whole batch, vectors of (C).
    """
    shape = call.shape(0)
    call.shape(1)
    if len(shape) not in (2, 3):
        raise Misfit(f"shape of {call.label(0)}", shape, "of 2 or 3 dimensions")
    call.expect(1, shape, shape[1:] if len(shape) == 3 else shape, (1, *shape[1:]))
    for position in range(2, len(call.shapes)):
        call.expect(position, shape[-1:], why=f", the last dimension of {call.label(0)} {shape}")
    row = (*shape[:-1], 1)
    return [shape, row, row, shape]


def response_normalization(call: NodeCall) -> list[Shape]:
    """LRN: (N, C, D1 ...)."""
    shape = call.spatial()
    call.number("size", None, 1)
    return [shape]


def softmax(call: NodeCall) -> list[Shape]:
    """Softmax, LogSoftmax: along an axis; before version 13 over all dimensions from it on."""
    shape = call.shape(0)
    # Before version 13 an operand of one dimension has no axis 1.
    call.axis(len(shape), -1 if call.opset >= 13 or len(shape) == 1 else 1)
    return [shape]
