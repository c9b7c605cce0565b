"""Search over what was executed and what lies where, compiled; see `hw.scheduler.planner.order.exact`.

A **state** is a down-set with its debts and the units paid so far.  A debt is a live tensor that is absent
from the scratchpad, or one that was written to memory.  A tensor is paid for when it leaves: its write, if it
was never written, and its next read.

Rules that lose no optimum:

* Tensors leave only when an operator needs the room, and no more than needed.
* Of two states of one down-set one goes, when turning the other into it costs no more than the difference:
  ``A`` becomes ``B`` by the writes and the next reads of the debts that only ``B`` has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hw.scheduler.compiled import compiled
from hw.scheduler.planner.order.downsets import DownSets, follow, outlives
from hw.scheduler.planner.order.lattice import (
    BITS,
    Integers,
    Lattice,
    add,
    contains,
    copy_into,
    lowest,
    remove,
    set_all,
    units_of,
)

#: Columns of a state: down-set, units paid, state before, operator taken, next state of the down-set, 1 while
#: it counts, units paid less its debts.
NUMBER, PAID, PARENT, OPERATOR, NEXT, COUNTS, SUNK = range(7)

#: Places of a tally.
STATES, COMPARISONS = range(2)

#: What a search ends with.
EXHAUSTED, FOUND, NO_ROOM = range(3)


class Run(NamedTuple):
    """A search for plans of fewer than ``upper`` units."""

    lattice: Lattice
    sets: DownSets  #: All there are.
    #: ``capacity``, ``upper``: units.
    capacity: int
    upper: int
    #: Shape (down-sets,): units that are still to be paid at the least from each on, without debts.
    ahead: Integers
    newest: Integers  #: Shape (down-sets,): the newest state of each, or -1.
    #: Shape (states, twice the words of a set of tensors): absent tensors, then written activations.
    debts: Integers
    owed: Integers  #: Shape (members of two sets of tensors,): units of each debt.
    state: Integers  #: Shape (states, 7): see `NUMBER` and those after it.
    tally: Integers  #: Shape (2,)
    #: Shape (3, tensors): what could make room for an operator: units of room, units to pay, and the tensor.
    choice: Integers
    #: ``suffix``, ``chosen``: shape (tensors + 1,): units of room of a choice and all after it; the choices
    #: made.
    suffix: Integers
    chosen: Integers
    here: Integers  #: Shape (words of a set of tensors,): residents of the state at hand.

    @classmethod
    def of(cls, lattice: Lattice, sets: DownSets, capacity: int, states: int) -> Run:
        """Make room to work in; memory is touched as it fills up."""
        tensors, width = len(lattice.size), sets.live.shape[1]
        owed = np.zeros((2, width * BITS), dtype=np.int64)
        owed[:, :tensors] = lattice.size
        shapes = ((states + 1, 2 * width), (states + 1, 7), 2, (3, tensors), tensors + 1, tensors + 1, width)
        debts, state, tally, *scratch = (np.zeros(shape, dtype=np.int64) for shape in shapes)
        ahead, newest = np.zeros((2, sets.tally[0]), dtype=np.int64)
        return cls(lattice, sets, capacity, 0, ahead, newest, debts, owed.ravel(), state, tally, *scratch)


@compiled
def _turns(other: Integers, item: Integers, budget: int, owed: Integers) -> bool:
    """Tell whether debts become others by writes and reads of no more units than a budget."""
    for word in range(len(item)):
        left = item[word] & ~other[word]
        while left != 0:
            budget -= owed[word * BITS + lowest(left)]
            if budget < 0:
                return False
            left &= left - 1
    return True


@compiled
def _enter(item: int, run: Run) -> bool:
    """Add a state to its down-set unless it cannot matter; say whether it does.

    What it makes superfluous counts no more.
    """
    state, debts, owed = run.state, run.debts, run.owed
    fact = state[item]
    number = fact[NUMBER]
    paid, credit = fact[PAID], units_of(debts[item], owed)
    if paid + max(0, run.ahead[number] - credit) >= run.upper:
        return False
    sunk = paid - credit
    other = run.newest[number]
    while other >= 0:
        if state[other, COUNTS] == 1:
            run.tally[COMPARISONS] += 1
            # Either can only make the other superfluous when it has paid and sunk less.
            saved, lower = paid - state[other, PAID], sunk - state[other, SUNK]
            if saved >= 0 and lower >= 0 and _turns(debts[other], debts[item], saved, owed):
                return False
            if saved <= 0 and lower <= 0 and _turns(debts[item], debts[other], -saved, owed):
                state[other, COUNTS] = 0
        other = state[other, NEXT]
    fact[SUNK], fact[COUNTS], fact[NEXT] = sunk, 1, run.newest[number]
    run.newest[number] = item
    return True


@compiled
def _leaving(tensor: int, written: Integers, lattice: Lattice) -> int:
    """Return what a resident tensor's leaving costs: its write, if it has none yet, and its next read."""
    if lattice.cheap[tensor] == 1 or contains(written, tensor):
        return lattice.size[tensor]
    return 2 * lattice.size[tensor]


