"""What must be paid for while one operator runs, whatever the order, and at the heaviest moment of all.

While an operator runs, a minimum cut says what must be alive beside it (`hw.scheduler.planner.order.cuts`);
what is alive and does not lie in the scratchpad was paid for: a unit once, or twice where its write is
avoidable, too.  So with a **price** of a unit in the scratchpad of 1 or 2, and absent units weighing what
they cost but no more than the price, the weight above the price of the whole scratchpad is paid.
"""

from __future__ import annotations

import numpy as np

from hw.scheduler.planner.order.cuts import forced, network
from hw.scheduler.planner.order.exact.min_peak import states_for
from hw.scheduler.planner.order.exact.min_peak_kernel import best_first
from hw.scheduler.planner.order.intervals import Relations
from hw.scheduler.planner.order.lattice import Integers, Lattice

#: In between the bound is linear.
PRICES = (1, 2)


class Moments:
    """What is paid for at the operators of a problem, each alone or after another one.

    Parameters
    ----------
    lattice : Lattice
    relations : Relations
    reach : shape (operators, words of a set)
        See `hw.scheduler.planner.order.cuts.reachable`.
    capacity : int
        Units of the scratchpad.
    """

    def __init__(self, lattice: Lattice, relations: Relations, reach: Integers, capacity: int) -> None:
        self._lattice, self._relations, self._reach, self._capacity = lattice, relations, reach, capacity
        self._net = network(lattice, lattice.size)

    @property
    def arcs(self) -> int:
        """Size of the networks."""
        return len(self._net.head)

    def paid(self, operator: int, earlier: int = -1) -> int:
        """Give units that are paid by the time an operator runs and not by the time an earlier one, on which
        it depends, has run; -1 when all count.
        """
        leaving = self._chargeable(operator, earlier)
        return max(0, *(self._moment(operator, leaving, price) for price in PRICES))

    def _chargeable(self, operator: int, earlier: int) -> Integers:
        """Give what each tensor's absence is sure to have cost since the earlier operator."""
        leaving = _leaving(self._lattice)
        if earlier < 0:
            return leaving
        known = self._relations
        between = known.after[earlier] & known.after[:, operator]
        written = (known.writer >= 0) & known.after[earlier][known.writer]
        used = (known.users & between).any(axis=1)
        return np.where(written, leaving, np.where(used, self._lattice.size, 0))

    def _moment(self, operator: int, leaving: Integers, price: int) -> int:
        room = self._net.room.copy()
        room[self._net.weighed] = np.minimum(price * self._lattice.size, leaving)
        net = self._net._replace(room=room)
        free = np.zeros_like(self._lattice.tensor)
        beside = int(forced(operator, self._reach, net, free, self._lattice))
        return beside + _needed(self._lattice, operator, leaving, price) - price * self._capacity


def heaviest(lattice: Lattice, capacity: int, states: int) -> int:
    """Give units that are paid at the heaviest moment, in the order in which that is lightest.

    Parameters
    ----------
    lattice : Lattice
    capacity : int
        Units of the scratchpad.
    states : int
        Down-sets to look at; when they are too few, the bound is lower.
    """
    leaving = _leaving(lattice)
    found = 0
    for price in PRICES:
        needed = [_needed(lattice, operator, leaving, price) for operator in range(len(lattice.before))]
        weighed = lattice._replace(
            size=np.minimum(price * lattice.size, leaving), whole=np.array(needed, dtype=np.int64)
        )
        # Moments that weigh no more than the scratchpad cost nothing, and need not be told apart.
        floor = price * capacity
        bound, _ = best_first(states_for(weighed, states), floor + found, weighed)
        found = max(found, int(bound) - floor)
    return found


def _leaving(lattice: Lattice) -> Integers:
    """Give what each tensor costs that leaves for the first time: its write, if avoidable, and a read."""
    return np.where(lattice.cheap == 1, 1, 2) * lattice.size


def _needed(lattice: Lattice, operator: int, leaving: Integers, price: int) -> int:
    """Give the weight of an operator's operands and buffers, streamed where that is lighter."""
    together, alone = 0, 0
    for slot in range(lattice.first[operator], lattice.first[operator + 1]):
        tensor = int(lattice.tensor[slot])
        uses = sum(int(word).bit_count() for word in lattice.users[tensor])
        # What was there before or is needed again is paid for when it is streamed.
        touched_again = uses > 0 if lattice.writes[slot] or not lattice.source[tensor] else uses > 1
        gain = price * int(lattice.saved[slot]) - (int(leaving[tensor]) if touched_again else 0)
        if gain > 0 and lattice.alone[slot] == 1:
            alone = max(alone, gain)
        elif gain > 0:
            together += gain
    return price * int(lattice.whole[operator]) - max(together, alone)
