"""Traffic of an order, compiled: a replay that evicts greedily, then takes back what was evicted in vain.

Replay: operands come in; where they do not fit, the resident whose eviction costs least for the space and
time it frees goes (Belady's rule, with sizes and with the spill that an unwritten activation costs on top).
An operand of the step itself may pass through a window instead.  Afterwards every gap that was not kept is
tried again, since what was evicted in between may have made room.  The result is a residency, so its traffic
is an upper bound of the order's optimum, and it is exact for what it decided.
"""

from __future__ import annotations

from typing import Any

import numba

from hw.scheduler.planner.order.search.tables import Integers, Scratch, Tables

#: Avoidable units of an order in which some step does not fit at all.
IMPOSSIBLE = 1 << 60

_compiled: Any = numba.njit(cache=True)


@_compiled
def _link(order: Integers, tables: Tables, work: Scratch) -> None:
    """Find each operator's step, and each slot's neighbours."""
    latest = work.current
    latest[:] = -1
    for step in range(len(order) - 1, -1, -1):
        operator = order[step]
        work.step[operator] = step
        for slot in range(tables.first[operator], tables.first[operator + 1]):
            tensor = tables.tensor[slot]
            work.follower[slot] = latest[tensor]
            latest[tensor] = slot
    work.current[:] = -1


@_compiled
def _leave(tensor: int, count: int, tables: Tables, work: Scratch) -> int:
    """Take a tensor off the list of residents; give the new length."""
    last = work.resident[count - 1]
    work.resident[work.place[tensor]] = last
    work.place[last] = work.place[tensor]
    work.current[tensor] = -1
    return count - 1


@_compiled
def _victim(step: int, count: int, lone: bool, streams: int, tables: Tables, work: Scratch) -> int:
    """Give the resident whose eviction frees most for its cost, or -1."""
    best, best_score = -1, -1.0
    for index in range(count):
        tensor = work.resident[index]
        slot = work.current[tensor]
        size = tables.size[tensor]
        follower = work.follower[slot]
        owing = tables.spills[tensor] == 1 and work.spilled[tensor] == 0
        if work.touched[tensor] != step:
            distance = work.step[tables.owner[follower]] - step
            score = distance * (0.5 if owing else 1.0)
        else:
            if tables.saved[slot] == 0 or lone or (tables.alone[slot] == 1 and streams > 0):
                continue
            hit = work.previous[slot] >= 0
            cost = (size if follower >= 0 else 0) + (size if hit else 0)
            if cost == 0:
                score = 1e18 if tables.alone[slot] == 0 else 1e17
            else:
                if owing:
                    cost += size
                freed = tables.saved[slot]
                if follower >= 0:
                    freed += size * (work.step[tables.owner[follower]] - step - 1)
                score = freed / cost
        if score > best_score:
            best, best_score = tensor, score
    return best


@_compiled
def _stream(slot: int, count: int, tables: Tables, work: Scratch) -> int:
    """Stream an operand of the step at hand; give the new number of residents."""
    tensor = tables.tensor[slot]
    previous, follower = work.previous[slot], work.follower[slot]
    work.streamed[slot] = 1
    work.kept[slot] = 0
    if previous >= 0:
        work.kept[previous] = 0
    if previous >= 0 or follower >= 0:
        work.spilled[tensor] = 1
    return _leave(tensor, count, tables, work)


