"""Blocks (rectangles of steps by words) to be placed, and the orders in which they are tried."""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True, order=True)
class AddressBlock:
    """Words needed at one address from step ``first`` to ``last``, both included."""

    first: int
    last: int
    size: int


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Addresses of blocks."""

    addresses: tuple[int, ...]  #: In the order of the blocks; empty when they were not placed.
    #: ``height``, ``live``: words from address 0 to the end of the highest block; the most words needed at
    #: once, a lower bound of every height.
    height: int
    live: int
    status: str  #: ``placed``, ``infeasible`` (proven) or ``unknown`` (a limit was met).
    #: ``solver``, ``note``: name and version of the deciding solver; a fallback, a limit that stopped it.
    solver: str
    note: str = ""


def squeeze(blocks: Sequence[AddressBlock]) -> list[AddressBlock]:
    """Count only the steps in which a block begins: others add no new overlap."""
    begins = sorted({block.first for block in blocks})
    return [
        replace(block, first=bisect_left(begins, block.first), last=bisect_right(begins, block.last) - 1)
        for block in blocks
    ]


def live_in_steps(squeezed: Sequence[AddressBlock]) -> list[int]:
    """Words needed in each squeezed step."""
    change = [0] * (max((block.last for block in squeezed), default=-1) + 2)
    for block in squeezed:
        change[block.first] += block.size
        change[block.last + 1] -= block.size
    return list(itertools.accumulate(change[:-1]))


def hardest_first(blocks: Sequence[AddressBlock], lasting: Sequence[int]) -> dict[str, list[int]]:
    """Return orders of the blocks, hardest first."""
    live = live_in_steps(blocks)
    peak = [max(live[block.first : block.last + 1]) for block in blocks]
    area = [(block.last + 1 - block.first) * block.size for block in blocks]
    keys: dict[str, list[tuple[int, ...]]] = {
        "size": [(block.size,) for block in blocks],
        "contended": [(peak[i], lasting[i], block.size) for i, block in enumerate(blocks)],
        "area": [(size,) for size in area],
        "contended-area": [(peak[i], lasting[i] * block.size) for i, block in enumerate(blocks)],
        "long": [(lasting[i], block.size) for i, block in enumerate(blocks)],
    }
    return {
        name: sorted(range(len(blocks)), key=lambda index: key[index], reverse=True)
        for name, key in keys.items()
    }
