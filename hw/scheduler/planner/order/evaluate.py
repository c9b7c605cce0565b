"""Traffic of an order, compiled: a replay that evicts greedily, then undoes needless evictions.

The replay fetches each step's operands.  If they do not fit, it evicts the resident with the least cost for
the freed space and time.  This is Belady's rule with sizes, and with the spill of an unwritten activation.
An operand of the step itself may pass through a window instead.  Afterwards every gap that was not kept is
tried again, since later evictions may have made room.  The result is a residency, so its traffic is an upper
bound of the order's optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hw.scheduler.compiled import compiled
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.lattice import Integers, Lattice, set_all

#: Avoidable units of an order with a step that does not fit.
IMPOSSIBLE = 1 << 60

#: From this number of residents on, a step sorts its evictions once.
_MANY = 256


class Scratch(NamedTuple):
    """Work arrays and result of one evaluation.

    A **slot** is one operand of one operator. In every order a slot is an event of its tensor, and it also
    names the gap that follows the event.
    """

    #: ``step``, ``follower``, ``previous``: shape (slots,): the slot's step in this order; the tensor's next
    #: and previous slot, or -1.
    step: Integers
    follower: Integers
    previous: Integers
    #: ``kept``, ``streamed``: shape (slots,): the residency: whether each slot's gap is kept, and whether the
    #: slot is streamed.
    kept: Integers
    streamed: Integers
    used: Integers  #: Shape (operators + 1,): units in use in each step.
    #: ``current``, ``place``, ``spilled``, ``drops``: shape (tensors,): the slot since which a tensor is
    #: resident, or -1; its index in ``resident``; whether it lies in memory; afterwards its gaps not kept.
    current: Integers
    place: Integers
    spilled: Integers
    drops: Integers
    resident: Integers  #: Shape (tensors + 1,): their number, then the resident tensors.
    dropped: Integers  #: Shape (slots,): gaps that are not kept, by step.

    @classmethod
    def of(cls, lattice: Lattice) -> Scratch:
        """Allocate the arrays."""
        operators, slots, tensors = len(lattice.fifo), len(lattice.tensor), len(lattice.size)
        lengths = (*[slots] * 5, operators + 1, *[tensors] * 4, tensors + 1, slots)
        return cls(*(np.zeros(length, dtype=np.int64) for length in lengths))


@compiled
def _link(order: Integers, lattice: Lattice, work: Scratch) -> None:
    """Find each slot's step and neighbours."""
    latest = work.current
    set_all(latest, -1)
    set_all(work.previous, -1)
    for step in range(len(order) - 1, -1, -1):
        for slot in range(lattice.first[order[step]], lattice.first[order[step] + 1]):
            tensor = lattice.tensor[slot]
            work.step[slot] = step
            work.follower[slot] = latest[tensor]
            latest[tensor] = slot
    set_all(latest, -1)


@compiled
def _leave(tensor: int, lattice: Lattice, work: Scratch) -> int:
    """Remove a tensor from the list of residents; return its units."""
    last = work.resident[work.resident[0]]
    work.resident[work.place[tensor]] = last
    work.place[last] = work.place[tensor]
    work.resident[0] -= 1
    work.current[tensor] = -1
    return lattice.size[tensor]


@compiled
def _stream(slot: int, lattice: Lattice, work: Scratch) -> int:
    """Stream an operand of the current step; return the units that this frees."""
    tensor = lattice.tensor[slot]
    previous = work.previous[slot]
    work.streamed[slot] = 1
    work.kept[slot] = 0
    if previous >= 0:
        work.kept[previous] = 0
    if previous >= 0 or work.follower[slot] >= 0:
        work.spilled[tensor] = 1
    _leave(tensor, lattice, work)
    return lattice.saved[slot]


