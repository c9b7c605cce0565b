"""Avoidable traffic that no order and no residency is below, for networks too wide for an exact search.

What is alive at some moment and does not lie in the scratchpad was paid for: a unit once, or twice where its
write is avoidable, too.  So with a **price** of a unit in the scratchpad of 1 or 2, and absent units weighing
what they cost but no more than the price, the weight above the price of the whole scratchpad is paid.  The
order whose heaviest moment is the lightest is found as the one of least peak is, among weighed tensors.
"""

from __future__ import annotations

import numpy as np

from hw.errors import InputError
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.lattice import Integers, Lattice
from hw.scheduler.planner.order.min_peak import states_for
from hw.scheduler.planner.order.min_peak_kernel import best_first

#: In between the bound is linear.
PRICES = (1, 2)

#: Down-sets to look at, at effort 1.
_STATES = 200_000


def lower_bound(
    problem: Problem, capacity: int, *, streaming: bool, effort: int = 1, states: int = _STATES
) -> int:
    """Bound the avoidable words of all orders and residencies from below, by the heaviest moment.

    Parameters
    ----------
    problem : Problem
    capacity : int
        Words of the scratchpad.
    streaming : bool
        Whether a tensor may pass through a window instead of lying whole in the scratchpad.
    effort : int
        Times as much work.
    states : int
        Down-sets to look at, at effort 1; when they are too few, the bound is lower.

    Raises
    ------
    InputError
        When ``effort`` is not positive.
    """
    if effort < 1:
        raise InputError("effort", effort, "at least 1")
    lattice = Lattice.of(problem, streaming=streaming)
    leaving = _leaving(lattice)
    found = 0
    for price in PRICES:
        needed = [_needed(lattice, operator, leaving, price) for operator in range(len(lattice.before))]
        weighed = lattice._replace(
            size=np.minimum(price * lattice.size, leaving), whole=np.array(needed, dtype=np.int64)
        )
        # Moments that weigh no more than the scratchpad cost nothing, and need not be told apart.
        floor = price * (capacity // lattice.unit)
        bound, _ = best_first(states_for(weighed, effort * states), floor + found, weighed)
        found = max(found, int(bound) - floor)
    return found * lattice.unit


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
