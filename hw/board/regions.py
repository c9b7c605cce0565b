"""Regions: which parts of a kernel lie on which die.

A kernel that no die has room for is cut where the generator says, into groups of placed parts; everything
that no group names lies where the memory's ports are.  The estimate of the timing charges the nets between
regions, and the package gives the regions to the placer: both read the same object.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from hw.board.board import Board
from hw.board.resources import MOST_SHARES, Resources


@dataclass(frozen=True, kw_only=True)
class Region:
    """What lies on one die."""

    slr: int  #: Number of the die.
    #: Paths of placed parts within the kernel (``"body.core.rows_0_8"``), with all in them.
    parts: tuple[str, ...]
    rest: bool = False  #: Whether everything that no region names lies here, too.


#: A kernel on the die of the memory's ports, without a cut.
Regions = tuple[Region, ...]


def undivided(board: Board) -> Regions:
    """Return the region of a kernel that lies beside the memory's ports as a whole."""
    return (Region(slr=board.memory.slr, parts=(), rest=True),)


def divide(board: Board, rest: Resources, groups: Sequence[Resources]) -> tuple[int, ...]:
    """Split groups of parts, in order, over as few dies as hold them.

    ``board``: its dies have even shares of what is the user's, of which `MOST_SHARES` may be taken. ``rest``:
    what lies on the first die in any case. ``groups``: what each group takes.

    Returns
    -------
    How many groups lie on each die, the memory's first, then by distance from it: of all splits over these
    dies the one whose fullest die is the least full.  Where nothing fits, over all dies.
    """
    # What the first n groups take together, so that a run of them is a difference.
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
    """Return the regions of groups that `divide` split; each group is the paths of its parts."""
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