@compiled
def _choices(alone: int, item: int, operator: int, run: Run) -> tuple[int, int]:
    """List what could make room for an operator: other residents that leave, and operands that stream.

    ``alone``: the operand that streams alone, or -1 when those do that need not. ``run``: whose ``choice`` is
    filled in, the most room first: then a choice that is just enough has nothing to spare in it either.

    Returns
    -------
    count : int
    gained : int
        Units of room that cost nothing.
    """
    lattice, number = run.lattice, run.state[item, NUMBER]
    done, live, written = run.sets.done[number], run.sets.live[number], run.debts[item, len(run.here) :]
    count, gained = 0, 0
    _residents(item, run)
    for slot in range(lattice.first[operator], lattice.first[operator + 1]):
        tensor = lattice.tensor[slot]
        size = lattice.size[tensor]
        resident = contains(run.here, tensor)
        remove(run.here, tensor)
        streams = slot == alone if alone >= 0 else lattice.alone[slot] == 0
        if not streams or lattice.saved[slot] == 0:
            continue
        pay = _leaving(tensor, written, lattice) if resident else 0
        if outlives(tensor, operator, done, lattice):
            fresh = not contains(live, tensor)
            pay += 2 * size if fresh and lattice.cheap[tensor] == 0 else size
        if pay == 0:
            gained += lattice.saved[slot]
        else:
            _offer(lattice.saved[slot], pay, tensor, count, run)
            count += 1
    for word in range(len(run.here)):
        left = run.here[word]
        while left != 0:
            tensor = word * BITS + lowest(left)
            left &= left - 1
            _offer(lattice.size[tensor], _leaving(tensor, written, lattice), tensor, count, run)
            count += 1
    return count, gained


@compiled
def _offer(room: int, pay: int, tensor: int, count: int, run: Run) -> None:
    """Add a choice to those that there are, in its place."""
    choice, place = run.choice, count
    while place > 0 and (
        choice[0, place - 1] < room or (choice[0, place - 1] == room and choice[2, place - 1] > tensor)
    ):
        for fact in range(3):
            choice[fact, place] = choice[fact, place - 1]
        place -= 1
    choice[0, place], choice[1, place], choice[2, place] = room, pay, tensor


@compiled
def _residents(item: int, run: Run) -> None:
    """Fill ``here`` with what lies in the scratchpad in a state."""
    number = run.state[item, NUMBER]
    for word in range(len(run.here)):
        run.here[word] = run.sets.live[number, word] & ~run.debts[item, word]


@compiled
def _put(item: int, operator: int, reached: int, paid: int, depth: int, run: Run) -> bool:
    """Enter the state after an operator with what was chosen absent; False without room."""
    lattice, new, live = run.lattice, run.tally[STATES], run.sets.live[reached]
    if new == len(run.state):
        return False
    absent = run.debts[new]
    copy_into(absent, run.debts[item])
    written = absent[len(live) :]
    for tensor in lattice.tensor[lattice.first[operator] : lattice.first[operator + 1]]:
        remove(absent, tensor)
    for index in range(depth):
        tensor = run.choice[2, run.chosen[index]]
        add(absent, tensor)
        if lattice.cheap[tensor] == 0:
            add(written, tensor)
    for word in range(len(live)):
        absent[word] &= live[word]
        written[word] &= live[word]
    fact = run.state[new]
    fact[NUMBER], fact[PAID], fact[PARENT], fact[OPERATOR] = reached, paid, item, operator
    if _enter(new, run):
        run.tally[STATES] += 1
    return True


