"""The least avoidable traffic of a problem over all orders and residencies, with proof.

All down-sets are listed first; the heaviest moment that is still to come bounds what is to be paid from
each of them.  The search then works off what was executed level by level
(`hw.scheduler.planner.order.exact.kernel`), and leaves out what is bound to cost a limit.  Limits rise up
to a plan that is known: each is proven to be a bound, or passed by the best plan of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hw.errors import InputError
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.exact.kernel import EXHAUSTED, FOUND, search
from hw.scheduler.planner.order.exact.space import PAID, Space, begin, look_ahead, order_to, restart, survey
from hw.scheduler.planner.order.lattice import BITS, Integers, Lattice
from hw.scheduler.planner.residency.stays import steps_of

#: States of a search at most.
NODE_LIMIT = 1_000_000

#: Comparisons of states for each state: where they are many, their number is what takes the time.
_COMPARISONS = 200

#: States for each down-set there is room for: where these are too many, there is no use in a search.
_SHARE = 4

#: Limits below the known plan that are tried, that itself last: each is much less work than the next.
_LIMITS = 8


@dataclass(frozen=True, kw_only=True)
class Exact:
    """An order, and what is proven.

    Members
    -------
    order : tuple of int
        Operators by step: the one found, or the hint.
    avoidable_words : int
        What the order costs with the best residency; of a hint, what it was said to cost.
    bound_words : int
        No order and no residency costs less.
    proven : bool
        Whether both are equal.
    """

    order: tuple[int, ...]
    avoidable_words: int
    bound_words: int
    proven: bool


def solve_exact(
    problem: Problem,
    capacity: int,
    *,
    streaming: bool,
    upper: int,
    order_hint: Sequence[int],
    lower: int = 0,
    node_limit: int = NODE_LIMIT,
) -> Exact:
    """Find the least avoidable traffic over all orders and residencies, or bound it.

    Parameters
    ----------
    problem : Problem
    capacity : int
        Words of the scratchpad.
    streaming : bool
        Whether a tensor may pass through a window instead of lying whole in the scratchpad.
    upper : int
        Avoidable words of a known plan: only plans that cost less are searched for.
    order_hint : sequence of int
        The known plan's order.
    lower : int
        Avoidable words that are known to be paid by every plan.
    node_limit : int
        States to look at, and for which there is memory: some 100 bytes each.

    Raises
    ------
    InputError
        When ``lower`` is negative or above ``upper``, ``node_limit`` is not positive, or the hint is not a
        topological order.
    """
    if not 0 <= lower <= upper:
        raise InputError("lower", lower, f"from 0 to {upper}, the known plan's words")
    if node_limit < 1:
        raise InputError("node_limit", node_limit, "at least 1")
    steps_of(problem, order_hint)
    hint = tuple(order_hint)
    lattice = Lattice.of(problem, streaming=streaming)
    runs = _Runs(lattice, capacity // lattice.unit, node_limit)
    limit = -(-upper // lattice.unit)
    goal, proven = runs.find(max(runs.floor, -(-lower // lattice.unit)), limit)
    if goal >= 0:
        words = int(runs.space.state[goal, PAID]) * lattice.unit
        order = tuple(map(int, order_to(goal, runs.space, lattice)))
        return Exact(order=order, avoidable_words=words, bound_words=words, proven=True)
    bound = upper if proven == limit else proven * lattice.unit
    return Exact(order=hint, avoidable_words=upper, bound_words=bound, proven=bound == upper)


def bound_units(lattice: Lattice, capacity: int, *, node_limit: int) -> int:
    """Bound the avoidable units of a problem of which no plan is known, by limits that rise.

    Parameters
    ----------
    lattice : Lattice
    capacity : int
        Units of the scratchpad.
    node_limit : int
        States of each search.
    """
    runs = _Runs(lattice, capacity, node_limit)
    proven = runs.floor
    while runs.surveyed:
        goal, reached = runs.find(proven, proven + max(_LIMITS, proven))
        if goal >= 0:
            return int(runs.space.state[goal, PAID])
        if reached < proven + max(_LIMITS, proven):
            return reached
        proven = reached
    return proven


class _Runs:
    """Searches of one problem for plans below one limit or another."""

    def __init__(self, lattice: Lattice, capacity: int, states: int) -> None:
        self._lattice, self._capacity, self._states = lattice, capacity, states
        self._nodes = max(2, states // _SHARE)
        self.space = self._fresh()
        begin(self.space, lattice)
        self.surveyed = bool(survey(self.space, lattice))
        if self.surveyed:
            for price in (1, 2):
                look_ahead(self.space, capacity, price, lattice)

    @property
    def floor(self) -> int:
        """Units that are paid at the least, as far as is known before any search."""
        return int(self.space.ahead[0])

    def find(self, proven: int, limit: int) -> tuple[int, int]:
        """Look for the best plan below a limit.

        Parameters
        ----------
        proven, limit : int
            Units that every plan costs at the least, and that it must cost less than.

        Returns
        -------
        goal : int
            Its last state; -1 when there is none, or when it was not found.
        proven : int
            Units up to the limit that every plan costs at the least, when none was found.
        """
        if not self.surveyed:
            return -1, min(proven, limit)
        step = max(1, -(-(limit - proven) // _LIMITS))
        for below in (*range(proven + step, limit, step), limit):
            if below <= proven:
                break
            restart(self.space)
            end, goal = search(self.space, self._capacity, below, _COMPARISONS * self._states, self._lattice)
            if end == FOUND:
                return int(goal), proven
            if end != EXHAUSTED:
                break
            proven = below
        return -1, min(proven, limit)

    def _fresh(self) -> Space:
        """Make room; memory is touched as it fills up, but for the hash table."""
        operators, tensors = len(self._lattice.before), len(self._lattice.size)
        set_of_operators, set_of_tensors = self._lattice.before.shape[1], -(-tensors // BITS)

        def rows(count: int, width: int) -> Integers:
            return np.zeros((count + 1, width), dtype=np.int64)

        return Space(
            done=rows(self._nodes, set_of_operators),
            ready=rows(self._nodes, set_of_operators),
            live=rows(self._nodes, set_of_tensors),
            node=rows(self._nodes, 3),
            ahead=np.zeros(self._nodes + 1, dtype=np.int64),
            table=np.full(1 << (2 * self._nodes + 1).bit_length(), -1, dtype=np.int64),
            absent=rows(self._states, set_of_tensors),
            written=rows(self._states, set_of_tensors),
            state=rows(self._states, 7),
            level=np.empty(operators + 1, dtype=np.int64),
            tally=np.empty(3, dtype=np.int64),
        )