@_compiled
def _replay(order: Integers, capacity: int, tables: Tables, work: Scratch) -> bool:
    """Fill ``kept`` and ``streamed``; say whether every step fits."""
    work.spilled[:] = 0
    work.touched[:] = -1
    work.streamed[:] = 0
    count = 0
    held = 0
    for step in range(len(order)):
        operator = order[step]
        begin, end = tables.first[operator], tables.first[operator + 1]
        for slot in range(begin, end):
            tensor = tables.tensor[slot]
            work.previous[slot] = work.current[tensor]
            if work.current[tensor] < 0:
                work.resident[count] = tensor
                work.place[tensor] = count
                count += 1
                held += tables.size[tensor]
            work.current[tensor] = slot
            work.touched[tensor] = step
            work.kept[slot] = 1 if work.follower[slot] >= 0 else 0
        extra = tables.fifo[operator]
        streams = 0
        lone = False
        while held + extra > capacity:
            tensor = _victim(step, count, lone, streams, tables, work)
            if tensor < 0:
                break
            held -= tables.size[tensor]
            slot = work.current[tensor]
            if work.touched[tensor] == step:
                extra += tables.size[tensor] - tables.saved[slot]
                streams += 1
                lone = tables.alone[slot] == 1
                count = _stream(slot, count, tables, work)
            else:
                work.kept[slot] = 0
                work.spilled[tensor] = 1
                count = _leave(tensor, count, tables, work)
        if held + extra > capacity:
            # Only a stream that must run alone was in the way of others, or the others of it: choose again.
            together, loner, most = 0, -1, 0
            whole = tables.fifo[operator]
            for slot in range(begin, end):
                whole += tables.size[tables.tensor[slot]]
                if tables.alone[slot] == 0:
                    together += tables.saved[slot]
                elif tables.saved[slot] > most:
                    loner, most = slot, tables.saved[slot]
            if whole - max(together, most) > capacity:
                return False
            for slot in range(begin, end):
                tensor = tables.tensor[slot]
                wanted = (
                    slot == loner
                    if whole - together > capacity
                    else (tables.alone[slot] == 0 and tables.saved[slot] > 0)
                )
                if wanted and work.streamed[slot] == 0:
                    held -= tables.size[tensor]
                    count = _stream(slot, count, tables, work)
                elif not wanted and work.streamed[slot] == 1:
                    work.streamed[slot] = 0
                    work.resident[count] = tensor
                    work.place[tensor] = count
                    count += 1
                    held += tables.size[tensor]
                    work.current[tensor] = slot
                    work.kept[slot] = 1 if work.follower[slot] >= 0 else 0
        for slot in range(begin, end):
            tensor = tables.tensor[slot]
            if work.follower[slot] < 0 and work.current[tensor] == slot:
                count = _leave(tensor, count, tables, work)
                held -= tables.size[tensor]
    return True


@_compiled
def _measure(order: Integers, tables: Tables, work: Scratch) -> int:
    """Fill ``used``, ``drops`` and ``dropped``; give the number of gaps that are not kept."""
    used = work.used
    used[:] = 0
    work.drops[:] = 0
    lost = 0
    for step in range(len(order)):
        operator = order[step]
        for slot in range(tables.first[operator], tables.first[operator + 1]):
            tensor = tables.tensor[slot]
            follower = work.follower[slot]
            if follower < 0:
                continue
            if work.kept[slot] == 1:
                # A difference array: on after this step, off at the follower's.
                used[step + 1] += tables.size[tensor]
                used[work.step[tables.owner[follower]]] -= tables.size[tensor]
            else:
                work.drops[tensor] += 1
                work.dropped[lost] = slot
                lost += 1
    running = 0
    for step in range(len(order)):
        operator = order[step]
        running += used[step]
        whole = running + tables.fifo[operator]
        for slot in range(tables.first[operator], tables.first[operator + 1]):
            whole += tables.size[tables.tensor[slot]]
            if work.streamed[slot] == 1:
                whole -= tables.saved[slot]
        used[step] = whole
    return lost


@_compiled
def _take_back(slot: int, capacity: int, tables: Tables, work: Scratch) -> bool:
    """Keep a gap after all, if it fits; say whether it did."""
    tensor = tables.tensor[slot]
    size = tables.size[tensor]
    follower = work.follower[slot]
    begin, end = work.step[tables.owner[slot]], work.step[tables.owner[follower]]
    if work.streamed[slot] == 1 and work.used[begin] + tables.saved[slot] > capacity:
        return False
    if work.streamed[follower] == 1 and work.used[end] + tables.saved[follower] > capacity:
        return False
    for step in range(begin + 1, end):
        if work.used[step] + size > capacity:
            return False
    for step in range(begin + 1, end):
        work.used[step] += size
    if work.streamed[slot] == 1:
        work.used[begin] += tables.saved[slot]
        work.streamed[slot] = 0
    if work.streamed[follower] == 1:
        work.used[end] += tables.saved[follower]
        work.streamed[follower] = 0
    work.kept[slot] = 1
    work.drops[tensor] -= 1
    return True


@_compiled
def evaluate(order: Integers, capacity: int, tables: Tables, work: Scratch) -> int:
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
    _link(order, tables, work)
    if not _replay(order, capacity, tables, work):
        return IMPOSSIBLE
    lost = _measure(order, tables, work)
    # Gaps whose return saves the spill as well come first.
    for last_of_its_tensor in (True, False):
        for index in range(lost):
            slot = work.dropped[index]
            tensor = tables.tensor[slot]
            saves_spill = tables.spills[tensor] == 1 and work.drops[tensor] == 1
            if work.kept[slot] == 0 and (saves_spill or not last_of_its_tensor):
                _take_back(slot, capacity, tables, work)
    words = 0
    for tensor in range(len(tables.size)):
        if work.drops[tensor] > 0:
            words += tables.size[tensor] * (work.drops[tensor] + tables.spills[tensor])
    return words
