"""Shapes of convolutions and pooling: windows that slide over images."""

import math
from collections.abc import Sequence

from hw.scheduler.graph.importers.rules.call import Misfit, NodeCall, Shape, bounded

_SAME = ("SAME_UPPER", "SAME_LOWER")


def _window(call: NodeCall, count: int, kernel: Sequence[int]) -> tuple[list[int], list[int], list[int], str]:
    """Return the checked strides, pads and extents of the dilated kernel, and the mode of padding."""
    automatic = call.text("auto_pad", "NOTSET") or "NOTSET"
    if automatic not in ("NOTSET", "VALID", *_SAME):
        raise Misfit("auto_pad", automatic, "NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    strides = call.ints("strides", [1] * count, count)
    dilations = call.ints("dilations", [1] * count, count)
    pads = call.ints("pads", [0] * 2 * count, 2 * count)
    for name, values, least in (
        ("kernel_shape", kernel, 1),
        ("strides", strides, 1),
        ("dilations", dilations, 1),
        ("pads", pads, 0),
    ):
        if min(values) < least:
            raise Misfit(name, list(values), f"at least {least} each")
    if automatic != "NOTSET":
        if any(pads) and not call.op.endswith("Pool"):
            raise Misfit("pads", pads, f"left out: auto_pad is {automatic}")
        pads = [0] * 2 * count
    return strides, pads, [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)], automatic


