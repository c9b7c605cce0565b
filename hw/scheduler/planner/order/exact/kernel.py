"""Search over what was executed and what lies where, compiled; see `hw.scheduler.planner.order.exact.exact`.

Levels of nodes with equally many operators executed are worked off one after the other.

Rules that lose no optimum:

* Tensors leave only when an operator needs the room, and no more than needed.
* An operator is executed at once when its inputs lie there, it fits, and what it leaves alive is neither
  larger nor dearer to write and read than one input that ends with it: in any plan that executes it later,
  its results can take that input's place.
* Of two states of one node one goes, when turning the other into it costs no more than the difference: ``A``
  becomes ``B`` by the writes of what only ``B`` has written and the next reads of what only ``B`` lacks.
"""

from __future__ import annotations

import numpy as np

from hw.scheduler.planner.order.exact.min_peak_kernel import outlives
from hw.scheduler.planner.order.exact.space import (
    ASIDE,
    COMPARISONS,
    COUNTS,
    NEWEST,
    NEXT,
    NODE,
    OPERATOR,
    PAID,
    PARENT,
    STATES,
    SUNK,
    Space,
    add,
    follow,
    remove,
)
from hw.scheduler.planner.order.lattice import BITS, Integers, Lattice, compiled, contains, lowest, units_of

#: What a search ends with.
EXHAUSTED, FOUND, NO_ROOM = range(3)


@compiled
def _turns(other: int, item: int, budget: int, space: Space, lattice: Lattice) -> bool:
    """Tell whether one state becomes another by writes and reads of no more units than a budget."""
    for word in range(space.absent.shape[1]):
        absent = space.absent[item, word] & ~space.absent[other, word]
        written = space.written[item, word] & ~space.written[other, word]
        while absent != 0:
            budget -= lattice.size[word * BITS + lowest(absent)]
            if budget < 0:
                return False
            absent &= absent - 1
        while written != 0:
            budget -= lattice.size[word * BITS + lowest(written)]
            if budget < 0:
                return False
            written &= written - 1
    return True


@compiled
def _enter(space: Space, count: int, upper: int, lattice: Lattice) -> bool:
    """Add state number ``count`` to its node unless it cannot matter; say whether it does.

    What it makes superfluous is marked so.
    """
    fact = space.state[count]
    node = fact[NODE]
    absent, written = space.absent[count], space.written[count]
    credit = 0
    for word in range(len(absent)):
        credit += units_of(absent[word], word * BITS, lattice.size)
        credit += units_of(written[word], word * BITS, lattice.size)
    if fact[PAID] + max(0, space.ahead[node] - credit) >= upper:
        return False
    sunk = fact[PAID] - credit
    other = space.node[node, NEWEST]
    while other >= 0:
        rival = space.state[other]
        if rival[COUNTS] == 1:
            space.tally[COMPARISONS] += 1
            # Either can only make the other superfluous when it has paid and sunk less.
            saved = fact[PAID] - rival[PAID]
            if saved >= 0 and rival[SUNK] <= sunk and _turns(other, count, saved, space, lattice):
                return False
            if saved <= 0 and sunk <= rival[SUNK] and _turns(count, other, -saved, space, lattice):
                rival[COUNTS] = 0
        other = rival[NEXT]
    fact[SUNK] = sunk
    fact[COUNTS] = 1
    fact[NEXT] = space.node[node, NEWEST]
    space.node[node, NEWEST] = count
    return True


@compiled
def _leaving(tensor: int, written: Integers, lattice: Lattice) -> int:
    """Give what a resident tensor's leaving costs: its write, if it has none yet, and its next read."""
    if lattice.cheap[tensor] == 1 or contains(written, tensor):
        return lattice.size[tensor]
    return 2 * lattice.size[tensor]


@compiled
def _is_free(operator: int, item: int, held: int, capacity: int, space: Space, lattice: Lattice) -> bool:
    """Tell whether executing an operator at once loses nothing."""
    node = space.state[item, NODE]
    done, live = space.done[node], space.live[node]
    absent, written = space.absent[item], space.written[item]
    during = held + lattice.whole[operator]
    left, dear = 0, 0
    for slot in range(lattice.first[operator], lattice.first[operator + 1]):
        tensor = lattice.tensor[slot]
        size = lattice.size[tensor]
        if contains(live, tensor):
            if contains(absent, tensor):
                return False
            during -= size
        elif outlives(tensor, operator, done, lattice):
            left += size
            dear += size if lattice.cheap[tensor] == 1 else 2 * size
    if during > capacity:
        return False
    if left == 0:
        return True
    for slot in range(lattice.first[operator], lattice.first[operator + 1]):
        tensor = lattice.tensor[slot]
        if (
            contains(live, tensor)
            and lattice.size[tensor] >= left
            and _leaving(tensor, written, lattice) >= dear
            and not outlives(tensor, operator, done, lattice)
        ):
            return True
    return False


