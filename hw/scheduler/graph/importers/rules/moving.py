"""Shapes of operators that slice, join, transpose, gather and resize."""

import math
from typing import Any

import numpy as np

from hw.scheduler.graph.importers.rules.call import (
    Array,
    Misfit,
    NodeCall,
    Shape,
    Unknown,
    bounded,
    broadcast,
    counted,
)  # fmt: skip


def concatenation(call: NodeCall) -> list[Shape]:
    """Concat: joined along an axis; the other dimensions are equal."""
    first = call.shape(0)
    if call.opset >= 4:
        call.number("axis")
    axis = call.axis(len(first), 1)
    total = 0
    for position in range(len(call.shapes)):
        shape = call.shape(position, len(first))
        if any(
            one != other for index, (one, other) in enumerate(zip(shape, first, strict=True)) if index != axis
        ):
            legal = f"{first} but for dimension {axis}, as {call.label(0)}"
            raise Misfit(f"shape of {call.label(position)}", shape, legal)
        total += shape[axis]
    return [(*first[:axis], total, *first[axis + 1 :])]


def split(call: NodeCall) -> list[Shape]:
    """Split: parts along an axis, of stated sizes, or as equal as possible."""
    shape, count = call.shape(0), call.results
    axis = call.axis(len(shape))
    extent, sizes = shape[axis], call.whole(1, "split") or None
    stated = call.number("num_outputs", count)
    if stated != count:
        raise Misfit("num_outputs", stated, f"{count}, the outputs it has")
    if sizes is None and call.opset >= 18 and "num_outputs" not in call.attributes:
        raise Misfit("num_outputs", None, "given, or the sizes of the parts")
    if sizes is None:
        each = -(-extent // count)
        last = extent - each * (count - 1)
        if (call.opset < 18 and last != each) or last < (1 if extent else 0):
            legal = "one that can be split into so many parts"
            raise Misfit(f"dimension {axis} of {call.label(0)} {shape} in {count} parts", extent, legal)
        sizes = [each] * (count - 1) + [last]
    if len(sizes) != count or min(sizes) < 0 or sum(sizes) != extent:
        legal = f"{count} parts, {extent} rows in all, as dimension {axis} of {call.label(0)} {shape} has"
        raise Misfit("sizes of the parts", sizes, legal)
    return [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]


def slicing(call: NodeCall) -> list[Shape]:
    """Slice: from starts to ends in steps along some axes, clipped to the shape."""
    shape = call.shape(0)
    starts, ends = call.whole(1, "starts"), call.whole(2, "ends")
    if starts is None or ends is None:
        raise Misfit("starts and ends", None, "given")
    named, steps = call.whole(3, "axes"), call.whole(4)
    axes = call.axes(list(range(len(starts))) if named is None else named, len(shape))
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        counts = (len(starts), len(ends), len(axes), len(steps))
        raise Misfit("lengths of starts, ends, axes and steps", counts, "equal")
    if 0 in steps:
        raise Misfit("steps", steps, "not 0")
    result = list(shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        result[axis] = len(range(shape[axis])[slice(start, end, step)])
    return [tuple(result)]


def padding(call: NodeCall) -> list[Shape]:
    """Pad: rows added or removed before and behind each dimension."""
    shape = call.shape(0)
    pads = call.whole(1, "pads" if "pads" in call.attributes else "paddings")
    if pads is None:
        raise Misfit("pads", None, "given")
    call.one(2)
    named = call.whole(3)
    axes = call.axes(list(range(len(shape))) if named is None else named, len(shape))
    if len(pads) != 2 * len(axes):
        raise Misfit("pads", pads, f"{2 * len(axes)} values, two for each of axes {axes}")
    result, mirrored = list(shape), call.text("mode", "constant") == "reflect"
    for index, axis in enumerate(axes):
        before, behind = pads[index], pads[index + len(axes)]
        result[axis] += before + behind
        if result[axis] < 0:
            raise Misfit("pads", pads, f"no fewer than {-shape[axis]} in all along axis {axis} of {shape}")
        if mirrored and max(before, behind) >= max(shape[axis], 1):
            raise Misfit("pads", pads, f"less than {shape[axis]} along axis {axis}: what is reflected")
    return [bounded(result)]


def transposition(call: NodeCall) -> list[Shape]:
    """Transpose: the dimensions in another order."""
    shape = call.shape(0)
    order = call.ints("perm", list(reversed(range(len(shape)))))
    if sorted(order) != list(range(len(shape))):
        raise Misfit("perm", order, f"the {len(shape)} dimensions of {call.label(0)} {shape}, each once")
    return [tuple(shape[axis] for axis in order)]


def tiling(call: NodeCall) -> list[Shape]:
    """Tile: each dimension is repeated."""
    shape = call.shape(0)
    if call.opset < 6:
        times, axis = call.numbers(1), call.numbers(2)
        if len(times) != 1 or len(axis) != 1 or not all(map(math.isfinite, (*times, *axis))):
            raise Misfit("tiles and axis", (times, axis), "one value each")
        counts = [1] * len(shape)
        counts[counted(int(axis[0]), len(shape))] = int(times[0])
    else:
        counts = call.whole(1) or []
    if len(counts) != len(shape) or min(counts, default=0) < 0:
        raise Misfit("repeats", counts, f"{len(shape)} values of at least 0, one for each of {shape}")
    return [bounded([extent * count for extent, count in zip(shape, counts, strict=True)])]


def expansion(call: NodeCall) -> list[Shape]:
    """Expand: broadcast together with a shape."""
    sizes = call.whole(1) or []
    if min(sizes, default=0) < 0:
        raise Misfit(f"values of {call.label(1)}", sizes, "at least 0")
    together = NodeCall(
        op=call.op, shapes=(tuple(sizes), call.shape(0)), values=(None, None), attributes={}, opset=13,
        labels=("shape", "input"),
    )  # fmt: skip
    return [bounded(broadcast(together, 0, 1))]


def _in_range(call: NodeCall, position: int, values: Array | None, extent: int, what: str) -> None:
    if values is None or values.dtype.kind not in "iu" or not values.size:
        return
    low, high = int(values.min()), int(values.max())
    if low < -extent or high >= extent:
        wrong = low if low < -extent else high
        legal = f"from {-extent} to {extent - 1}, {what}"
        raise Misfit(f"indices of {call.label(position)}", wrong, legal)


def gather(call: NodeCall) -> list[Shape]:
    """Gather: rows along an axis, by index."""
    shape, indices = call.shape(0), call.shape(1)
    axis = call.axis(len(shape))
    _in_range(call, 1, call.values[1], shape[axis], f"rows of {call.label(0)} {shape} along axis {axis}")
    return [(*shape[:axis], *indices, *shape[axis + 1 :])]


def gather_nd(call: NodeCall) -> list[Shape]:
    """GatherND: elements or slices at several indices, behind dimensions of a batch."""
    shape, indices, batch = call.shape(0), call.shape(1), call.number("batch_dims", 0, 0)
    if not shape or not indices or batch >= min(len(shape), len(indices)):
        raise Misfit("batch_dims", batch, f"less than the dimensions of {shape} and of {indices}")
    if shape[:batch] != indices[:batch]:
        raise Misfit(
            f"batches of {call.label(1)} {indices}", indices[:batch], f"{shape[:batch]}, of the data"
        )
    depth = indices[-1]
    if not 1 <= depth <= len(shape) - batch:
        raise Misfit(f"last dimension of {call.label(1)} {indices}", depth, f"from 1 to {len(shape) - batch}")
    if (values := call.values[1]) is not None:
        for index in range(depth):
            what = f"rows of {call.label(0)} {shape} along axis {batch + index}"
            _in_range(call, 1, values[..., index], shape[batch + index], what)
    return [(*indices[:-1], *shape[batch + depth :])]


def gather_elements(call: NodeCall) -> list[Shape]:
    """GatherElements: an element for each index."""
    shape = call.shape(0)
    indices, axis = call.shape(1, len(shape)), call.axis(len(shape))
    _in_range(call, 1, call.values[1], shape[axis], f"rows of {call.label(0)} {shape} along axis {axis}")
    return [indices]


def depth_and_space(call: NodeCall) -> list[Shape]:
    """DepthToSpace, SpaceToDepth: channels become squares of pixels, or the reverse."""
    batch, channels, height, width = call.shape(0, 4)
    block = call.number("blocksize", None, 1)
    if call.op == "DepthToSpace":
        if channels % block**2:
            raise Misfit(f"channels of {call.label(0)}", channels, f"a multiple of {block**2}, the block")
        return [(batch, channels // block**2, height * block, width * block)]
    if height % block or width % block:
        raise Misfit(f"rows and columns of {call.label(0)}", (height, width), f"multiples of {block}")
    return [(batch, channels * block**2, height // block, width // block)]


def resizing(call: NodeCall) -> list[Shape]:
    """Resize, Upsample: by factors, or to sizes, of all dimensions or of some."""
    shape = call.shape(0)
    old = call.op == "Upsample" or call.opset < 11
    place = 1 if old else 2
    if call.op == "Upsample" and call.opset < 7:
        scales: list[Any] = [
            1.0,
            1.0,
            *(call.attributes.get(f"{name}_scale") for name in ("height", "width")),
        ]
    elif "scales" in call.attributes:
        scales = list(call.attributes["scales"])
    else:
        scales = call.numbers(place) if call.has(place) else []
    sizes = call.whole(3) if not old and call.has(3) else []
    axes = call.axes(call.ints("axes", range(len(shape))), len(shape))
    given = sizes or scales
    if bool(sizes) == bool(scales):
        raise Misfit("scales and sizes", (scales, sizes), "one of the two, the other left out")
    if len(given) != len(axes):
        raise Misfit(
            "sizes" if sizes else "scales", given, f"{len(axes)} values, one for each of axes {axes}"
        )
    if not all(isinstance(each, (int, float)) and math.isfinite(each) and each > 0 for each in given):
        raise Misfit("sizes" if sizes else "scales", given, "above 0")
    result = list(shape)
    policy = call.text("keep_aspect_ratio_policy", "stretch")
    if sizes and policy != "stretch":
        ratios = [size / shape[axis] for size, axis in zip(sizes, axes, strict=True)]
        factor = min(ratios) if policy == "not_larger" else max(ratios)
        sizes = [math.floor(factor * shape[axis] + 0.5) for axis in axes]
    for index, axis in enumerate(axes):
        # In float32, as runtimes do: 10 by 0.7 is 7 there.
        result[axis] = sizes[index] if sizes else int(np.float32(shape[axis]) * np.float32(scales[index]))
    return [bounded(result)]


def nonzero(call: NodeCall) -> list[Shape]:
    """NonZero, of a constant: a column for each element that is not 0."""
    if (value := call.values[0]) is None:
        raise Unknown
    return [(max(value.ndim, 1), int(np.count_nonzero(value)))]
