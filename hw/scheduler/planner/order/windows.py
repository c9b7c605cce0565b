"""Annealing of long orders, some steps at a time.

An order of hundreds of operators takes long to evaluate, and a change in one place hardly matters elsewhere.
So a window of neighbouring steps is annealed as a problem of its own.  An operator in front of it writes, and
one behind it reads, the tensors that stay on chip across its borders; neither needs room itself.  Tensors
that stay over the whole window reduce its capacity.  The whole order is evaluated only to judge the result.
"""

import numpy as np

from hw.scheduler.planner.order.anneal import STEPS_OPERATORS, TEMPERATURES, Order, anneal
from hw.scheduler.planner.order.evaluate import Scratch, evaluate
from hw.scheduler.planner.order.lattice import Integers, Lattice
from hw.scheduler.planner.watch import current

#: Orders with more operators are annealed in windows.
LONG = STEPS_OPERATORS

#: Steps of a window, one length after the other; a window begins in the middle of the previous one.
LENGTHS = (64, 256)

#: Orders of a window evaluated for each of its operators.
STEPS_PER_OPERATOR = 150

#: Most orders times operators of windows: lengths that need more are left out.
_WORK = 45_000_000


def improve_windows(
    lattice: Lattice, capacity: int, start: Order, seed: int, *, goal: int = 0
) -> tuple[int, Order]:
    """Anneal window by window; return the avoidable units, and the order.

    Parameters are as for `hw.scheduler.planner.order.anneal.improve`.
    """
    order, work, watch = np.array(start, dtype=np.int64), Scratch.of(lattice), current()
    least = int(evaluate(order, capacity, lattice, work))
    parts = [
        (begin, begin + length)
        for length in LENGTHS
        if length == LENGTHS[0] or 2 * sum(LENGTHS) * STEPS_PER_OPERATOR * len(order) <= _WORK
        for begin in range(0, max(1, len(order) - length // 2), length // 2)
    ]
    for number, (begin, end) in enumerate(parts):
        if least <= goal or watch.stopped:
            break
        watch.detail(f"annealing, part {number + 1} of {len(parts)}")
        members = order[begin:end]
        part, room = window(order, begin, end, capacity, lattice, work)
        own, given, mean = Scratch.of(part), np.arange(len(members) + 2), float(part.size.mean())
        hot, cold = TEMPERATURES[number % len(TEMPERATURES)]
        known = evaluate(given, room, part, own)
        units, found = anneal(
            given,
            room,
            STEPS_PER_OPERATOR * len(members),
            (mean * hot, mean * cold),
            (seed * 0x9E3779B97F4A7C15 + number) & 0x7FFFFFFFFFFFFFFF,
            part,
            own,
            watch.flag,
        )
        if units < known:
            trial = order.copy()
            trial[begin:end] = members[found[1:-1] - 1]
            units = int(evaluate(trial, capacity, lattice, work))
            if units < least:
                least, order = units, trial
            else:
                evaluate(order, capacity, lattice, work)
    return least, tuple(order.tolist())


def window(
    order: Integers, begin: int, end: int, capacity: int, lattice: Lattice, work: Scratch
) -> tuple[Lattice, int]:
    """Return the problem of the steps from ``begin`` to before ``end``, and its capacity.

    Its operators are one in front, those of the steps in their order, and one behind.  ``work`` holds the
    residency of the whole order.
    """
    members = order[begin:end]
    end = begin + len(members)
    rows = [np.arange(lattice.first[o], lattice.first[o + 1]) for o in members]
    slots = np.concatenate(rows)
    tensors, inside = np.unique(lattice.tensor[slots], return_inverse=True)
    number = np.full(len(lattice.size), -1)
    number[tensors] = np.arange(len(tensors))
    gaps = np.flatnonzero(work.follower >= 0)
    since, until, kept = work.step[gaps], work.step[work.follower[gaps]], work.kept[gaps] == 1
    over = gaps[kept & (since < begin) & (until >= end)]
    entering = number[lattice.tensor[gaps[kept & (since < begin) & (until >= begin) & (until < end)]]]
    leaving = number[lattice.tensor[gaps[kept & (since >= begin) & (since < end) & (until >= end)]]]
    # A tensor that does not stay beyond the window is written to memory in any case.
    cheap = lattice.cheap.copy()
    cheap[lattice.tensor[gaps[~kept & ((since < begin) | (until >= end))]]] = 1
    place = {int(operator): index + 1 for index, operator in enumerate(members)}
    behind = len(members) + 1
    after = [list(range(1, behind + 1))]
    for operator in members:
        later = lattice.after[lattice.after_first[operator] : lattice.after_first[operator + 1]].tolist()
        after.append([*(place[each] for each in later if each in place), behind])
    size, none = lattice.size[tensors], np.zeros((0, 0), np.int64)
    part = Lattice(
        before=none,
        users=none,
        owner=none.ravel(),
        after_first=np.cumsum([0, *map(len, after), 0]),
        after=np.array([later for row in after for later in row], np.int64),
        first=np.cumsum([0, len(entering), *map(len, rows), len(leaving)]),
        tensor=np.concatenate((entering, inside, leaving)),
        saved=np.concatenate((size[entering], lattice.saved[slots], size[leaving])),
        alone=np.concatenate((0 * entering, lattice.alone[slots], 0 * leaving)),
        fifo=np.concatenate(([0], lattice.fifo[members], [0])),
        whole=np.concatenate(([size[entering].sum()], lattice.whole[members], [size[leaving].sum()])),
        size=size,
        source=lattice.source[tensors],
        cheap=cheap[tensors],
        unit=lattice.unit,
    )
    return part, capacity - int(lattice.size[lattice.tensor[over]].sum())
