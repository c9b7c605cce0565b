"""Avoidable traffic that no order and no residency is below, for networks too wide for an exact search.

What is paid at the heaviest moment bounds a problem, or an interval of it
(`hw.scheduler.planner.order.moments`, `hw.scheduler.planner.order.intervals`).  Bounds of operators and
intervals that follow one another add up, as each counts only what cannot have been paid for before: tensors
written or used since.  The best such chain is the bound; its links are raised by exact search of their
intervals where that goes far enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hw.errors import InputError
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.cuts import reachable
from hw.scheduler.planner.order.exact.exact import bound_units
from hw.scheduler.planner.order.intervals import Relations, interval, members
from hw.scheduler.planner.order.lattice import Lattice
from hw.scheduler.planner.order.moments import Moments, heaviest

#: Minimum cuts at effort 1, and the sum of the sizes of their networks: few of a large problem.
_CUTS, _ARCS = 10_000, 5_000_000

#: Operators at which intervals begin or end, and the most operators of an interval.
_BARRIERS, _LONGEST = 24, 100

#: Down-sets of an interval, and of the whole problem; states of an interval's exact search.
_STATES, _WHOLE_STATES, _SEARCHED = 5_000, 200_000, 100_000


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Avoidable words that every plan moves at the least, and how that was proven."""

    words: int
    method: str


def lower_bound(
    problem: Problem, capacity: int, *, streaming: bool, upper: int | None = None, effort: int = 1
) -> Bound:
    """Bound the avoidable traffic of all orders and residencies from below.

    Parameters
    ----------
    problem : Problem
    capacity : int
        Words of the scratchpad.
    streaming : bool
        Whether a tensor may pass through a window instead of lying whole in the scratchpad.
    upper : int or None
        Avoidable words of a known plan: a bound as high ends the work.
    effort : int
        Times as much work.

    Raises
    ------
    InputError
        When ``effort`` is not positive, or ``upper`` negative.
    """
    if effort < 1:
        raise InputError("effort", effort, "at least 1")
    if upper is not None and upper < 0:
        raise InputError("upper", upper, "at least 0")
    lattice = Lattice.of(problem, streaming=streaming)
    units, method = heaviest(lattice, capacity // lattice.unit, effort * _WHOLE_STATES), "heaviest moment"
    if upper is None or units * lattice.unit < upper:
        chain = _Chain(lattice, capacity // lattice.unit, effort)
        chained, links = chain.best()
        if chained > units:
            units, method = chained, f"chain of {links} moments and intervals"
    words = units * lattice.unit if upper is None else min(upper, units * lattice.unit)
    return Bound(words=words, method=method if words else "none")


@dataclass(frozen=True)
class _Link:
    """Units paid up to an operator, and the operator before it in the chain."""

    units: int
    earlier: int


class _Chain:
    """Chains of moments and intervals of one problem."""

    def __init__(self, lattice: Lattice, capacity: int, effort: int) -> None:
        self._lattice, self._capacity, self._effort = lattice, capacity, effort
        reach = reachable(lattice)
        self._relations = Relations.of(lattice, reach)
        self._moments = Moments(lattice, self._relations, reach, capacity)
        self._cuts = effort * min(_CUTS, _ARCS // self._moments.arcs)
        after = self._relations.after
        beside = len(after) - after.sum(axis=0) - after.sum(axis=1)
        narrow = sorted(range(len(after)), key=lambda operator: (beside[operator], operator))
        self._barriers = {-1, *narrow[:_BARRIERS]}
        self._known: dict[tuple[int, int], int] = {}

    def best(self) -> tuple[int, int]:
        """Give the units of the best chain, and its length."""
        after = self._relations.after
        links = {-1: _Link(0, -1)}
        for operator in range(len(after)):
            earlier = [-1, *np.flatnonzero(after[:, operator])]
            links[operator] = self._link(operator, [int(each) for each in earlier], links)
        end = len(after)
        links[end] = self._link(end, list(links), links)
        chain, operator = [], end
        while operator >= 0:
            chain.append((links[operator], operator))
            operator = links[operator].earlier
        units, length = 0, 0
        for link, operator in chain:
            paid = link.units - links[link.earlier].units
            if paid > 0:
                paid = max(paid, self._exact(link.earlier, -1 if operator == end else operator))
            units += paid
            length += paid > 0
        return units, length

    def _link(self, operator: int, earlier: list[int], links: dict[int, _Link]) -> _Link:
        """Find the best way to come to an operator; to the end of the problem when there is no such one."""
        end = len(self._relations.after)
        best = max((links[each] for each in earlier), key=lambda link: link.units)
        from_best = next(each for each in earlier if links[each] is best)
        found = _Link(best.units, from_best)
        ranked = sorted(earlier, key=lambda each: (-links[each].units, each))
        if operator < end:
            alone = self._moments.paid(operator)
            for each in ranked:
                if links[each].units + alone <= found.units or self._cuts <= 0:
                    break
                paid = alone
                if each >= 0:
                    paid = self._moments.paid(operator, each)
                    self._cuts -= 1
                if links[each].units + paid > found.units:
                    found = _Link(links[each].units + paid, each)
        if operator in self._barriers or operator == end:
            last = operator if operator < end else -1
            for each in ranked:
                if each not in self._barriers or (each < 0 and last < 0):
                    continue
                # An interval pays no more than a longer one.
                longer = (self._interval(-1, last), self._interval(each, -1))
                if any(0 <= paid <= found.units - links[each].units for paid in longer):
                    continue
                units = links[each].units + self._interval(each, last)
                if units > found.units:
                    found = _Link(units, each)
        return found

    def _interval(self, first: int, last: int) -> int:
        """Give what the heaviest moment of an interval costs; -1 when it is too long to tell."""
        if (first, last) not in self._known:
            count = len(members(self._relations, first, last))
            units = -1 if count > _LONGEST else 0
            if 0 < count <= _LONGEST:
                part = interval(self._lattice, self._relations, first, last)
                units = heaviest(part, self._capacity, self._effort * _STATES)
            self._known[first, last] = units
        return self._known[first, last]

    def _exact(self, first: int, last: int) -> int:
        """Give what an interval costs as far as an exact search tells; 0 when it is too long."""
        if len(members(self._relations, first, last)) > _LONGEST:
            return 0
        part = interval(self._lattice, self._relations, first, last)
        return bound_units(part, self._capacity, node_limit=self._effort * _SEARCHED)
