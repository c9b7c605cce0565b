"""First-fit, in many orders of the blocks if not all fit, so that the blocks left out are cheap.

A block that did not fit comes earlier in the next trial ("squeaky wheel" optimisation: Joslin and Clements,
JAIR 10, 1999).  The result is the cheapest trial.
"""

from collections.abc import Sequence

import numpy as np

from hw.scheduler.compiled import compiled
from hw.scheduler.planner.address.blocks import AddressBlock
from hw.scheduler.planner.order.lattice import Integers
from hw.scheduler.planner.watch import current

#: Address of a block that did not fit.
NOWHERE = -1

#: Most trials from each order of the blocks, and most comparisons of two blocks in all: some seconds.
TRIALS, _WORK = 200, 150_000_000

#: Least trials of a search that was asked to end.
_FEW = 10


@compiled
def fit(first: Integers, last: Integers, size: Integers, order: Integers, capacity: int) -> Integers:
    """Place one block after the other at its lowest free address; return the addresses.

    Blocks that would end above the capacity lie `NOWHERE`.
    """
    address = np.full(len(size), NOWHERE)
    low, placed = np.empty(len(size), np.int64), np.empty(len(size), np.int64)
    count = 0
    for block in order:
        met = 0
        for index in range(count):
            other = placed[index]
            if first[other] <= last[block] and first[block] <= last[other]:
                # Insertion sort by address: few blocks overlap.
                at = met
                while at > 0 and address[low[at - 1]] > address[other]:
                    low[at] = low[at - 1]
                    at -= 1
                low[at] = other
                met += 1
        place = 0
        for index in range(met):
            other = low[index]
            if place + size[block] <= address[other]:
                break
            place = max(place, address[other] + size[other])
        if place + size[block] <= capacity:
            address[block] = place
            placed[count] = block
            count += 1
    return address


def first_fit(blocks: Sequence[AddressBlock], order: Sequence[int], capacity: int) -> tuple[int, ...]:
    """Return the addresses of blocks placed in order; see `fit`."""
    first, last, size = np.array([(block.first, block.last, block.size) for block in blocks], np.int64).T
    return tuple(fit(first, last, size, np.array(order), capacity).tolist())


def fit_most(
    blocks: Sequence[AddressBlock], prices: Sequence[int], capacity: int, orders: Sequence[Sequence[int]]
) -> tuple[int, ...]:
    """Return addresses of blocks with a low total price of those that lie `NOWHERE`.

    ``prices``: the cost of leaving out each block. ``orders``: initial orders of trials.
    """
    first, last, size = np.array([(block.first, block.last, block.size) for block in blocks], np.int64).T
    price, watch, count = np.array(prices), current(), len(blocks)
    generator, trials = np.random.default_rng(0), min(TRIALS, 1 + _WORK // (count * count * len(orders)))
    best, least = np.full(count, NOWHERE), int(price.sum()) + 1
    for start in orders:
        place = np.empty(count)
        place[np.array(start)] = np.arange(count)
        for number in range(trials):
            address = fit(first, last, size, np.argsort(place, kind="stable"), capacity)
            left = address == NOWHERE
            loss = int(price[left].sum())
            if loss < least:
                best, least = address, loss
            if least == 0 or (watch.stopped and number >= _FEW):
                return tuple(best.tolist())
            place[left] *= generator.uniform(0.0, 1.0, int(left.sum()))
    return tuple(best.tolist())
