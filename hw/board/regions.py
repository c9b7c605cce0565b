"""Regions: the assignment of a kernel's parts to dies.

A kernel that fits no die is cut by its generator into groups of placed parts.  Parts without a group lie on
the die of the memory's ports.  The timing estimate charges the nets between regions, and the package passes
the regions to the placer: both read the same object.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from hw.board.board import Board
from hw.board.resources import MOST_SHARES, Resources


@dataclass(frozen=True, kw_only=True)
class Region:
    """The parts on one die."""

    slr: int  #: Number of the die.
    #: Paths of placed parts within the kernel (``"body.core.rows_0_8"``), with their contents.
    parts: tuple[str, ...]
    rest: bool = False  #: Whether parts without a region lie here, too.


#: A kernel on the die of the memory's ports, without a cut.
Regions = tuple[Region, ...]


def undivided(board: Board) -> Regions:
    """Return the region of a whole kernel on the die of the memory's ports."""
    return (Region(slr=board.memory.slr, parts=(), rest=True),)


def divide(board: Board, rest: Resources, groups: Sequence[Resources]) -> tuple[int, ...]:
    """Split groups of parts, in order, over the fewest dies that hold them.

    The dies of ``board`` have even shares of the user's resources, each usable up to `MOST_SHARES`. ``rest``:
    resources that the first die needs in any case. ``groups``: resources of each group.

    Returns the number of groups on each die, the memory's first, then by distance from it.  Of all splits the
    fullest die is the least full.  Groups that do not fit are split over all dies.
    """
    # Prefix sums of the groups' resources.
    sums = [tuple(count for _, count in held.items()) for held in itertools.accumulate(groups, initial=rest)]
    limits = [MOST_SHARES[name] * have for name, have in board.die.items()]

    def fullest(cuts: tuple[int, ...]) -> float:
        most = 0.0
        for n, (start, end) in enumerate(itertools.pairwise(cuts)):
            for last, first, limit in zip(sums[end], sums[start], limits, strict=True):
                need = last - first if n else last
                if need:
                    most = max(most, need / limit if limit else math.inf)
        return most

    for dies in range(1, board.slrs + 1):
        ends = itertools.combinations_with_replacement(range(len(groups) + 1), dies - 1)
        best = min(((0, *cuts, len(groups)) for cuts in ends), key=fullest)
        if fullest(best) <= 1:
            break
    return tuple(end - start for start, end in itertools.pairwise(best))


def regions_of(board: Board, counts: Sequence[int], groups: Sequence[Sequence[str]]) -> Regions:
    """Return the regions of groups split by `divide`; each group lists the paths of its parts."""
    dies = sorted(range(board.slrs), key=lambda slr: (abs(slr - board.memory.slr), slr))
    named = iter(groups)
    return tuple(
        Region(
            slr=slr,
            parts=tuple(part for group in itertools.islice(named, count) for part in group),
            rest=not n,
        )
        for n, (slr, count) in enumerate(zip(dies, counts, strict=False))
    )


def die_of(regions: Regions, path: str) -> int:
    """Return the die of a part by its path, ``""`` for the kernel itself."""
    for region in regions:
        if any(path == part or path.startswith(f"{part}.") for part in region.parts):
            return region.slr
    return next(region.slr for region in regions if region.rest)