def _slide(image: Shape, strides: list[int], pads: list[int], reach: list[int], *, ceil: bool) -> list[int]:
    """Positions of a window along each dimension of a padded image."""
    found, count = [], len(image)
    for index, (extent, stride, span) in enumerate(zip(image, strides, reach, strict=True)):
        room = extent + pads[index] + pads[index + count] - span
        # With rounding up, a window may reach beyond the padding.
        if room <= -stride or (room < 0 and not ceil):
            padded = extent + pads[index] + pads[index + count]
            raise Misfit("kernel", span, f"at most {padded}, the padded rows of dimension {index + 2}")
        places = (-(-room // stride) if ceil else room // stride) + 1
        # The last window begins in the image or in the padding before it, never in the padding behind it.
        if ceil and (places - 1) * stride >= extent + pads[index]:
            places -= 1
        found.append(places)
    return found


def _groups(call: NodeCall, channels: int, shape: Shape) -> int:
    group = call.number("group", 1, 1)
    if channels % group:
        raise Misfit("group", group, f"a divisor of {channels}, the channels of {call.label(0)} {shape}")
    return group


def _kernel(call: NodeCall, image: Shape) -> Shape:
    """Return the shape of the weights of a convolution, which has as many dimensions as the image."""
    weights = call.shape(1, len(image))
    stated = tuple(call.ints("kernel_shape", weights[2:]))
    if stated != weights[2:]:
        legal = f"{list(weights[2:])}, the kernel of {call.label(1)} {weights}"
        raise Misfit("kernel_shape", list(stated), legal)
    return weights


def convolution(call: NodeCall) -> list[Shape]:
    """Conv: image (N, C, D1 ...), weights (M, C / group, k1 ...), bias (M)."""
    image = call.spatial()
    weights, group = _kernel(call, image), _groups(call, image[1], image)
    if weights[1] * group != image[1]:
        legal = f"{image[1] // group}, the channels {image[1]} of {call.label(0)} over {group} groups"
        raise Misfit(f"channels of {call.label(1)} {weights}", weights[1], legal)
    if weights[0] % group:
        raise Misfit(f"filters of {call.label(1)} {weights}", weights[0], f"a multiple of {group} groups")
    call.expect(2, (weights[0],), why=f", the filters of {call.label(1)}")
    strides, pads, reach, automatic = _window(call, len(image) - 2, weights[2:])
    if automatic in _SAME:
        places = [-(-extent // stride) for extent, stride in zip(image[2:], strides, strict=True)]
    else:
        places = _slide(image[2:], strides, pads, reach, ceil=False)
    return [bounded((image[0], weights[0], *places))]


def transposed_convolution(call: NodeCall) -> list[Shape]:
    """ConvTranspose: image (N, C, D1 ...), weights (C, M / group, k1 ...), bias (M)."""
    image = call.spatial()
    weights, group, count = _kernel(call, image), _groups(call, image[1], image), len(image) - 2
    if weights[0] != image[1]:
        legal = f"{image[1]}, those of {call.label(0)} {image}"
        raise Misfit(f"channels of {call.label(1)} {weights}", weights[0], legal)
    filters = weights[1] * group
    call.expect(2, (filters,), why=f", the filters of {call.label(1)} in all groups")
    strides, pads, reach, automatic = _window(call, count, weights[2:])
    more = call.ints("output_padding", [0] * count)
    most = [
        max(stride, (span - 1) // max(1, size - 1))
        for stride, span, size in zip(strides, reach, weights[2:], strict=True)
    ]
    if len(more) != count or any(not 0 <= one < other for one, other in zip(more, most, strict=True)):
        legal = f"{count} values from 0 to below {most}, the larger of stride and dilation"
        raise Misfit("output_padding", more, legal)
    full = [
        (extent - 1) * stride + add + span
        for extent, stride, add, span in zip(image[2:], strides, more, reach, strict=True)
    ]
    stated = call.ints("output_shape")
    if stated:
        most = [extent + stride - 1 for extent, stride in zip(full, strides, strict=True)]
        if len(stated) != count or any(not 1 <= one <= two for one, two in zip(stated, most, strict=False)):
            raise Misfit("output_shape", stated, f"{count} values from 1 to {most}")
        places = stated
    elif automatic in _SAME:
        # Padding so that each row makes as many as the stride, if there are enough rows to cut off.
        same = (extent * stride for extent, stride in zip(image[2:], strides, strict=True))
        places = [min(one, other) for one, other in zip(full, same, strict=True)]
    else:
        places = [extent - pads[index] - pads[index + count] for index, extent in enumerate(full)]
    if min(places) < 1:
        raise Misfit("pads", pads, f"less than the rows {full} that the kernel makes")
    return [bounded((image[0], filters, *places))]


def deformable_convolution(call: NodeCall) -> list[Shape]:
    """DeformConv: image, weights, offsets of two a tap and group, bias, a mask of one a tap and group."""
    image, weights, offset = call.shape(0, 4), call.shape(1, 4), call.shape(2, 4)
    (result,) = convolution(
        NodeCall(
            op=call.op,
            shapes=(image, weights, call.shapes[3] if call.has(3) else None),
            values=(None,) * 3,
            attributes=call.attributes,
            opset=call.opset,
            labels=("X", "W", "B"),
        )
    )
    groups, taps = call.number("offset_group", 1, 1), math.prod(weights[2:])
    if image[1] % groups:
        raise Misfit("offset_group", groups, f"a divisor of {image[1]}, the channels of {call.label(0)}")
    legal = (image[0], 2 * groups * taps, *result[2:])
    if offset != legal:
        raise Misfit(f"shape of {call.label(2)}", offset, f"{legal}: two offsets a tap, group and output")
    call.expect(4, (image[0], groups * taps, *result[2:]), why=": one factor a tap, group and output")
    return [result]


def pooling(call: NodeCall) -> list[Shape]:
    """MaxPool, AveragePool, LpPool: the largest, mean or norm of each window of (N, C, D1 ...)."""
    image = call.spatial()
    count = len(image) - 2
    kernel = call.ints("kernel_shape", (), count)
    strides, pads, reach, automatic = _window(call, count, kernel)
    if any(pad >= kernel[index % count] for index, pad in enumerate(pads)):
        raise Misfit("pads", pads, f"less than kernel_shape {kernel}: a window would hold padding only")
    if automatic in _SAME:
        # Padded for a kernel without holes, as in onnxruntime; a dilated one then has fewer positions.
        for index, (extent, stride) in enumerate(zip(image[2:], strides, strict=True)):
            pads[index] = max(0, (-(-extent // stride) - 1) * stride + kernel[index] - extent)
    places = _slide(image[2:], strides, pads, reach, ceil=bool(call.number("ceil_mode", 0)))
    shape = bounded((*image[:2], *places))
    return [shape, shape]


def global_pooling(call: NodeCall) -> list[Shape]:
    """GlobalAveragePool, GlobalMaxPool: one value a channel."""
    image = call.spatial()
    return [(*image[:2], *(1 for _ in image[2:]))]