@compiled
def _choices(
    mode: int,
    operator: int,
    item: int,
    space: Space,
    lattice: Lattice,
    choice: Integers,
) -> tuple[int, int]:
    """List what could make room for an operator: other residents that leave, and operands that stream.

    Parameters
    ----------
    mode : int
        The operand that streams alone, or -1 when those do that need not.
    choice : shape (3, tensors)
        Units of room, units to pay, and the tensor: filled in.

    Returns
    -------
    count : int
    gained : int
        Units of room that cost nothing, or that the mode demands.
    """
    node = space.state[item, NODE]
    done, live = space.done[node], space.live[node]
    absent, written = space.absent[item], space.written[item]
    begin, end = lattice.first[operator], lattice.first[operator + 1]
    count, gained = 0, 0
    for word in range(len(live)):
        here = live[word] & ~absent[word]
        for slot in range(begin, end):
            if lattice.tensor[slot] // BITS == word:
                here &= ~(1 << lattice.tensor[slot] % BITS)
        while here != 0:
            tensor = word * BITS + lowest(here)
            here &= here - 1
            choice[0, count] = lattice.size[tensor]
            choice[1, count] = _leaving(tensor, written, lattice)
            choice[2, count] = tensor
            count += 1
    for slot in range(begin, end):
        if (
            lattice.saved[slot] == 0
            or (lattice.alone[slot] == 1) != (slot == mode)
            or (mode >= 0 and slot != mode)
        ):
            continue
        tensor = lattice.tensor[slot]
        again = outlives(tensor, operator, done, lattice)
        pay = 0
        if contains(live, tensor):
            if not contains(absent, tensor):
                pay += _leaving(tensor, written, lattice)
            pay += lattice.size[tensor] if again else 0
        elif again:
            pay += lattice.size[tensor] if lattice.cheap[tensor] == 1 else 2 * lattice.size[tensor]
        if pay == 0:
            gained += lattice.saved[slot]
            continue
        choice[0, count] = lattice.saved[slot]
        choice[1, count] = pay
        choice[2, count] = tensor
        count += 1
    # Largest first: then a choice that is just enough has nothing to spare in it either.
    for index in range(1, count):
        room, pay, tensor = choice[0, index], choice[1, index], choice[2, index]
        place = index
        while place > 0 and (
            choice[0, place - 1] < room or (choice[0, place - 1] == room and choice[2, place - 1] > tensor)
        ):
            choice[:, place] = choice[:, place - 1]
            place -= 1
        choice[0, place], choice[1, place], choice[2, place] = room, pay, tensor
    return count, gained


@compiled
def _put(
    count: int,
    item: int,
    child: int,
    operator: int,
    paid: int,
    chosen: Integers,
    depth: int,
    choice: Integers,
    space: Space,
    lattice: Lattice,
) -> None:
    """Write down state number ``count``: after ``item``, the operator, with what was chosen absent."""
    absent, written, live = space.absent[count], space.written[count], space.live[child]
    absent[:] = space.absent[item]
    written[:] = space.written[item]
    for slot in range(lattice.first[operator], lattice.first[operator + 1]):
        remove(absent, lattice.tensor[slot])
    for index in range(depth):
        tensor = choice[2, chosen[index]]
        add(absent, tensor)
        if lattice.cheap[tensor] == 0:
            add(written, tensor)
    for word in range(len(live)):
        absent[word] &= live[word]
        written[word] &= live[word]
    fact = space.state[count]
    fact[NODE], fact[PAID], fact[PARENT], fact[OPERATOR] = child, paid, item, operator


@compiled
def _held(item: int, space: Space, lattice: Lattice) -> int:
    """Give the units of the tensors that lie in the scratchpad."""
    node = space.state[item, NODE]
    total = 0
    for word in range(space.live.shape[1]):
        total += units_of(space.live[node, word] & ~space.absent[item, word], word * BITS, lattice.size)
    return total


