"""Search over what was executed and what lies where, compiled; see `hw.scheduler.exact`.

A **node** is a down-set: what was executed.  A **state** is a node with the live tensors that are absent from
the scratchpad and those that were written to memory, and the units paid so far.  A tensor is paid for when it
leaves: its write, if it was never written, and its next read.  Levels of nodes with equally many operators
executed are worked off one after the other.

Rules that lose no optimum:

* Tensors leave only when an operator needs the room, and no more than needed.
* An operator is executed at once when its inputs lie there, it fits, and what it leaves alive is neither
  larger nor dearer to write and read than one input that ends with it: in any plan that executes it later,
  its results can take that input's place.
* Of two states of one node one goes, when turning the other into it costs no more than the difference: ``A``
  becomes ``B`` by the writes of what only ``B`` has written and the next reads of what only ``B`` lacks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hw.scheduler.lattice import BITS, Integers, Lattice, compiled, contains, covers, lowest, mixed, units_of
from hw.scheduler.min_peak_kernel import execute, outlives, weigh

#: Columns of a node: operators executed, its newest state or -1, the node before on its level or -1.
LEVEL, NEWEST, ASIDE = range(3)

#: Columns of a state: node, units paid, state before, operator taken, next state of the node, 1 while it
#: counts, units paid less those that what is absent and written would cost.
NODE, PAID, PARENT, OPERATOR, NEXT, COUNTS, SUNK = range(7)

#: Places of a tally.
NODES, STATES, COMPARISONS = range(3)

#: What a search ends with.
EXHAUSTED, FOUND, NO_ROOM = range(3)


class Space(NamedTuple):
    """Nodes and states of a search.

    Members
    -------
    done, ready : shape (nodes, words of a set of operators)
    live : shape (nodes, words of a set of tensors)
    node : shape (nodes, 3)
    ahead : shape (nodes,)
        Units that are still to be paid at the least from here on, with everything resident and unwritten.
    table : shape (a power of two,)
        Hash table of the nodes.
    absent, written : shape (states, words of a set of tensors)
        ``written`` of activations only.
    state : shape (states, 7)
    level : shape (operators + 1,)
        The newest node of each level, or -1.
    tally : shape (3,)
        Nodes, states, and comparisons of states.
    """

    done: Integers
    ready: Integers
    live: Integers
    node: Integers
    ahead: Integers
    table: Integers
    absent: Integers
    written: Integers
    state: Integers
    level: Integers
    tally: Integers


@compiled
def _add(row: Integers, member: int) -> None:
    row[member // BITS] |= 1 << member % BITS


@compiled
def _remove(row: Integers, member: int) -> None:
    row[member // BITS] &= ~(1 << member % BITS)


@compiled
def begin(space: Space, lattice: Lattice) -> None:
    """Put down the node and the state before the first operator."""
    for operator in range(len(lattice.before)):
        if covers(space.done[0], lattice.before[operator]):
            _add(space.ready[0], operator)
    space.node[0, LEVEL], space.node[0, NEWEST], space.node[0, ASIDE] = 0, 0, -1
    space.table[mixed(space.done[0]) & (len(space.table) - 1)] = 0
    space.state[0, COUNTS], space.state[0, NEXT], space.state[0, PARENT] = 1, -1, -1
    space.level[:] = -1
    space.level[0] = 0
    space.tally[:] = 0
    space.tally[NODES], space.tally[STATES] = 1, 1


@compiled
def follow(parent: int, operator: int, space: Space, lattice: Lattice) -> int:
    """Find or make the node after an operator; -1 when there is no room for it."""
    count = space.tally[NODES]
    if count == len(space.node):
        return -1
    done, ready, live = space.done[count], space.ready[count], space.live[count]
    done[:] = space.done[parent]
    ready[:] = space.ready[parent]
    execute(operator, done, ready, lattice)
    place = mixed(done) & (len(space.table) - 1)
    while space.table[place] >= 0:
        other = space.table[place]
        different = 0
        for word in range(len(done)):
            different |= space.done[other, word] ^ done[word]
        if different == 0:
            return other
        place = (place + 1) & (len(space.table) - 1)
    space.table[place] = count
    live[:] = space.live[parent]
    for slot in range(lattice.first[operator], lattice.first[operator + 1]):
        tensor = lattice.tensor[slot]
        if covers(done, lattice.users[tensor]):
            _remove(live, tensor)
        else:
            _add(live, tensor)
    level = space.node[parent, LEVEL] + 1
    space.node[count, LEVEL] = level
    space.node[count, NEWEST] = -1
    space.node[count, ASIDE] = space.level[level]
    space.level[level] = count
    space.ahead[count] = 0
    space.tally[NODES] += 1
    return count


@compiled
def survey(space: Space, lattice: Lattice) -> bool:
    """Make all nodes there are; say whether there was room."""
    node = 0
    while node < space.tally[NODES]:
        for operator in range(len(lattice.before)):
            if contains(space.ready[node], operator) and follow(node, operator, space, lattice) < 0:
                return False
        node += 1
    return True


@compiled
def look_ahead(space: Space, capacity: int, lattice: Lattice, weighed: Lattice) -> None:
    """Raise ``ahead`` of all nodes to what the heaviest moment from there on costs, on the lightest way.

    Parameters
    ----------
    space : Space
        With all nodes there are.
    capacity : int
        Weight that lies in the scratchpad without being paid for.
    lattice, weighed : Lattice
        The problem, and the same with weights in place of units.
    """
    count = space.tally[NODES]
    operators = len(lattice.before)
    least = np.zeros(count, dtype=np.int64)
    for node in range(count - 1, -1, -1):
        if space.node[node, LEVEL] == operators:
            continue
        live = 0
        for word in range(space.live.shape[1]):
            live += units_of(space.live[node, word], word * BITS, weighed.size)
        least[node] = -1
        for operator in range(operators):
            if contains(space.ready[node], operator):
                during, _ = weigh(operator, space.done[node], live, weighed)
                reached = max(during, least[follow(node, operator, space, lattice)])
                if least[node] < 0 or reached < least[node]:
                    least[node] = reached
        space.ahead[node] = max(space.ahead[node], least[node] - capacity)


@compiled
def _missing(item: int, other: int, space: Space, lattice: Lattice) -> int:
    """Give the units of what one state has absent and written, and another has not."""
    total = 0
    for word in range(space.absent.shape[1]):
        total += units_of(space.absent[item, word] & ~space.absent[other, word], word * BITS, lattice.size)
        total += units_of(space.written[item, word] & ~space.written[other, word], word * BITS, lattice.size)
    return total


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
            # Either can only make the other superfluous when it has sunk less.
            if rival[SUNK] <= sunk and rival[PAID] + _missing(count, other, space, lattice) <= fact[PAID]:
                return False
            if sunk <= rival[SUNK] and fact[PAID] + _missing(other, count, space, lattice) <= rival[PAID]:
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
    choice : shape (4, tensors)
        Units of room, units to pay, tensor, and whether it needs to be read again: filled in.

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
        _remove(absent, lattice.tensor[slot])
    for index in range(depth):
        tensor = choice[2, chosen[index]]
        _add(absent, tensor)
        if lattice.cheap[tensor] == 0:
            _add(written, tensor)
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
def search(
    space: Space, capacity: int, upper: int, width: int, effort: int, lattice: Lattice
) -> tuple[int, int]:
    """Search for the plan with the fewest avoidable units, if they are fewer than ``upper``.

    Parameters
    ----------
    space : Space
        With its first state, and with nodes made before if there are any.
    capacity, upper : int
        Units.
    width : int
        States of a level that go on; 0 for all of them.
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
        if width > 0:
            _thin(space.level[level], width, space, lattice)
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


