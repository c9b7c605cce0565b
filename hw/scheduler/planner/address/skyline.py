"""Addresses by search: many short searches on a skyline, each with its own order of the blocks.

A good start ends after about one decision for each block; a bad start rarely recovers.  So each search has
few decisions, and the next one another order.  A search that is exhausted without a packing proves that there
is none.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from hw.scheduler.planner.address.blocks import AddressBlock
from hw.scheduler.planner.address.skyline_kernel import IMPOSSIBLE, PLACED, BlockArrays, descend, room_for
from hw.scheduler.planner.order.lattice import Integers
from hw.scheduler.planner.watch import current

#: Decisions of one search for each block, and its least number of decisions.
DECISIONS_PER_BLOCK, LEAST_DECISIONS = 6, 1000

#: Decisions times blocks of all searches together, proportional to their time: some seconds.
WORK = 200_000_000

#: Seed of the orders.
_SEED = 0

#: Random factors of an order's measures, in 16ths: from 14 to 18.
_CHANGE = (14, 19)


def search_addresses(
    squeezed: Sequence[AddressBlock], lasting: Sequence[int], capacity: int, *, searches: int
) -> tuple[str, tuple[int, ...]]:
    """Search for addresses of blocks; return the status as of a `Placement`, and the addresses if placed.

    ``squeezed``: blocks in squeezed steps. ``lasting``: length of each block in all steps. ``capacity``: in
    the unit of the sizes. ``searches``: most searches; fewer for thousands of blocks, see `WORK`.
    """
    first, last, size = np.array([(block.first, block.last, block.size) for block in squeezed], np.int64).T
    limit = max(LEAST_DECISIONS, DECISIONS_PER_BLOCK * len(size))
    searches = min(searches, 1 + WORK // (limit * len(size)))
    priorities = _priorities(size, np.array(lasting, np.int64), last - first + 1)
    watch = current()
    for priority in itertools.islice(priorities, searches):
        if watch.stopped:
            break
        blocks = _blocks(first, last, size, np.argsort(-priority, kind="stable"))
        sky, levels = room_for(blocks)
        status = descend(blocks, capacity, limit, sky, levels, watch.flag)
        if status == PLACED:
            return "placed", tuple(map(int, sky.address))
        if status == IMPOSSIBLE:
            return "infeasible", ()
    return "unknown", ()


def _priorities(size: Integers, lasting: Integers, span: Integers) -> Iterator[Integers]:
    """Yield measures of the blocks, then randomly changed ones; the greatest are tried first.

    All arithmetic is on integers, so that every machine yields the same orders.
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


def _blocks(first: Integers, last: Integers, size: Integers, order: Integers) -> BlockArrays:
    """Convert blocks into tables, each step's in the given order."""
    over: list[list[int]] = [[] for _ in range(int(last.max()) + 1)]
    for block in order:
        for step in range(first[block], last[block] + 1):
            over[step].append(int(block))
    return BlockArrays(
        first=first,
        last=last,
        size=size,
        over=np.array([block for blocks in over for block in blocks], np.int64),
        over_from=np.cumsum([0, *map(len, over)]),
    )