@compiled
def _stream_score(slot: int, step: int, owing: bool, lattice: Lattice, work: Scratch) -> float:
    """Return space and time freed by streaming an operand, by its cost; negative if it only streams alone."""
    if lattice.saved[slot] == 0 or lattice.alone[slot] == 1:
        return -1.0
    follower = work.follower[slot]
    times = (1 if follower >= 0 else 0) + (1 if work.previous[slot] >= 0 else 0)
    if times == 0:
        return 1e18
    size = lattice.size[lattice.tensor[slot]]
    freed = lattice.saved[slot]
    if follower >= 0:
        freed += size * (work.step[follower] - step - 1)
    return freed / (size * (times + (1 if owing else 0)))


@compiled
def _make_room(
    step: int, lone: bool, over: int, windows: int, lattice: Lattice, work: Scratch
) -> tuple[int, int]:
    """Evict as `_replay` does, for many residents; return the remaining excess, and all windows.

    Evictions do not change the score of other residents, so sorting once suffices.  A search for each
    eviction takes minutes in steps with thousands of residents; with few it is faster.
    """
    many = work.resident[0]
    leaving = work.current[work.resident[1 : many + 1]]
    scores = np.empty(many)
    for index in range(many):
        slot = leaving[index]
        tensor = lattice.tensor[slot]
        owing = lattice.cheap[tensor] == 0 and work.spilled[tensor] == 0
        if work.step[slot] != step:
            scores[index] = -(work.step[work.follower[slot]] - step) * (0.5 if owing else 1.0)
        else:
            scores[index] = 1.0 if lone else -_stream_score(slot, step, owing, lattice, work)
    for index in np.argsort(scores):
        if over <= 0:
            break
        slot = leaving[index]
        if work.step[slot] == step:
            windows += lattice.size[lattice.tensor[slot]] - lattice.saved[slot]
            over -= _stream(slot, lattice, work)
        else:
            work.kept[slot] = 0
            work.spilled[lattice.tensor[slot]] = 1
            over -= _leave(lattice.tensor[slot], lattice, work)
    return over, windows


@compiled
def _replay(order: Integers, capacity: int, lattice: Lattice, work: Scratch) -> bool:
    """Fill ``kept`` and ``streamed``; return whether every step fits."""
    set_all(work.spilled, 0)
    set_all(work.streamed, 0)
    work.resident[0] = 0
    held = 0
    for step in range(len(order)):
        operator = order[step]
        begin, end = lattice.first[operator], lattice.first[operator + 1]
        together, loner = 0, -1
        for slot in range(begin, end):
            tensor = lattice.tensor[slot]
            if work.current[tensor] < 0:
                work.resident[0] += 1
                work.place[tensor] = work.resident[0]
                work.resident[work.resident[0]] = tensor
                held += lattice.size[tensor]
            work.previous[slot] = work.current[tensor]
            work.current[tensor] = slot
            work.kept[slot] = 1 if work.follower[slot] >= 0 else 0
            if lattice.alone[slot] == 0:
                together += lattice.saved[slot]
            elif loner < 0 or lattice.saved[slot] > lattice.saved[loner]:
                loner = slot
        over = held + lattice.fifo[operator] - capacity
        windows = 0
        lone = lattice.whole[operator] - together > capacity
        if lone:
            # Only an operand that streams alone frees enough.
            if loner < 0 or lattice.whole[operator] - lattice.saved[loner] > capacity:
                return False
            windows += lattice.size[lattice.tensor[loner]] - lattice.saved[loner]
            over -= _stream(loner, lattice, work)
        if over > 0 and work.resident[0] > _MANY:
            over, windows = _make_room(step, lone, over, windows, lattice, work)
        while over > 0:
            best, highest = -1, -1.0
            for index in range(1, work.resident[0] + 1):
                tensor = work.resident[index]
                slot = work.current[tensor]
                owing = lattice.cheap[tensor] == 0 and work.spilled[tensor] == 0
                if work.step[slot] != step:
                    score = (work.step[work.follower[slot]] - step) * (0.5 if owing else 1.0)
                else:
                    score = -1.0 if lone else _stream_score(slot, step, owing, lattice, work)
                if score > highest:
                    best, highest = slot, score
            if work.step[best] == step:
                windows += lattice.size[lattice.tensor[best]] - lattice.saved[best]
                over -= _stream(best, lattice, work)
            else:
                work.kept[best] = 0
                work.spilled[lattice.tensor[best]] = 1
                over -= _leave(lattice.tensor[best], lattice, work)
        held = over + capacity - lattice.fifo[operator] - windows
        for slot in range(begin, end):
            tensor = lattice.tensor[slot]
            if work.follower[slot] < 0 and work.current[tensor] == slot:
                held -= _leave(tensor, lattice, work)
    return True