@compiled
def search(space: Space, capacity: int, upper: int, effort: int, lattice: Lattice) -> tuple[int, int]:
    """Search for the plan with the fewest avoidable units, if they are fewer than ``upper``.

    Parameters
    ----------
    space : Space
        With its first state, and with nodes made before if there are any.
    capacity, upper : int
        Units.
    effort : int
        Comparisons of states at most.
    lattice : Lattice

    Returns
    -------
    end : int
        `FOUND`, `EXHAUSTED` when there is none, `NO_ROOM` when the search had to stop.
    goal : int
        The last state of the plan, or -1.
    """
    operators, tensors = len(lattice.before), len(lattice.size)
    choice = np.zeros((3, tensors), dtype=np.int64)
    suffix = np.zeros(tensors + 1, dtype=np.int64)
    chosen = np.zeros(tensors, dtype=np.int64)
    for level in range(operators):
        node = space.level[level]
        while node >= 0:
            item = space.node[node, NEWEST]
            while item >= 0:
                if space.state[item, COUNTS] == 1:
                    held = _held(item, space, lattice)
                    first, last = 0, operators
                    for operator in range(operators):
                        if contains(space.ready[node], operator) and _is_free(
                            operator, item, held, capacity, space, lattice
                        ):
                            first, last = operator, operator + 1
                            break
                    for operator in range(first, last):
                        if not contains(space.ready[node], operator):
                            continue
                        child = follow(node, operator, space, lattice)
                        if child < 0 or not _take(
                            operator,
                            item,
                            child,
                            held - capacity,
                            upper,
                            choice,
                            suffix,
                            chosen,
                            space,
                            lattice,
                        ):
                            return NO_ROOM, -1
                        if space.tally[COMPARISONS] > effort:
                            return NO_ROOM, -1
                item = space.state[item, NEXT]
            node = space.node[node, ASIDE]
    best = -1
    if space.level[operators] >= 0:
        item = space.node[space.level[operators], NEWEST]
        while item >= 0:
            if space.state[item, COUNTS] == 1 and (
                best < 0 or space.state[item, PAID] < space.state[best, PAID]
            ):
                best = item
            item = space.state[item, NEXT]
    return (FOUND if best >= 0 else EXHAUSTED), best


@compiled
def _take(
    operator: int,
    item: int,
    child: int,
    over: int,
    upper: int,
    choice: Integers,
    suffix: Integers,
    chosen: Integers,
    space: Space,
    lattice: Lattice,
) -> bool:
    """Enter the states after an operator, ``over`` units above the capacity; False without room."""
    node = space.state[item, NODE]
    first, last = lattice.first[operator], lattice.first[operator + 1]
    need = over + lattice.whole[operator]
    for slot in range(first, last):
        tensor = lattice.tensor[slot]
        if contains(space.live[node], tensor) and not contains(space.absent[item], tensor):
            need -= lattice.size[tensor]
    if not _branch(-1, operator, item, child, need, upper, choice, suffix, chosen, space, lattice):
        return False
    if need > 0:
        for slot in range(first, last):
            if (
                lattice.alone[slot] == 1
                and lattice.saved[slot] > 0
                and not _branch(
                    slot, operator, item, child, need, upper, choice, suffix, chosen, space, lattice
                )
            ):
                return False
    return True


@compiled
def _branch(
    mode: int,
    operator: int,
    item: int,
    child: int,
    need: int,
    upper: int,
    choice: Integers,
    suffix: Integers,
    chosen: Integers,
    space: Space,
    lattice: Lattice,
) -> bool:
    """Enter a state for each choice that is just enough; False without room."""
    options, gained = _choices(mode, operator, item, space, lattice, choice)
    target = need - gained
    paid = space.state[item, PAID]
    suffix[options] = 0
    for index in range(options - 1, -1, -1):
        suffix[index] = suffix[index + 1] + choice[0, index]
    depth, room, index = 0, 0, 0
    while True:
        if room >= target:
            count = space.tally[STATES]
            if count == len(space.state):
                return False
            _put(count, item, child, operator, paid, chosen, depth, choice, space, lattice)
            if _enter(space, count, upper, lattice):
                space.tally[STATES] += 1
        elif index < options and room + suffix[index] >= target:
            if paid + choice[1, index] < upper:
                chosen[depth] = index
                depth += 1
                room += choice[0, index]
                paid += choice[1, index]
            index += 1
            continue
        if depth == 0:
            return True
        depth -= 1
        index = chosen[depth] + 1
        room -= choice[0, chosen[depth]]
        paid -= choice[1, chosen[depth]]
