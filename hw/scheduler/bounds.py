"""Avoidable traffic that no order and no residency is below, for networks too wide for an exact search.

While an operator runs, a minimum cut says what must be alive beside it, whatever the order
(`hw.scheduler.cuts`); what is alive and does not lie in the scratchpad was paid for.  Such **moments** of
operators that depend on each other add up, as far as the later one counts nothing that may have been paid for
at the earlier one: in full what is written between them, and the next read of what is used between them.  The
best chain of moments is the bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hw.errors import InputError
from hw.scheduler.cuts import forced, network, reachable
from hw.scheduler.lattice import Integers, Lattice, contains
from hw.scheduler.problem import Problem

#: Minimum cuts at effort 1, and the sum of the sizes of their networks: few of a large problem.
_CUTS, _WORK = 20_000, 10_000_000

#: Weights of a unit in the scratchpad. Absent, a unit weighs 1, or 2 where its write is paid for, too: so the
#: bound is linear in between.
_PRICES = (1, 2)


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
        Times as many minimum cuts.

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
    moments = _Moments(lattice, capacity // lattice.unit, effort)
    enough = int(lattice.size.sum()) * 3 * len(lattice.tensor) if upper is None else -(-upper // lattice.unit)
    units, length = moments.chain(enough)
    words = units * lattice.unit if upper is None else min(upper, units * lattice.unit)
    return Bound(words=words, method=f"chain of {length} moments" if words else "none")


class _Moments:
    """What is paid for at the operators of a problem, each alone or after another one."""

    def __init__(self, lattice: Lattice, capacity: int, effort: int) -> None:
        self._lattice, self._capacity = lattice, capacity
        self._leaving = np.where(lattice.cheap == 1, 1, 2) * lattice.size
        self._net = network(lattice, lattice.size)
        self._reach = reachable(lattice)
        self._left = effort * min(_CUTS, _WORK // len(self._net.head))
        count = len(lattice.before)
        self._after = np.array(
            [[contains(self._reach[one], other) for other in range(count)] for one in range(count)],
            dtype=bool,
        )
        self._users = np.array(
            [[contains(row, operator) for operator in range(count)] for row in lattice.users], dtype=bool
        )
        self._writer = np.full(len(lattice.size), -1, dtype=np.int64)
        for operator in range(count):
            slots = slice(lattice.first[operator], lattice.first[operator + 1])
            self._writer[lattice.tensor[slots][lattice.writes[slots] == 1]] = operator

    def chain(self, enough: int) -> tuple[int, int]:
        """Give the best chain's units, and its length; ``enough`` units end the search."""
        count = len(self._lattice.before)
        alone = [self._paid(operator, -1) for operator in range(count)]
        best: dict[int, tuple[int, int]] = {}
        top = (0, 0)
        for operator in range(count):
            if alone[operator] <= 0:
                continue
            found = (alone[operator], 1)
            earlier = [other for other in best if self._after[other, operator]]
            for other in sorted(earlier, key=lambda each: (-best[each][0], each)):
                units, length = best[other]
                if units + alone[operator] <= found[0] or self._left <= 0:
                    break
                found = max(found, (units + self._paid(operator, other), length + 1))
            best[operator] = found
            top = max(top, found)
            if top[0] >= enough:
                break
        return top

    def _paid(self, operator: int, earlier: int) -> int:
        """Give units that are paid at an operator, and not at an earlier one it depends on, at the least."""
        leaving = self._chargeable(operator, earlier)
        return max(0, *(self._moment(operator, leaving, price) for price in _PRICES))

    def _chargeable(self, operator: int, earlier: int) -> Integers:
        """Give what each tensor's absence is sure to have cost since the earlier operator."""
        if earlier < 0:
            return self._leaving
        between = self._after[earlier] & self._after[:, operator]
        written = (self._writer >= 0) & self._after[earlier][self._writer]
        used = (self._users & between).any(axis=1)
        return np.where(written, self._leaving, np.where(used, self._lattice.size, 0))

    def _moment(self, operator: int, leaving: Integers, price: int) -> int:
        """Give the weight there is while an operator runs, above what the scratchpad holds."""
        lattice, net = self._lattice, self._net
        self._left -= 1
        room = net.room.copy()
        room[net.weighed] = np.minimum(price * lattice.size, leaving)
        weighed = net._replace(room=room)
        beside = forced(operator, self._reach, weighed, np.zeros_like(lattice.tensor), lattice)
        together, alone = 0, 0
        for slot in range(lattice.first[operator], lattice.first[operator + 1]):
            tensor = lattice.tensor[slot]
            pay = int(leaving[tensor]) if self._has_gap(operator, slot) else 0
            gain = price * int(lattice.saved[slot]) - pay
            if gain > 0 and lattice.alone[slot] == 1:
                alone = max(alone, gain)
            elif gain > 0:
                together += gain
        whole = price * (int(lattice.whole[operator]) - self._capacity)
        return int(beside) + whole - max(together, alone)

    def _has_gap(self, operator: int, slot: int) -> bool:
        """Tell whether an operand was there before, or is needed again, whatever the order."""
        tensor = self._lattice.tensor[slot]
        users = self._users[tensor]
        if self._lattice.writes[slot] == 1:
            return bool(users.any())
        related = self._after[operator] | self._after[:, operator]
        return bool(self._writer[tensor] >= 0 or (users & related).any())