@compiled
def _measure(order: Integers, lattice: Lattice, work: Scratch) -> int:
    """Fill ``used``, ``drops`` and ``dropped``; return the number of gaps that are not kept."""
    used = work.used
    set_all(used, 0)
    set_all(work.drops, 0)
    lost = 0
    for operator in order:
        for slot in range(lattice.first[operator], lattice.first[operator + 1]):
            tensor, follower = lattice.tensor[slot], work.follower[slot]
            if follower >= 0 and work.kept[slot] == 1:
                # A difference array: on after this step, off at the follower's.
                used[work.step[slot] + 1] += lattice.size[tensor]
                used[work.step[follower]] -= lattice.size[tensor]
            elif follower >= 0:
                work.drops[tensor] += 1
                work.dropped[lost] = slot
                lost += 1
    running = 0
    for step in range(len(order)):
        running += used[step]
        used[step] = running + lattice.whole[order[step]]
    for slot in range(len(lattice.tensor)):
        if work.streamed[slot] == 1:
            used[work.step[slot]] -= lattice.saved[slot]
    return lost


@compiled
def _take_back(slot: int, capacity: int, lattice: Lattice, work: Scratch) -> None:
    """Keep a gap after all, if it fits."""
    tensor, ends = lattice.tensor[slot], (slot, work.follower[slot])
    size, between = lattice.size[tensor], range(work.step[ends[0]] + 1, work.step[ends[1]])
    for end in ends:
        if work.streamed[end] == 1 and work.used[work.step[end]] + lattice.saved[end] > capacity:
            return
    for step in between:
        if work.used[step] + size > capacity:
            return
    for step in between:
        work.used[step] += size
    for end in ends:
        if work.streamed[end] == 1:
            work.used[work.step[end]] += lattice.saved[end]
            work.streamed[end] = 0
    work.kept[slot] = 1
    work.drops[tensor] -= 1


@compiled
def evaluate(order: Integers, capacity: int, lattice: Lattice, work: Scratch) -> int:
    """Return the avoidable units of an order with a good residency, which is left in ``work``.

    ``order``: of shape (operators,); topological. ``capacity``: units of the scratchpad.

    `IMPOSSIBLE` when a step does not fit.
    """
    _link(order, lattice, work)
    if not _replay(order, capacity, lattice, work):
        return IMPOSSIBLE
    lost = _measure(order, lattice, work)
    # Gaps that save the spill as well come first.
    for last_of_its_tensor in (True, False):
        for slot in work.dropped[:lost]:
            tensor = lattice.tensor[slot]
            saves_spill = lattice.cheap[tensor] == 0 and work.drops[tensor] == 1
            if work.kept[slot] == 0 and (saves_spill or not last_of_its_tensor):
                _take_back(slot, capacity, lattice, work)
    words = 0
    for tensor in range(len(lattice.size)):
        if work.drops[tensor] > 0:
            words += lattice.size[tensor] * (work.drops[tensor] + 1 - lattice.cheap[tensor])
    return words


def avoidable_words(problem: Problem, order: Sequence[int], capacity: int, *, streaming: bool) -> int:
    """Return the avoidable words of a residency of an order; `IMPOSSIBLE` if some step does not fit."""
    lattice = Lattice.of(problem, streaming=streaming)
    plain = np.array(order, dtype=np.int64)
    units = int(evaluate(plain, capacity // lattice.unit, lattice, Scratch.of(lattice)))
    return min(IMPOSSIBLE, units * lattice.unit)