@compiled
def _branch(alone: int, item: int, operator: int, need: int, run: Run) -> bool:
    """Enter a state for each choice of what makes ``need`` units of room and no more; False without room.

    For ``alone`` see `_choices`.
    """
    reached = follow(run.state[item, NUMBER], operator, run.sets, run.lattice)
    choice, suffix, chosen = run.choice, run.suffix, run.chosen
    options, gained = _choices(alone, item, operator, run)
    missing, paid, depth, index = need - gained, run.state[item, PAID], 0, 0
    suffix[options] = 0
    for option in range(options - 1, -1, -1):
        suffix[option] = suffix[option + 1] + choice[0, option]
    while True:
        if missing <= 0:
            if not _put(item, operator, reached, paid, depth, run):
                return False
        elif index < options and missing <= suffix[index]:
            if paid + choice[1, index] < run.upper:
                chosen[depth] = index
                depth += 1
                missing -= choice[0, index]
                paid += choice[1, index]
            index += 1
            continue
        if depth == 0:
            return True
        depth -= 1
        index = chosen[depth] + 1
        missing += choice[0, chosen[depth]]
        paid -= choice[1, chosen[depth]]


@compiled
def _expand(item: int, run: Run) -> bool:
    """Enter all states after one; False without room."""
    lattice, ready = run.lattice, run.sets.ready[run.state[item, NUMBER]]
    for operator in range(len(lattice.before)):
        if not contains(ready, operator):
            continue
        _residents(item, run)
        need = units_of(run.here, lattice.size) + lattice.whole[operator] - run.capacity
        slots = range(lattice.first[operator], lattice.first[operator + 1])
        for slot in slots:
            if contains(run.here, lattice.tensor[slot]):
                need -= lattice.size[lattice.tensor[slot]]
        if not _branch(-1, item, operator, need, run):
            return False
        for slot in slots:
            alone = lattice.alone[slot] == 1 and lattice.saved[slot] > 0
            if need > 0 and alone and not _branch(slot, item, operator, need, run):
                return False
    return True


@compiled
def search(run: Run, effort: int, flag: Integers) -> tuple[int, Integers, int]:
    """Search for the plan with the fewest avoidable units, if they are fewer than the run's limit.

    ``effort``: comparisons of states at most. ``flag``: of shape (1,); see
    `hw.scheduler.planner.watch.Watch`.

    Returns
    -------
    end : int
        `FOUND`, `EXHAUSTED` when there is none, `NO_ROOM` when the search had to stop.
    order : shape (operators,)
        The plan's; empty without one.
    units : int
        What it pays.
    """
    nothing = np.empty(0, dtype=np.int64)
    set_all(run.newest, -1)
    run.newest[0] = 0
    run.state[0, COUNTS], run.state[0, NEXT], run.state[0, PARENT] = 1, -1, -1
    run.tally[STATES], run.tally[COMPARISONS] = 1, 0
    for number in range(len(run.newest) - 1):
        item = run.newest[number]
        while item >= 0:
            if run.state[item, COUNTS] == 1 and not _expand(item, run):
                return NO_ROOM, nothing, 0
            if run.tally[COMPARISONS] > effort or flag[0] != 0:
                return NO_ROOM, nothing, 0
            item = run.state[item, NEXT]
    item = run.newest[-1]
    while item >= 0 and run.state[item, COUNTS] == 0:
        item = run.state[item, NEXT]
    if item < 0:
        return EXHAUSTED, nothing, 0
    # Without debts all states are alike, so that the only one that still counts pays the least.
    units, order = run.state[item, PAID], np.empty(len(run.lattice.before), dtype=np.int64)
    for step in range(len(order) - 1, -1, -1):
        order[step] = run.state[item, OPERATOR]
        item = run.state[item, PARENT]
    return FOUND, order, units
