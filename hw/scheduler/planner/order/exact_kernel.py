"""Search over what was executed and what lies where, compiled; see `hw.scheduler.planner.order.exact`.

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

from typing import NamedTuple

import numpy as np

from hw.scheduler.planner.order.exact_space import (
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
    follow,
)
from hw.scheduler.planner.order.lattice import (
    BITS,
    Integers,
    Lattice,
    add,
    compiled,
    contains,
    lowest,
    remove,
    units_of,
)
from hw.scheduler.planner.order.min_peak_kernel import outlives

#: What a search ends with.
EXHAUSTED, FOUND, NO_ROOM = range(3)


class Run(NamedTuple):
    """A search for plans of fewer than ``upper`` units.

    Members
    -------
    lattice : Lattice
    space : Space
        With its first state, and with nodes made before if there are any.
    capacity, upper : int
        Units.
    choice : shape (3, tensors)
        What could make room for an operator: units of room, units to pay, and the tensor.
    suffix, chosen : shape (tensors + 1,)
        Units of room of a choice and all after it; the choices made.
    """

    lattice: Lattice
    space: Space
    capacity: int
    upper: int
    choice: Integers
    suffix: Integers
    chosen: Integers

    @classmethod
    def of(cls, lattice: Lattice, space: Space, capacity: int, upper: int) -> Run:
        """Make room to work in."""
        tensors = len(lattice.size)
        choice, suffix, chosen = (
            np.zeros(shape, dtype=np.int64) for shape in ((3, tensors), tensors + 1, tensors + 1)
        )
        return cls(lattice, space, capacity, upper, choice, suffix, chosen)


class Move(NamedTuple):
    """An operator after a state, the node it leads to, and the units missing to execute it."""

    item: int
    operator: int
    child: int
    need: int


@compiled
def _turns(other: int, item: int, budget: int, run: Run) -> bool:
    """Tell whether one state becomes another by writes and reads of no more units than a budget."""
    space, size = run.space, run.lattice.size
    for word in range(space.absent.shape[1]):
        absent = space.absent[item, word] & ~space.absent[other, word]
        written = space.written[item, word] & ~space.written[other, word]
        while absent != 0:
            budget -= size[word * BITS + lowest(absent)]
            if budget < 0:
                return False
            absent &= absent - 1
        while written != 0:
            budget -= size[word * BITS + lowest(written)]
            if budget < 0:
                return False
            written &= written - 1
    return True


@compiled
def _enter(count: int, run: Run) -> bool:
    """Add state number ``count`` to its node unless it cannot matter; say whether it does.

    What it makes superfluous is marked so.
    """
    space, size = run.space, run.lattice.size
    fact = space.state[count]
    node = fact[NODE]
    absent, written = space.absent[count], space.written[count]
    credit = 0
    for word in range(len(absent)):
        credit += units_of(absent[word], word * BITS, size)
        credit += units_of(written[word], word * BITS, size)
    if fact[PAID] + max(0, space.ahead[node] - credit) >= run.upper:
        return False
    sunk = fact[PAID] - credit
    other = space.node[node, NEWEST]
    while other >= 0:
        rival = space.state[other]
        if rival[COUNTS] == 1:
            space.tally[COMPARISONS] += 1
            # Either can only make the other superfluous when it has paid and sunk less.
            saved = fact[PAID] - rival[PAID]
            if saved >= 0 and rival[SUNK] <= sunk and _turns(other, count, saved, run):
                return False
            if saved <= 0 and sunk <= rival[SUNK] and _turns(count, other, -saved, run):
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
def _is_free(operator: int, item: int, held: int, run: Run) -> bool:
    """Tell whether executing an operator at once loses nothing."""
    space, lattice = run.space, run.lattice
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
    if during > run.capacity:
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
def _choices(mode: int, item: int, operator: int, run: Run) -> tuple[int, int]:
    """List what could make room for an operator: other residents that leave, and operands that stream.

    Parameters
    ----------
    mode : int
        The operand that streams alone, or -1 when those do that need not.
    item, operator : int
    run : Run
        Whose ``choice`` is filled in.

    Returns
    -------
    count : int
    gained : int
        Units of room that cost nothing, or that the mode demands.
    """
    space, lattice, choice = run.space, run.lattice, run.choice
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
def _put(move: Move, paid: int, depth: int, run: Run) -> bool:
    """Enter the state after a move with what was chosen absent; False without room."""
    space, lattice = run.space, run.lattice
    count = space.tally[STATES]
    if count == len(space.state):
        return False
    absent, written, live = space.absent[count], space.written[count], space.live[move.child]
    absent[:] = space.absent[move.item]
    written[:] = space.written[move.item]
    for slot in range(lattice.first[move.operator], lattice.first[move.operator + 1]):
        remove(absent, lattice.tensor[slot])
    for index in range(depth):
        tensor = run.choice[2, run.chosen[index]]
        add(absent, tensor)
        if lattice.cheap[tensor] == 0:
            add(written, tensor)
    for word in range(len(live)):
        absent[word] &= live[word]
        written[word] &= live[word]
    fact = space.state[count]
    fact[NODE], fact[PAID], fact[PARENT], fact[OPERATOR] = move.child, paid, move.item, move.operator
    if _enter(count, run):
        space.tally[STATES] += 1
    return True


@compiled
def _branch(mode: int, move: Move, run: Run) -> bool:
    """Enter a state for each choice that is just enough; False without room."""
    choice, suffix, chosen = run.choice, run.suffix, run.chosen
    options, gained = _choices(mode, move.item, move.operator, run)
    target = move.need - gained
    paid = run.space.state[move.item, PAID]
    suffix[options] = 0
    for index in range(options - 1, -1, -1):
        suffix[index] = suffix[index + 1] + choice[0, index]
    depth, room, index = 0, 0, 0
    while True:
        if room >= target:
            if not _put(move, paid, depth, run):
                return False
        elif index < options and room + suffix[index] >= target:
            if paid + choice[1, index] < run.upper:
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
def _take(item: int, operator: int, held: int, run: Run) -> bool:
    """Enter the states after an operator, beside ``held`` units in the scratchpad; False without room."""
    space, lattice = run.space, run.lattice
    node = space.state[item, NODE]
    child = follow(node, operator, space, lattice)
    if child < 0:
        return False
    first, last = lattice.first[operator], lattice.first[operator + 1]
    need = held - run.capacity + lattice.whole[operator]
    for slot in range(first, last):
        tensor = lattice.tensor[slot]
        if contains(space.live[node], tensor) and not contains(space.absent[item], tensor):
            need -= lattice.size[tensor]
    move = Move(item, operator, child, need)
    if not _branch(-1, move, run):
        return False
    for slot in range(first, last):
        alone = lattice.alone[slot] == 1 and lattice.saved[slot] > 0
        if need > 0 and alone and not _branch(slot, move, run):
            return False
    return True


@compiled
def _expand(item: int, run: Run) -> bool:
    """Enter all states after one, or those after one operator that loses nothing; False without room."""
    space, lattice = run.space, run.lattice
    node, held, operators = space.state[item, NODE], 0, len(lattice.before)
    for word in range(space.live.shape[1]):
        held += units_of(space.live[node, word] & ~space.absent[item, word], word * BITS, lattice.size)
    for operator in range(operators):
        if contains(space.ready[node], operator) and _is_free(operator, item, held, run):
            return _take(item, operator, held, run)
    for operator in range(operators):
        if contains(space.ready[node], operator) and not _take(item, operator, held, run):
            return False
    return True


@compiled
def search(run: Run, effort: int) -> tuple[int, int]:
    """Search for the plan with the fewest avoidable units, if they are fewer than the run's limit.

    Parameters
    ----------
    run : Run
    effort : int
        Comparisons of states at most.

    Returns
    -------
    end : int
        `FOUND`, `EXHAUSTED` when there is none, `NO_ROOM` when the search had to stop.
    goal : int
        The last state of the plan, or -1.
    """
    space = run.space
    for level in range(len(space.level) - 1):
        node = space.level[level]
        while node >= 0:
            item = space.node[node, NEWEST]
            while item >= 0:
                if space.state[item, COUNTS] == 1 and not _expand(item, run):
                    return NO_ROOM, -1
                if space.tally[COMPARISONS] > effort:
                    return NO_ROOM, -1
                item = space.state[item, NEXT]
            node = space.node[node, ASIDE]
    best = -1
    if space.level[-1] >= 0:
        item = space.node[space.level[-1], NEWEST]
        while item >= 0:
            counts = space.state[item, COUNTS] == 1
            if counts and (best < 0 or space.state[item, PAID] < space.state[best, PAID]):
                best = item
            item = space.state[item, NEXT]
    return (FOUND if best >= 0 else EXHAUSTED), best
