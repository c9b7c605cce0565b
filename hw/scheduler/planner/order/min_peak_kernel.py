"""The least peak of live units over all orders: searches over down-sets, compiled.

An operator that fits below the peak reached so far and leaves no more alive than before is executed at once:
whatever order follows, taking it to the front raises nothing.  (Later it could only free more tensors, and
in between fewer are alive.)  This rule alone merges most of the lattice.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from hw.scheduler.planner.order.lattice import (
    BITS,
    Integers,
    Lattice,
    add,
    compiled,
    contains,
    covers,
    meets,
    mixed,
    remove,
    slot_of,
)

#: Columns of a state: live units, peak so far, the state before, the operator taken from it, operators done.
LIVE, PEAK, PARENT, OPERATOR, DONE = range(5)


class States(NamedTuple):
    """States of a search: each a down-set, what may follow, and how it was reached.

    Members
    -------
    done, ready : shape (states, words of a set)
    fact : shape (states, 5)
        See `LIVE` and those after it.
    table : shape (a power of two,)
        Hash table of the down-sets.
    """

    done: Integers
    ready: Integers
    fact: Integers
    table: Integers


@compiled
def outlives(tensor: int, operator: int, done: Integers, lattice: Lattice) -> bool:
    """Tell whether a tensor is still needed after ``done`` and then the operator."""
    for word in range(len(done)):
        left = lattice.users[tensor, word] & ~done[word]
        if word == operator // BITS:
            left &= ~(1 << operator % BITS)
        if left != 0:
            return True
    return False


@compiled
def weigh(operator: int, done: Integers, live: int, lattice: Lattice) -> tuple[int, int]:
    """Give the units alive while an operator runs after ``done``, and afterwards."""
    during, after = live, live
    operands = 0
    for slot in range(lattice.first[operator], lattice.first[operator + 1]):
        tensor = lattice.tensor[slot]
        size = lattice.size[tensor]
        operands += size
        fresh = lattice.writes[slot] == 1 or (
            lattice.source[tensor] == 1 and not meets(done, lattice.users[tensor])
        )
        if fresh:
            during += size
        if outlives(tensor, operator, done, lattice):
            after += size if fresh else 0
        elif not fresh:
            after -= size
    return during + lattice.whole[operator] - operands, after


@compiled
def execute(operator: int, done: Integers, ready: Integers, lattice: Lattice) -> None:
    """Add an operator to ``done``, and to ``ready`` what can follow it, in place."""
    add(done, operator)
    remove(ready, operator)
    for index in range(lattice.after_first[operator], lattice.after_first[operator + 1]):
        follower = lattice.after[index]
        if covers(done, lattice.before[follower]):
            add(ready, follower)


@compiled
def _close(
    done: Integers, ready: Integers, live: int, count: int, peak: int, lattice: Lattice, trace: Integers
) -> tuple[int, int]:
    """Execute every operator that costs nothing, in place; give live units and executed operators.

    The operators go to ``trace`` from ``count`` on, in order.
    """
    again = True
    while again:
        again = False
        for operator in range(len(lattice.before)):
            if contains(ready, operator):
                during, after = weigh(operator, done, live, lattice)
                if after <= live and during <= peak:
                    execute(operator, done, ready, lattice)
                    trace[count] = operator
                    live = after
                    count += 1
                    again = True
    return live, count


@compiled
def _first(states: States, peak: int, lattice: Lattice, trace: Integers) -> None:
    """Put down the state before any operator that costs anything."""
    done, ready = states.done[0], states.ready[0]
    for operator in range(len(lattice.before)):
        if covers(done, lattice.before[operator]):
            add(ready, operator)
    live, count = _close(done, ready, 0, 0, peak, lattice, trace)
    fact = states.fact[0]
    fact[LIVE], fact[PEAK], fact[PARENT], fact[OPERATOR], fact[DONE] = live, peak, -1, -1, count
    states.table[slot_of(done, states.done, states.table)] = 0


@compiled
def _enter(states: States, item: int, operator: int, known: int, lattice: Lattice, trace: Integers) -> int:
    """Execute an operator after a state; give the state reached if it is new or has a lower peak, else -1.

    A new state is number ``known``, which must have room.
    """
    done, ready = states.done[known], states.ready[known]
    done[:] = states.done[item]
    ready[:] = states.ready[item]
    during, live = weigh(operator, done, states.fact[item, LIVE], lattice)
    peak = max(states.fact[item, PEAK], during)
    execute(operator, done, ready, lattice)
    live, count = _close(done, ready, live, states.fact[item, DONE] + 1, peak, lattice, trace)
    place = slot_of(done, states.done, states.table)
    found = states.table[place]
    if found >= 0:
        if states.fact[found, PEAK] <= peak:
            return -1
    else:
        found = known
        states.table[place] = known
    fact = states.fact[found]
    fact[LIVE], fact[PEAK], fact[PARENT], fact[OPERATOR], fact[DONE] = live, peak, item, operator, count
    return found


@compiled
def best_first(states: States, floor: int, lattice: Lattice) -> tuple[int, int]:
    """Search for the least peak until it is proven or the room for states is used up.

    Parameters
    ----------
    states : States
        Empty.
    floor : int
        A peak that no order is below; the search does not tell lower ones apart.
    lattice : Lattice

    Returns
    -------
    bound : int
        No order has a lower peak, in units.
    goal : int
        The last state of an order with this peak, or -1.
    """
    operators = len(lattice.before)
    trace = np.empty(operators, dtype=np.int64)
    limit = len(states.fact) - 1
    _first(states, floor, lattice, trace)
    known = 1
    waiting = [(floor * (operators + 1) + operators - states.fact[0, DONE], 0)]
    bound = floor
    while len(waiting) > 0:
        key, item = heapq.heappop(waiting)
        bound = key // (operators + 1)
        if states.fact[item, PEAK] < bound:
            continue
        if states.fact[item, DONE] == operators:
            return bound, item
        for operator in range(operators):
            if not contains(states.ready[item], operator):
                continue
            if known == limit:
                return bound, -1
            reached = _enter(states, item, operator, known, lattice, trace)
            if reached >= 0:
                known += reached == known
                key = states.fact[reached, PEAK] * (operators + 1) + operators - states.fact[reached, DONE]
                heapq.heappush(waiting, (key, reached))
    return bound, -1


@compiled
def beam(states: States, floor: int, width: int, seed: int, lattice: Lattice) -> int:
    """Search by levels of operators done, from each level only the ``width`` best states.

    Parameters
    ----------
    states : States
        Empty.
    floor : int
        As of `best_first`.
    width : int
    seed : int
        Decides between states with the same peak and the same live units.
    lattice : Lattice

    Returns
    -------
    int
        The last state of a good order, or -1 when there was no room.
    """
    operators = len(lattice.before)
    trace = np.empty(operators, dtype=np.int64)
    limit = len(states.fact) - 1
    _first(states, floor, lattice, trace)
    known = 1
    tie = np.empty(2, dtype=np.int64)
    newest = np.full(operators + 1, -1, dtype=np.int64)
    older = np.full(limit + 1, -1, dtype=np.int64)
    newest[states.fact[0, DONE]] = 0
    for level in range(operators):
        count = 0
        item = newest[level]
        while item >= 0:
            count += 1
            item = older[item]
        members = np.empty(count, dtype=np.int64)
        item = newest[level]
        for index in range(count):
            members[count - 1 - index] = item
            item = older[item]
        rank = states.fact[members, PEAK] * (lattice.size.sum() + 1) + states.fact[members, LIVE]
        for index in range(count):
            tie[0] = members[index]
            tie[1] = seed
            rank[index] = 256 * rank[index] + mixed(tie) % 256
        for place in np.argsort(rank, kind="mergesort")[:width]:
            for operator in range(operators):
                if not contains(states.ready[members[place]], operator):
                    continue
                if known == limit:
                    return -1
                reached = _enter(states, members[place], operator, known, lattice, trace)
                if reached == known:
                    level_reached = states.fact[reached, DONE]
                    older[reached] = newest[level_reached]
                    newest[level_reached] = reached
                    known += 1
    return newest[operators]


@compiled
def order_to(states: States, goal: int, lattice: Lattice) -> Integers:
    """Give the order that led to the last state."""
    operators, width = lattice.before.shape
    order = np.empty(operators, dtype=np.int64)
    done = np.empty(width, dtype=np.int64)
    ready = np.empty(width, dtype=np.int64)
    item = goal
    while item >= 0:
        parent = states.fact[item, PARENT]
        peak = states.fact[item, PEAK]
        if parent < 0:
            done[:] = 0
            ready[:] = 0
            for operator in range(operators):
                if covers(done, lattice.before[operator]):
                    add(ready, operator)
            _close(done, ready, 0, 0, peak, lattice, order)
        else:
            done[:] = states.done[parent]
            ready[:] = states.ready[parent]
            operator = states.fact[item, OPERATOR]
            _, live = weigh(operator, done, states.fact[parent, LIVE], lattice)
            execute(operator, done, ready, lattice)
            order[states.fact[parent, DONE]] = operator
            _close(done, ready, live, states.fact[parent, DONE] + 1, peak, lattice, order)
        item = parent
    return order
