"""Traffic of an order, compiled: a replay that evicts greedily, then takes back what was evicted in vain.

Replay: operands come in; where they do not fit, the resident whose eviction costs least for the space and
time it frees goes (Belady's rule, with sizes and with the spill that an unwritten activation costs on top).
An operand of the step itself may pass through a window instead.  Afterwards every gap that was not kept is
tried again, since what was evicted in between may have made room.  The result is a residency, so its traffic
is an upper bound of the order's optimum, and it is exact for what it decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.lattice import Integers, Lattice, compiled

#: Avoidable units of an order in which some step does not fit at all.
IMPOSSIBLE = 1 << 60


class Scratch(NamedTuple):
    """What one evaluation works in, and leaves behind.

    A **slot** is one operand of one operator. Whatever the order, a slot is an event of its tensor, and the
    gap that follows the event is named by the same slot.

    Members
    -------
    step : shape (operators,)
        Step of each operator.
    follower, previous : shape (slots,)
        The tensor's next and last slot in this order, or -1.
    kept, streamed : shape (slots,)
        The residency: whether the gap after each slot is kept, and whether the slot is streamed.
    used : shape (operators + 1,)
        Units in use in each step.
    current, place, spilled, touched, drops : shape (tensors,)
        While replaying: the slot since which a tensor is resident or -1, where it stands in ``resident``,
        whether it lies in memory, the last step that touched it; afterwards its gaps that are not kept.
    resident : shape (tensors,)
        Resident tensors.
    dropped : shape (slots,)
        Gaps that are not kept.
    """

    step: Integers
    follower: Integers
    previous: Integers
    kept: Integers
    streamed: Integers
    used: Integers
    current: Integers
    place: Integers
    spilled: Integers
    touched: Integers
    drops: Integers
    resident: Integers
    dropped: Integers

    @classmethod
    def of(cls, lattice: Lattice) -> Scratch:
        """Allocate what an evaluation works in."""
        operators, slots, tensors = len(lattice.fifo), len(lattice.tensor), len(lattice.size)
        lengths = (operators, slots, slots, slots, slots, operators + 1, *[tensors] * 6, slots)
        return cls(*(np.zeros(length, dtype=np.int64) for length in lengths))


@compiled
def _link(order: Integers, lattice: Lattice, work: Scratch) -> None:
    """Find each operator's step, and each slot's neighbours."""
    latest = work.current
    latest[:] = -1
    for step in range(len(order) - 1, -1, -1):
        operator = order[step]
        work.step[operator] = step
        for slot in range(lattice.first[operator], lattice.first[operator + 1]):
            tensor = lattice.tensor[slot]
            work.follower[slot] = latest[tensor]
            latest[tensor] = slot
    work.current[:] = -1


@compiled
def _leave(tensor: int, count: int, lattice: Lattice, work: Scratch) -> int:
    """Take a tensor off the list of residents; give the new length."""
    last = work.resident[count - 1]
    work.resident[work.place[tensor]] = last
    work.place[last] = work.place[tensor]
    work.current[tensor] = -1
    return count - 1


@compiled
def _victim(step: int, count: int, lone: bool, streams: int, lattice: Lattice, work: Scratch) -> int:
    """Give the resident whose eviction frees most for its cost, or -1."""
    best, best_score = -1, -1.0
    for index in range(count):
        tensor = work.resident[index]
        slot = work.current[tensor]
        size = lattice.size[tensor]
        follower = work.follower[slot]
        owing = lattice.cheap[tensor] == 0 and work.spilled[tensor] == 0
        if work.touched[tensor] != step:
            distance = work.step[lattice.owner[follower]] - step
            score = distance * (0.5 if owing else 1.0)
        else:
            if lattice.saved[slot] == 0 or lone or (lattice.alone[slot] == 1 and streams > 0):
                continue
            hit = work.previous[slot] >= 0
            cost = (size if follower >= 0 else 0) + (size if hit else 0)
            if cost == 0:
                score = 1e18 if lattice.alone[slot] == 0 else 1e17
            else:
                if owing:
                    cost += size
                freed = lattice.saved[slot]
                if follower >= 0:
                    freed += size * (work.step[lattice.owner[follower]] - step - 1)
                score = freed / cost
        if score > best_score:
            best, best_score = tensor, score
    return best


@compiled
def _stream(slot: int, count: int, lattice: Lattice, work: Scratch) -> int:
    """Stream an operand of the step at hand; give the new number of residents."""
    tensor = lattice.tensor[slot]
    previous, follower = work.previous[slot], work.follower[slot]
    work.streamed[slot] = 1
    work.kept[slot] = 0
    if previous >= 0:
        work.kept[previous] = 0
    if previous >= 0 or follower >= 0:
        work.spilled[tensor] = 1
    return _leave(tensor, count, lattice, work)


@compiled
def _replay(order: Integers, capacity: int, lattice: Lattice, work: Scratch) -> bool:
    """Fill ``kept`` and ``streamed``; say whether every step fits."""
    work.spilled[:] = 0
    work.touched[:] = -1
    work.streamed[:] = 0
    count = 0
    held = 0
    for step in range(len(order)):
        operator = order[step]
        begin, end = lattice.first[operator], lattice.first[operator + 1]
        for slot in range(begin, end):
            tensor = lattice.tensor[slot]
            work.previous[slot] = work.current[tensor]
            if work.current[tensor] < 0:
                work.resident[count] = tensor
                work.place[tensor] = count
                count += 1
                held += lattice.size[tensor]
            work.current[tensor] = slot
            work.touched[tensor] = step
            work.kept[slot] = 1 if work.follower[slot] >= 0 else 0
        extra = lattice.fifo[operator]
        streams = 0
        lone = False
        while held + extra > capacity:
            tensor = _victim(step, count, lone, streams, lattice, work)
            if tensor < 0:
                break
            held -= lattice.size[tensor]
            slot = work.current[tensor]
            if work.touched[tensor] == step:
                extra += lattice.size[tensor] - lattice.saved[slot]
                streams += 1
                lone = lattice.alone[slot] == 1
                count = _stream(slot, count, lattice, work)
            else:
                work.kept[slot] = 0
                work.spilled[tensor] = 1
                count = _leave(tensor, count, lattice, work)
        if held + extra > capacity:
            # Only a stream that must run alone was in the way of others, or the others of it: choose again.
            together, loner, most = 0, -1, 0
            whole = lattice.fifo[operator]
            for slot in range(begin, end):
                whole += lattice.size[lattice.tensor[slot]]
                if lattice.alone[slot] == 0:
                    together += lattice.saved[slot]
                elif lattice.saved[slot] > most:
                    loner, most = slot, lattice.saved[slot]
            if whole - max(together, most) > capacity:
                return False
            for slot in range(begin, end):
                tensor = lattice.tensor[slot]
                wanted = (
                    slot == loner
                    if whole - together > capacity
                    else (lattice.alone[slot] == 0 and lattice.saved[slot] > 0)
                )
                if wanted and work.streamed[slot] == 0:
                    held -= lattice.size[tensor]
                    count = _stream(slot, count, lattice, work)
                elif not wanted and work.streamed[slot] == 1:
                    work.streamed[slot] = 0
                    work.resident[count] = tensor
                    work.place[tensor] = count
                    count += 1
                    held += lattice.size[tensor]
                    work.current[tensor] = slot
                    work.kept[slot] = 1 if work.follower[slot] >= 0 else 0
        for slot in range(begin, end):
            tensor = lattice.tensor[slot]
            if work.follower[slot] < 0 and work.current[tensor] == slot:
                count = _leave(tensor, count, lattice, work)
                held -= lattice.size[tensor]
    return True


@compiled
def _measure(order: Integers, lattice: Lattice, work: Scratch) -> int:
    """Fill ``used``, ``drops`` and ``dropped``; give the number of gaps that are not kept."""
    used = work.used
    used[:] = 0
    work.drops[:] = 0
    lost = 0
    for step in range(len(order)):
        operator = order[step]
        for slot in range(lattice.first[operator], lattice.first[operator + 1]):
            tensor = lattice.tensor[slot]
            follower = work.follower[slot]
            if follower < 0:
                continue
            if work.kept[slot] == 1:
                # A difference array: on after this step, off at the follower's.
                used[step + 1] += lattice.size[tensor]
                used[work.step[lattice.owner[follower]]] -= lattice.size[tensor]
            else:
                work.drops[tensor] += 1
                work.dropped[lost] = slot
                lost += 1
    running = 0
    for step in range(len(order)):
        operator = order[step]
        running += used[step]
        whole = running + lattice.fifo[operator]
        for slot in range(lattice.first[operator], lattice.first[operator + 1]):
            whole += lattice.size[lattice.tensor[slot]]
            if work.streamed[slot] == 1:
                whole -= lattice.saved[slot]
        used[step] = whole
    return lost


@compiled
def _take_back(slot: int, capacity: int, lattice: Lattice, work: Scratch) -> bool:
    """Keep a gap after all, if it fits; say whether it did."""
    tensor = lattice.tensor[slot]
    size = lattice.size[tensor]
    follower = work.follower[slot]
    begin, end = work.step[lattice.owner[slot]], work.step[lattice.owner[follower]]
    if work.streamed[slot] == 1 and work.used[begin] + lattice.saved[slot] > capacity:
        return False
    if work.streamed[follower] == 1 and work.used[end] + lattice.saved[follower] > capacity:
        return False
    for step in range(begin + 1, end):
        if work.used[step] + size > capacity:
            return False
    for step in range(begin + 1, end):
        work.used[step] += size
    if work.streamed[slot] == 1:
        work.used[begin] += lattice.saved[slot]
        work.streamed[slot] = 0
    if work.streamed[follower] == 1:
        work.used[end] += lattice.saved[follower]
        work.streamed[follower] = 0
    work.kept[slot] = 1
    work.drops[tensor] -= 1
    return True


@compiled
def evaluate(order: Integers, capacity: int, lattice: Lattice, work: Scratch) -> int:
    """Give the avoidable units of an order with a good residency, which ``work`` then holds.

    Parameters
    ----------
    order : shape (operators,)
        Topological.
    capacity : int
        Units of the scratchpad.

    Returns
    -------
    int
        `IMPOSSIBLE` when a step does not fit.
    """
    _link(order, lattice, work)
    if not _replay(order, capacity, lattice, work):
        return IMPOSSIBLE
    lost = _measure(order, lattice, work)
    # Gaps whose return saves the spill as well come first.
    for last_of_its_tensor in (True, False):
        for index in range(lost):
            slot = work.dropped[index]
            tensor = lattice.tensor[slot]
            saves_spill = lattice.cheap[tensor] == 0 and work.drops[tensor] == 1
            if work.kept[slot] == 0 and (saves_spill or not last_of_its_tensor):
                _take_back(slot, capacity, lattice, work)
    words = 0
    for tensor in range(len(lattice.size)):
        if work.drops[tensor] > 0:
            words += lattice.size[tensor] * (work.drops[tensor] + 1 - lattice.cheap[tensor])
    return words


def avoidable_words(problem: Problem, order: Sequence[int], capacity: int, *, streaming: bool) -> int | None:
    """Give avoidable words an order has a residency with; None where some step does not fit."""
    lattice = Lattice.of(problem, streaming=streaming)
    plain = np.array(order, dtype=np.int64)
    units = int(evaluate(plain, capacity // lattice.unit, lattice, Scratch.of(lattice)))
    return None if units >= IMPOSSIBLE else units * lattice.unit