@compiled
def _thin(node: int, width: int, space: Space, lattice: Lattice) -> None:
    """Leave the best states of a level only."""
    count = 0
    first = node
    while node >= 0:
        item = space.node[node, NEWEST]
        while item >= 0:
            count += space.state[item, COUNTS]
            item = space.state[item, NEXT]
        node = space.node[node, ASIDE]
    if count <= width:
        return
    members = np.empty(count, dtype=np.int64)
    rank = np.empty(count, dtype=np.int64)
    count = 0
    node = first
    while node >= 0:
        item = space.node[node, NEWEST]
        while item >= 0:
            if space.state[item, COUNTS] == 1:
                credit = 0
                for word in range(space.absent.shape[1]):
                    credit += units_of(space.absent[item, word], word * BITS, lattice.size)
                    credit += units_of(space.written[item, word], word * BITS, lattice.size)
                members[count] = item
                rank[count] = 2 * space.state[item, PAID] - credit
                count += 1
            item = space.state[item, NEXT]
        node = space.node[node, ASIDE]
    for place in np.argsort(rank, kind="mergesort")[width:]:
        space.state[members[place], COUNTS] = 0


@compiled
def order_to(goal: int, space: Space, lattice: Lattice) -> Integers:
    """Give the order that led to the last state."""
    order = np.empty(len(lattice.before), dtype=np.int64)
    item = goal
    while space.state[item, PARENT] >= 0:
        order[space.node[space.state[item, NODE], LEVEL] - 1] = space.state[item, OPERATOR]
        item = space.state[item, PARENT]
    return order
