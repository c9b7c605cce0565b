"""Shapes of reductions, ArgMax and TopK."""

from hw.scheduler.graph.importers.rules.call import Misfit, NodeCall, Shape, counted


def reduction(call: NodeCall) -> list[Shape]:
    """ReduceSum and other reductions: over some axes, or all."""
    shape, rank = call.shape(0), len(call.shape(0))
    axes = call.whole(1, "axes")
    if not axes and call.number("noop_with_empty_axes", 0):
        return [shape]
    reduced = {counted(axis, rank, "axes") for axis in axes} if axes else set(range(rank))
    keep = call.number("keepdims", 1) == 1
    kept = (1 if index in reduced else extent for index, extent in enumerate(shape))
    return [tuple(extent for index, extent in enumerate(kept) if keep or index not in reduced)]


def arg_max(call: NodeCall) -> list[Shape]:
    """ArgMax, ArgMin: the index along an axis."""
    shape = call.shape(0)
    axis = call.axis(len(shape))
    return [(*shape[:axis], *(1,) * (call.number("keepdims", 1) == 1), *shape[axis + 1 :])]


def top_k(call: NodeCall) -> list[Shape]:
    """TopK: the largest along an axis, and their indices."""
    shape = call.shape(0)
    axis = call.axis(len(shape), -1)
    sizes = call.whole(1, "k") if call.has(1) else [call.number("k")]
    if not sizes or len(sizes) != 1 or not 0 <= sizes[0] <= shape[axis]:
        raise Misfit("K", sizes, f"one value from 0 to {shape[axis]}, the rows along axis {axis}")
    result = (*shape[:axis], sizes[0], *shape[axis + 1 :])
    return [result, result]
