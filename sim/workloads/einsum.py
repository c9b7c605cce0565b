"""Sums of products over loops: the convolution or matrix product that an einsum is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sim.workloads.layers import Convolution, Other, Product, Work

#: An axis of a tensor: loops by name, each times a factor, added up.
Axis = Mapping[str, int]
#: Pads of a map's axis, before and after, by the name of the axis's first loop.
Pads = Mapping[str, tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
class Operand:
    """A tensor of an einsum."""

    name: str
    axes: tuple[Axis, ...]

    @property
    def plain(self) -> set[str]:
        """Loops that are an axis alone."""
        return {name for axis in self.axes for name in axis if len(axis) == 1}

    @property
    def windows(self) -> list[Axis]:
        """Axes of several loops: a window slides along them."""
        return [axis for axis in self.axes if len(axis) > 1]


def classified(
    result: Operand, operands: Sequence[Operand], sizes: Mapping[str, int], pads: Pads | None = None
) -> tuple[Work, int]:
    """Return the work of a sum of products of two operands, and the times that it is done."""
    if len(operands) != 2:
        return Other(reason="no product of two tensors"), 1
    slid = [operand for operand in operands if operand.windows]
    if result.windows or len(slid) == 2:
        return Other(reason="windows in the result or in both operands"), 1
    if slid:
        (map_,) = slid
        weights = next(operand for operand in operands if operand is not map_)
        return _convolution(result, map_, weights, sizes, pads or {})
    return _product(result.plain, operands[0].plain, operands[1].plain, sizes)


def _product(made: set[str], one: set[str], other: set[str], sizes: Mapping[str, int]) -> tuple[Work, int]:
    inner = (one & other) - made
    if not inner:
        return Other(reason="elementwise"), 1
    if any(sizes[name] > 1 for name in (one | other) - made - inner):
        return Other(reason="a sum over a loop of one operand"), 1
    work = Product(
        rows=_extent((one - other) & made, sizes),
        columns=_extent((other - one) & made, sizes),
        inner=_extent(inner, sizes),
    )
    return work, _extent(one & other & made, sizes)


def _convolution(
    result: Operand, map_: Operand, weights: Operand, sizes: Mapping[str, int], pads: Pads
) -> tuple[Work, int]:
    windows = map_.windows
    if len(windows) > 2 or any(len(axis) > 2 for axis in windows):
        return Other(reason="a window of more than two axes"), 1
    made, read, of_weights = result.plain, map_.plain, weights.plain
    sides = []
    for axis in windows:
        outer = [name for name in axis if name in made]
        inner = [name for name in axis if name in of_weights and name not in made]
        if len(outer) != 1 or len(inner) != 1:
            return Other(reason="a window along no axis of the result"), 1
        (outer_one,), (inner_one,) = outer, inner
        sides.append((sizes[outer_one], sizes[inner_one], axis[outer_one], axis[inner_one], outer_one))
    sides = [(1, 1, 1, 1, "")] * (2 - len(sides)) + sides
    slid = {name for axis in windows for name in axis}
    inner_loops = (read & of_weights) - made
    groups = read & of_weights & made
    left = (read | of_weights | made) - slid - inner_loops - groups - (read & made) - (of_weights & made)
    if any(sizes[name] > 1 for name in left):
        return Other(reason="a sum over a loop of one operand"), 1
    group = _extent(groups, sizes)
    before = [pads.get(side[-1], (0, 0)) for side in sides]
    size = [
        stride * (out - 1) + dilation * (kernel - 1) + 1 - sum(pad)
        for (out, kernel, stride, dilation, _), pad in zip(sides, before, strict=True)
    ]
    work = Convolution(
        channels=group * _extent(inner_loops, sizes),
        rows=size[0],
        columns=size[1],
        outputs=group * _extent((of_weights & made) - groups - slid, sizes),
        kernel=(sides[0][1], sides[1][1]),
        strides=(sides[0][2], sides[1][2]),
        dilations=(sides[0][3], sides[1][3]),
        pads=(before[0][0], before[1][0], before[0][1], before[1][1]),
        group=group,
    )
    return work, _extent((read & made) - groups - slid, sizes)


def _extent(loops: set[str], sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[name] for name in loops)
