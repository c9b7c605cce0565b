"""Parts of a problem between two operators that depend on each other, as problems of their own.

All operators that depend on ``first`` and that ``last`` depends on are executed between the two, whatever the
order.  Their traffic alone is a problem of its own, in which everything else is left out: what was written
before counts as lying off chip, what is needed after ``last`` is needed at the end.  What it must pay is
paid after ``first`` has run, for tensors written or used since then, and up to ``last``: so the optima of
intervals that follow one another add up to a bound for the whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.scheduler.planner.order.lattice import BITS, Integers, Lattice, contains

Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Relations:
    """What depends on what in a problem.

    Members
    -------
    after : shape (operators, operators)
        Whether the second operator depends on the first, directly or not.
    users : shape (tensors, operators)
        Whether the operator reads the tensor.
    writer : shape (tensors,)
        Operator that writes each tensor, or -1.
    """

    after: Flags
    users: Flags
    writer: Integers

    @classmethod
    def of(cls, lattice: Lattice, reach: Integers) -> Relations:
        """Spread out sets; ``reach`` as of `hw.scheduler.planner.order.cuts.reachable`."""
        count = len(lattice.before)
        writer = np.full(len(lattice.size), -1, dtype=np.int64)
        for operator in range(count):
            slots = slice(lattice.first[operator], lattice.first[operator + 1])
            writer[lattice.tensor[slots][lattice.writes[slots] == 1]] = operator
        return cls(after=_flags(reach, count), users=_flags(lattice.users, count), writer=writer)


def _flags(rows: Integers, count: int) -> Flags:
    return np.array([[contains(row, member) for member in range(count)] for row in rows], dtype=bool)


def members(relations: Relations, first: int, last: int) -> list[int]:
    """Give the operators of an interval: after ``first``, up to and with ``last``; -1 for no limit."""
    count = len(relations.after)
    inside = np.ones(count, dtype=bool) if first < 0 else relations.after[first].copy()
    if last >= 0:
        chosen = relations.after[:, last].copy()
        chosen[last] = True
        inside &= chosen
    return [int(operator) for operator in np.flatnonzero(inside)]


def interval(lattice: Lattice, relations: Relations, first: int, last: int) -> Lattice:
    """Cut out the operators after one operator and up to another.

    Parameters
    ----------
    lattice : Lattice
    relations : Relations
    first, last : int
        ``last`` depends on ``first``; -1 for the beginning, or the end, of the problem.

    Returns
    -------
    Lattice
        In the order of the problem; with a last operator that takes no room and reads what is needed later.
    """
    chosen = members(relations, first, last)
    rank = {operator: number for number, operator in enumerate(chosen)}
    later = relations.after[last] if last >= 0 else np.zeros(len(relations.after), dtype=bool)
    slots = [list(range(lattice.first[operator], lattice.first[operator + 1])) for operator in chosen]
    touched = sorted({int(lattice.tensor[slot]) for row in slots for slot in row})
    number = {tensor: index for index, tensor in enumerate(touched)}
    kept = [tensor for tensor in touched if (relations.users[tensor] & later).any()]
    end = len(chosen)
    before = [_mask(rank[p] for p in chosen if contains(lattice.before[o], p)) for o in chosen]
    before.append(_mask(range(end)))
    users = [
        _mask(rank[int(o)] for o in np.flatnonzero(relations.users[t]) if int(o) in rank) for t in touched
    ]
    for tensor in kept:
        users[number[tensor]] |= 1 << end
    flat = [slot for row in slots for slot in row]
    width = -(-(end + 1) // BITS)
    after = [[next_ for next_ in range(end + 1) if before[next_] >> o & 1] for o in range(end + 1)]
    source = np.array([int(relations.writer[tensor]) not in rank for tensor in touched], dtype=np.int64)

    def column(values: Integers) -> Integers:
        return np.concatenate([values[flat], np.zeros(len(kept), dtype=np.int64)])

    return Lattice(
        before=_rows(before, width),
        after_first=np.cumsum([0, *map(len, after)]),
        after=np.array([next_ for row in after for next_ in row], dtype=np.int64),
        users=_rows(users, width),
        first=np.cumsum([0, *map(len, slots), len(kept)]),
        tensor=np.array(
            [number[int(lattice.tensor[slot])] for slot in flat] + [number[tensor] for tensor in kept],
            dtype=np.int64,
        ),
        writes=column(lattice.writes),
        saved=column(lattice.saved),
        alone=column(lattice.alone),
        whole=np.concatenate([lattice.whole[chosen], [0]]),
        size=lattice.size[touched],
        source=source,
        cheap=np.maximum(source, lattice.cheap[touched]),
        unit=lattice.unit,
    )


def _mask(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in numbers)


def _rows(masks: list[int], width: int) -> Integers:
    return np.array(
        [[mask >> BITS * word & (1 << BITS) - 1 for word in range(width)] for mask in masks], dtype=np.int64
    )
