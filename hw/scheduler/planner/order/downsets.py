"""Down-sets of a problem, each stored once; and the order of least peak, by a best-first search over them."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from hw.scheduler.compiled import compiled
from hw.scheduler.planner.order.lattice import (
    BITS,
    Integers,
    Lattice,
    add,
    contains,
    copy_into,
    covers,
    remove,
    units_of,
)


class DownSets(NamedTuple):
    """Down-sets by number, with space for more; 0 is the empty one."""

    #: ``done``, ``ready``: shape (down-sets, words of a set of operators): executed operators, and those that
    #: can be executed next.
    done: Integers
    ready: Integers
    live: Integers  #: Shape (down-sets, words of a set of tensors): touched tensors that are still needed.
    table: Integers  #: Shape (a power of two,): hash table: numbers of down-sets, or -1.
    tally: Integers  #: Shape (1,): down-sets found.

    @classmethod
    def of(cls, lattice: Lattice, limit: int) -> DownSets:
        """Allocate down-sets; the system commits memory as it fills, except for the hash table."""
        operators, tensors = lattice.before.shape[1], -(-len(lattice.size) // BITS)
        done, ready, live = (
            np.zeros((limit + 1, width), np.int64) for width in (operators, operators, tensors)
        )
        for operator, before in enumerate(lattice.before):
            if not before.any():
                add(ready[0], operator)
        sets = cls(done, ready, live, np.full(1 << (2 * limit + 1).bit_length(), -1), np.ones(1, np.int64))
        sets.table[_place_of(0, sets)] = 0
        return sets


@compiled
def _place_of(number: int, sets: DownSets) -> np.int64:
    """Return the index of a down-set in the hash table, or a free one."""
    row, table = sets.done[number], sets.table
    value = np.uint64(0x9E3779B97F4A7C15)
    for word in row:
        value ^= np.uint64(word)
        value *= np.uint64(0xBF58476D1CE4E5B9)
        value ^= value >> np.uint64(29)
        value *= np.uint64(0x94D049BB133111EB)
        value ^= value >> np.uint64(32)
    place = np.int64(value >> np.uint64(2)) & (len(table) - 1)
    while table[place] >= 0:
        different = 0
        for word in range(len(row)):
            different |= sets.done[table[place], word] ^ row[word]
        if different == 0:
            break
        place = (place + 1) & (len(table) - 1)
    return place


@compiled
def follow(number: int, operator: int, sets: DownSets, lattice: Lattice) -> int:
    """Find or make the down-set after an operator; -1 when the table is full."""
    new = sets.tally[0]
    if new == len(sets.done):
        return -1
    done, ready, live = sets.done[new], sets.ready[new], sets.live[new]
    copy_into(done, sets.done[number])
    add(done, operator)
    place = _place_of(new, sets)
    if sets.table[place] >= 0:
        return sets.table[place]
    sets.table[place] = new
    sets.tally[0] += 1
    copy_into(ready, sets.ready[number])
    remove(ready, operator)
    for later in lattice.after[lattice.after_first[operator] : lattice.after_first[operator + 1]]:
        if covers(done, lattice.before[later]):
            add(ready, later)
    copy_into(live, sets.live[number])
    for tensor in lattice.tensor[lattice.first[operator] : lattice.first[operator + 1]]:
        if covers(done, lattice.users[tensor]):
            remove(live, tensor)
        else:
            add(live, tensor)
    return new


@compiled
def outlives(tensor: int, operator: int, done: Integers, lattice: Lattice) -> bool:
    """Whether a tensor is still needed after ``done`` and then the operator."""
    for word in range(len(done)):
        left = lattice.users[tensor, word] & ~done[word]
        if word == operator // BITS:
            left &= ~(1 << operator % BITS)
        if left != 0:
            return True
    return False


@compiled
def weigh(number: int, operator: int, sets: DownSets, lattice: Lattice) -> tuple[int, int]:
    """Return the live units that an operator after a down-set adds while it runs, and afterwards."""
    during, after = lattice.whole[operator], 0
    for tensor in lattice.tensor[lattice.first[operator] : lattice.first[operator + 1]]:
        size = lattice.size[tensor]
        if contains(sets.live[number], tensor):
            during -= size
            after -= size
        if outlives(tensor, operator, sets.done[number], lattice):
            after += size
    return during, after


@compiled
def survey(sets: DownSets, lattice: Lattice, flag: Integers) -> bool:
    """Find all down-sets, those of fewer operators first; return whether space and time sufficed."""
    number = 0
    while number < sets.tally[0]:
        if flag[0] != 0:
            return False
        for operator in range(len(lattice.before) - 1, -1, -1):
            if contains(sets.ready[number], operator) and follow(number, operator, sets, lattice) < 0:
                return False
        number += 1
    return True


@compiled
def peaks_ahead(sets: DownSets, lattice: Lattice) -> Integers:
    """Return for each down-set the least peak from there to the end; ``sets`` holds all of them."""
    least = np.zeros(sets.tally[0], dtype=np.int64)
    for number in range(len(least) - 2, -1, -1):
        held = units_of(sets.live[number], lattice.size)
        least[number] = -1
        for operator in range(len(lattice.before)):
            if contains(sets.ready[number], operator):
                here = held + weigh(number, operator, sets, lattice)[0]
                peak = max(here, least[follow(number, operator, sets, lattice)])
                if least[number] < 0 or peak < least[number]:
                    least[number] = peak
    return least


@compiled
def least_peak(sets: DownSets, floor: int, lattice: Lattice, flag: Integers) -> tuple[int, Integers]:
    """Search for the order with the least peak of live units, until it is proven or the table is full.

    An operator that fits below the peak so far and does not increase the live units is executed at once.
    Moving it to the front of any further order raises no peak: later it could only free more tensors, and in
    between fewer are live.  This rule alone merges most down-sets.

    ``sets``: only the empty one. ``floor``: lower peaks count as equal to it. ``flag``: of shape (1,); see
    `hw.scheduler.planner.watch.Watch`.

    Returns a bound and an order with this peak: no order has a lower one, or the floor.  The order is empty
    when the table was full or the flag ended the search.
    """
    operators = len(lattice.before)
    peak, before, taken, depth = np.zeros((4, len(sets.done)), dtype=np.int64)
    peak[0] = bound = floor
    waiting = [(floor * (operators + 1) + operators, 0)]
    while len(waiting) > 0 and flag[0] == 0:
        key, number = heapq.heappop(waiting)
        bound = key // (operators + 1)
        if peak[number] < bound:
            continue
        if depth[number] == operators:
            order = np.empty(operators, dtype=np.int64)
            for step in range(operators - 1, -1, -1):
                order[step] = taken[number]
                number = before[number]
            return bound, order
        held = units_of(sets.live[number], lattice.size)
        at_once = -1
        for operator in range(operators):
            if contains(sets.ready[number], operator):
                during, after = weigh(number, operator, sets, lattice)
                if after <= 0 and held + during <= bound:
                    at_once = operator
                    break
        for operator in range(operators):
            if not contains(sets.ready[number], operator) or (at_once >= 0 and operator != at_once):
                continue
            known = sets.tally[0]
            reached = follow(number, operator, sets, lattice)
            if reached < 0:
                return bound, np.empty(0, dtype=np.int64)
            highest = max(bound, held + weigh(number, operator, sets, lattice)[0])
            if reached == known or highest < peak[reached]:
                peak[reached], before[reached], taken[reached] = highest, number, operator
                depth[reached] = depth[number] + 1
                heapq.heappush(waiting, (highest * (operators + 1) + operators - depth[reached], reached))
    return bound, np.empty(0, dtype=np.int64)
