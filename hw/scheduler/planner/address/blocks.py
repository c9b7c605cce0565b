"""Blocks, rectangles of steps by words, that want addresses; and the orders in which they are tried."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True, order=True)
class Block:
    """Words that are needed over steps, both included, at one address."""

    first: int
    last: int
    size: int


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where blocks lie."""

    addresses: tuple[int, ...]  #: In the order of the blocks; empty when they were not placed.
    #: ``height``, ``live``: words from address 0 to the end of the highest block; most words needed at once,
    #: which no height is below.
    height: int
    live: int
    status: str  #: ``placed``, ``infeasible`` (proven) or ``unknown`` (a limit was met).
    #: ``solver``, ``note``: names and versions of what decided; a fallback, a limit that stopped it.
    solver: str
    note: str = ""


def squeeze(blocks: Sequence[Block]) -> list[Block]:
    """Count only the steps in which a block begins: between them nothing new meets."""
    begins = sorted({block.first for block in blocks})
    return [
        replace(block, first=bisect_left(begins, block.first), last=bisect_right(begins, block.last) - 1)
        for block in blocks
    ]


def live_in_steps(squeezed: Sequence[Block]) -> list[int]:
    """Words needed in each squeezed step."""
    change = [0] * (max((block.last for block in squeezed), default=-1) + 2)
    for block in squeezed:
        change[block.first] += block.size
        change[block.last + 1] -= block.size
    return list(itertools.accumulate(change[:-1]))


def hardest_first(blocks: Sequence[Block], lasting: Sequence[int]) -> dict[str, list[int]]:
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
