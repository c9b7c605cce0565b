"""Shapes of views: the same elements under other extents."""

import math

from hw.scheduler.graph.importers.rules.call import Misfit, NodeCall, Shape, bounded, counted


def reshape(call: NodeCall) -> list[Shape]:
    """Reshape: 0 keeps an extent unless ``allowzero``, -1 takes the remaining elements."""
    shape, sizes = call.shape(0), call.whole(1, "shape")
    if sizes is None:
        raise Misfit("shape", None, "given")
    asked = list(sizes)
    field = f"view {asked} of {call.label(0)} {shape}"
    if not call.number("allowzero", 0):
        for index, extent in enumerate(sizes):
            if extent == 0 and index >= len(shape):
                raise Misfit(field, 0, f"without a 0 at {index}: the operand has no such dimension")
            sizes[index] = extent or shape[index]
    if sizes.count(-1) > 1 or min(sizes, default=0) < -1:
        raise Misfit("view", asked, "of extents of at least 0, and one -1 at the most")
    count = math.prod(shape)
    if -1 in sizes:
        others = math.prod(extent for extent in sizes if extent != -1)
        if not others or count % others:
            raise Misfit(
                f"elements of {field}", count, f"a multiple of {others}, which the view's others make"
            )
        sizes[sizes.index(-1)] = count // others
    if math.prod(sizes) != count:
        raise Misfit(f"elements of {field}", count, f"{math.prod(sizes)}, those of the view")
    return [bounded(sizes)]


def flatten(call: NodeCall) -> list[Shape]:
    """Flatten: two dimensions, from ``axis`` on the second."""
    shape = call.shape(0)
    axis = call.number("axis", 1)
    least = -len(shape) if call.opset >= 11 else 0
    if not least <= axis <= len(shape):
        raise Misfit("axis", axis, f"from {least} to {len(shape)}")
    axis = axis + len(shape) if axis < 0 else axis
    return [(math.prod(shape[:axis]), math.prod(shape[axis:]))]


def squeeze(call: NodeCall) -> list[Shape]:
    """Squeeze: removes dimensions of 1, all or those named."""
    shape, named = call.shape(0), call.whole(1, "axes")
    if not named:
        return [tuple(extent for extent in shape if extent != 1)]
    axes = {counted(axis, len(shape), "axes") for axis in named}
    if wrong := [axis for axis in sorted(axes) if shape[axis] != 1]:
        raise Misfit(f"dimension {wrong[0]} of {call.label(0)} {shape}", shape[wrong[0]], "1 to be left out")
    return [tuple(extent for index, extent in enumerate(shape) if index not in axes)]


def unsqueeze(call: NodeCall) -> list[Shape]:
    """Unsqueeze: inserts dimensions of 1 at the axes of the result."""
    shape, named = call.shape(0), call.whole(1, "axes")
    if named is None:
        raise Misfit("axes", None, "given")
    rank = len(shape) + len(named)
    axes, extents = call.axes(named, rank), iter(shape)
    return [tuple(1 if index in axes else next(extents) for index in range(rank))]
