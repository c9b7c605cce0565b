"""States of the exact search: what was executed and what lies where; see `kernel` beside it.

A **node** is a down-set: what was executed.  A **state** is a node with the live tensors that are absent from
the scratchpad and those that were written to memory, and the units paid so far.  A tensor is paid for when it
leaves: its write, if it was never written, and its next read.
"""

from __future__ import annotations

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
    lowest,
    remove,
    slot_of,
)
from hw.scheduler.planner.order.min_peak_kernel import execute, outlives

#: Columns of a node: operators executed, its newest state or -1, the node before on its level or -1.
LEVEL, NEWEST, ASIDE = range(3)

#: Columns of a state: node, units paid, state before, operator taken, next state of the node, 1 while it
#: counts, units paid less those that what is absent and written would cost.
NODE, PAID, PARENT, OPERATOR, NEXT, COUNTS, SUNK = range(7)

#: Places of a tally.
NODES, STATES, COMPARISONS = range(3)


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

    @classmethod
    def of(cls, lattice: Lattice, *, states: int, nodes: int) -> Space:
        """Make room; memory is touched as it fills up, but for the hash table."""
        set_of_operators, set_of_tensors = lattice.before.shape[1], -(-len(lattice.size) // BITS)

        def rows(count: int, width: int) -> Integers:
            return np.zeros((count + 1, width), dtype=np.int64)

        return cls(
            done=rows(nodes, set_of_operators),
            ready=rows(nodes, set_of_operators),
            live=rows(nodes, set_of_tensors),
            node=rows(nodes, 3),
            ahead=np.zeros(nodes + 1, dtype=np.int64),
            table=np.full(1 << (2 * nodes + 1).bit_length(), -1, dtype=np.int64),
            absent=rows(states, set_of_tensors),
            written=rows(states, set_of_tensors),
            state=rows(states, 7),
            level=np.empty(len(lattice.before) + 1, dtype=np.int64),
            tally=np.empty(3, dtype=np.int64),
        )


@compiled
def begin(space: Space, lattice: Lattice) -> None:
    """Put down the node and the state before the first operator."""
    for operator in range(len(lattice.before)):
        if covers(space.done[0], lattice.before[operator]):
            add(space.ready[0], operator)
    space.node[0, LEVEL], space.node[0, NEWEST], space.node[0, ASIDE] = 0, 0, -1
    space.table[slot_of(space.done[0], space.done, space.table)] = 0
    space.state[0, COUNTS], space.state[0, NEXT], space.state[0, PARENT] = 1, -1, -1
    space.level[:] = -1
    space.level[0] = 0
    space.tally[:] = 0
    space.tally[NODES], space.tally[STATES] = 1, 1


@compiled
def restart(space: Space) -> None:
    """Forget all states but the first; nodes stay."""
    space.node[: space.tally[NODES], NEWEST] = -1
    space.node[0, NEWEST] = 0
    space.state[0, NEXT], space.state[0, COUNTS] = -1, 1
    space.tally[STATES], space.tally[COMPARISONS] = 1, 0


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
    place = slot_of(done, space.done, space.table)
    if space.table[place] >= 0:
        return space.table[place]
    space.table[place] = count
    live[:] = space.live[parent]
    for slot in range(lattice.first[operator], lattice.first[operator + 1]):
        tensor = lattice.tensor[slot]
        if covers(done, lattice.users[tensor]):
            remove(live, tensor)
        else:
            add(live, tensor)
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
def moment(operator: int, done: Integers, live: Integers, price: int, lattice: Lattice) -> int:
    """Give what is there while an operator runs after ``done``, by weight.

    What lies in the scratchpad weighs ``price`` a unit, what is absent its units and, unless it is cheap,
    those of its write.  So with a price of 1 or 2, and nothing written or absent before, the weight above
    ``price`` times the capacity is paid at least, whatever is absent and whatever is streamed.

    Parameters
    ----------
    operator : int
    done : shape (words of a set of operators,)
    live : shape (words of a set of tensors,)
        What is alive after ``done``.
    price : int
        1 or 2.
    lattice : Lattice
    """
    total = 0
    for word in range(len(live)):
        total += weight_of(live[word], word * BITS, price, lattice)
    together, alone = 0, 0
    for slot in range(lattice.first[operator], lattice.first[operator + 1]):
        tensor = lattice.tensor[slot]
        size = lattice.size[tensor]
        leaving = size if lattice.cheap[tensor] == 1 else 2 * size
        beside = contains(live, tensor)
        if beside:
            total -= min(price * size, leaving)
        # A tensor that was there or is needed again is paid for when it is streamed.
        pay = leaving if beside or outlives(tensor, operator, done, lattice) else 0
        gain = price * lattice.saved[slot] - pay
        if gain > 0 and lattice.alone[slot] == 1:
            alone = max(alone, gain)
        elif gain > 0:
            together += gain
    return total + price * lattice.whole[operator] - max(together, alone)


@compiled
def weight_of(word: int, offset: int, price: int, lattice: Lattice) -> int:
    """Give the weight of the tensors in one word of a set, see `moment`."""
    total = 0
    while word != 0:
        tensor = offset + lowest(word)
        word &= word - 1
        total += lattice.size[tensor] if lattice.cheap[tensor] == 1 else price * lattice.size[tensor]
    return total


@compiled
def look_ahead(space: Space, capacity: int, price: int, lattice: Lattice) -> None:
    """Raise ``ahead`` of all nodes to what the heaviest moment from there on costs, on the lightest way.

    Parameters
    ----------
    space : Space
        With all nodes there are.
    capacity : int
        Units of the scratchpad.
    price : int
        See `moment`.
    lattice : Lattice
    """
    operators = len(lattice.before)
    least = np.zeros(space.tally[NODES], dtype=np.int64)
    for node in range(space.tally[NODES] - 1, -1, -1):
        if space.node[node, LEVEL] == operators:
            continue
        least[node] = -1
        for operator in range(operators):
            if contains(space.ready[node], operator):
                here = moment(operator, space.done[node], space.live[node], price, lattice)
                reached = max(here, least[follow(node, operator, space, lattice)])
                if least[node] < 0 or reached < least[node]:
                    least[node] = reached
        space.ahead[node] = max(space.ahead[node], least[node] - price * capacity)


@compiled
def order_to(goal: int, space: Space, lattice: Lattice) -> Integers:
    """Give the order that led to the last state."""
    order = np.empty(len(lattice.before), dtype=np.int64)
    item = goal
    while space.state[item, PARENT] >= 0:
        order[space.node[space.state[item, NODE], LEVEL] - 1] = space.state[item, OPERATOR]
        item = space.state[item, PARENT]
    return order
