"""Addresses by search: many short searches on a skyline, each with its own order of the blocks.

A search that begins well is over after about as many decisions as there are blocks; one that does not rarely
recovers.  So each gets few decisions, and the next one another order.  A search that ends by itself without a
packing proves that there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hw.scheduler.planner.address.skyline_kernel import IMPOSSIBLE, PLACED, Blocks, descend, room_for
from hw.scheduler.planner.order.lattice import Integers

#: Decisions of one search for each block, and at least.
DECISIONS_PER_BLOCK, LEAST_DECISIONS = 6, 1000

#: Decisions times blocks of all searches together, which is what their time goes by: some seconds.
WORK = 200_000_000

#: Seed of the orders.
_SEED = 0

#: By how much an order's measures are changed at random, in 16ths: from 14 to 18 of them.
_CHANGE = (14, 19)


@dataclass(frozen=True, kw_only=True)
class Searched:
    """What searches found.

    Members
    -------
    status : str
        ``placed``, ``infeasible`` (proven) or ``unknown``.
    addresses : tuple of int
        Empty unless placed.
    searches, decisions : int
        How many it took.
    failures : tuple of int
        How often each step was where a search failed.
    """

    status: str
    addresses: tuple[int, ...]
    searches: int
    decisions: int
    failures: tuple[int, ...] = ()


def search_addresses(
    first: Sequence[int],
    last: Sequence[int],
    size: Sequence[int],
    lasting: Sequence[int],
    capacity: int,
    *,
    searches: int,
) -> Searched:
    """Search for addresses of blocks.

    Parameters
    ----------
    first, last : sequence of int
        Steps of each block, both included. Steps in which none begins should have been taken out.
    size : sequence of int
        Units.
    lasting : sequence of int
        Steps before they were taken out: how long a block lasts.
    capacity : int
        Units.
    searches : int
        How many to make before giving up; of thousands of blocks, fewer: see `WORK`.
    """
    begin, end, units = (np.array(each, np.int64) for each in (first, last, size))
    steps = int(end.max()) + 1
    limit = max(LEAST_DECISIONS, DECISIONS_PER_BLOCK * len(units))
    searches = min(searches, 1 + WORK // (limit * len(units)))
    decisions = 0
    failures = np.zeros(steps, np.int64)
    said = "unknown"
    for number, priority in enumerate(_priorities(units, np.array(lasting, np.int64), end - begin + 1)):
        if number == searches:
            break
        blocks = _blocks(begin, end, units, np.argsort(-priority, kind="stable"), steps)
        sky, levels, floor = room_for(blocks)
        status, made = descend(blocks, capacity, limit, sky, levels, floor)
        decisions += made
        failures += sky.failures - 1
        if status == PLACED:
            addresses = tuple(int(address) for address in sky.address)
            return Searched(status="placed", addresses=addresses, searches=number + 1, decisions=decisions)
        if status == IMPOSSIBLE:
            said, searches = "infeasible", number + 1
            break
    failed = tuple(map(int, failures))
    return Searched(status=said, addresses=(), searches=searches, decisions=decisions, failures=failed)


def _priorities(size: Integers, lasting: Integers, span: Integers) -> Iterator[Integers]:
    """Give measures of the blocks by turns, then the same changed at random; the greatest are tried first.

    Only integers take part, so that every machine gives the same orders.
    """
    measures = (
        size,
        span * (size.max() + 1) + size,
        size * span,
        size * lasting.max() + lasting * size.max(),
        size * lasting,
    )
    yield from measures
    generator = np.random.default_rng(_SEED)
    while True:
        for measure in measures:
            yield measure * generator.integers(*_CHANGE, len(size))


def _blocks(first: Integers, last: Integers, size: Integers, order: Integers, steps: int) -> Blocks:
    """Put blocks into tables, each step's in the given order."""
    over: list[list[int]] = [[] for _ in range(steps)]
    for block in order:
        for step in range(first[block], last[block] + 1):
            over[step].append(int(block))
    return Blocks(
        first=first,
        last=last,
        size=size,
        over=np.array([block for blocks in over for block in blocks], np.int64),
        over_from=np.cumsum([0, *map(len, over)]),
    )
