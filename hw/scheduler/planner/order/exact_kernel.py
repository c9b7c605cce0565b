"""Search over executed operators and resident tensors, compiled; see `hw.scheduler.planner.order.exact`.

A **state** is a down-set with its debts and the units paid so far.  A debt is a live tensor that is absent
from the scratchpad, or one that was written to memory.  A tensor is paid for when it is evicted: its write,
if it was never written, and its next read.

Rules that lose no optimum:

* Tensors are evicted only when an operator needs the room, and no more than needed.
* State ``B`` is dropped if ``A`` of the same down-set can become ``B`` for at most the difference in paid
  units: by the writes and the next reads of the debts that only ``B`` has.
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

#: Columns of a state: down-set, units paid, previous state, operator executed, next state of the down-set, 1
#: unless it was dropped, units paid less its debts.
NUMBER, PAID, PARENT, OPERATOR, NEXT, COUNTS, SUNK = range(7)

#: Indices of ``tally``.
STATES, COMPARISONS = range(2)

#: Outcomes: no plan is below the limit; one was found; the table was full, or effort or time ran out.
EXHAUSTED, FOUND, NO_ROOM = range(3)


class SearchState(NamedTuple):
    """The arrays of a search for plans of fewer than ``upper`` units."""

    lattice: Lattice
    sets: DownSets  #: All down-sets.
    #: ``capacity``, ``upper``: units.
    capacity: int
    upper: int
    #: Shape (down-sets,): a lower bound of the units that remain to be paid from each on, without debts.
    ahead: Integers
    newest: Integers  #: Shape (down-sets,): the newest state of each, or -1.
    #: Shape (states, twice the words of a set of tensors): absent tensors, then written activations.
    debts: Integers
    owed: Integers  #: Shape (members of two sets of tensors,): units of each debt.
    state: Integers  #: Shape (states, 7): see `NUMBER` and those after it.
    tally: Integers  #: Shape (2,)
    #: Shape (3, tensors): tensors that could make room for an operator: units of room, units to pay, tensor.
    choice: Integers
    #: ``suffix``, ``chosen``: shape (tensors + 1,): total room of a choice and all after it; the choices
    #: made.
    suffix: Integers
    chosen: Integers
    here: Integers  #: Shape (words of a set of tensors,): residents of the current state.

    @classmethod
    def of(cls, lattice: Lattice, sets: DownSets, capacity: int, states: int) -> SearchState:
        """Allocate the arrays; the system commits memory as they fill."""
        tensors, width = len(lattice.size), sets.live.shape[1]
        owed = np.zeros((2, width * BITS), dtype=np.int64)
        owed[:, :tensors] = lattice.size
        shapes = ((states + 1, 2 * width), (states + 1, 7), 2, (3, tensors), tensors + 1, tensors + 1, width)
        debts, state, tally, *scratch = (np.zeros(shape, dtype=np.int64) for shape in shapes)
        ahead, newest = np.zeros((2, sets.tally[0]), dtype=np.int64)
        return cls(lattice, sets, capacity, 0, ahead, newest, debts, owed.ravel(), state, tally, *scratch)


@compiled
def _turns(other: Integers, item: Integers, budget: int, owed: Integers) -> bool:
    """Whether the debts ``other`` can become the debts ``item`` by writes and reads within a budget."""
    for word in range(len(item)):
        left = item[word] & ~other[word]
        while left != 0:
            budget -= owed[word * BITS + lowest(left)]
            if budget < 0:
                return False
            left &= left - 1
    return True


@compiled
def _enter(item: int, run: SearchState) -> bool:
    """Add a state to its down-set unless another dominates it; return whether it was added.

    States that it dominates are dropped.
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
            # A state can only dominate one that has paid and sunk at least as much.
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
    """Return the cost of evicting a resident tensor: its write, if it has none yet, and its next read."""
    if lattice.cheap[tensor] == 1 or contains(written, tensor):
        return lattice.size[tensor]
    return 2 * lattice.size[tensor]


@compiled
def _choices(alone: int, item: int, operator: int, run: SearchState) -> tuple[int, int]:
    """List the ways to make room for an operator: evictions of other residents, and streamed operands.

    ``alone``: the operand that streams alone, or -1 if the operands stream that can do so together. ``run``:
    its ``choice`` is filled, sorted by falling room, so that the first sufficient choice is minimal.

    Returns the number of choices, and the units of room without a cost.
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
def _offer(room: int, pay: int, tensor: int, count: int, run: SearchState) -> None:
    """Insert a choice into the sorted list."""
    choice, place = run.choice, count
    while place > 0 and (
        choice[0, place - 1] < room or (choice[0, place - 1] == room and choice[2, place - 1] > tensor)
    ):
        for fact in range(3):
            choice[fact, place] = choice[fact, place - 1]
        place -= 1
    choice[0, place], choice[1, place], choice[2, place] = room, pay, tensor


@compiled
def _residents(item: int, run: SearchState) -> None:
    """Fill ``here`` with the residents of a state."""
    number = run.state[item, NUMBER]
    for word in range(len(run.here)):
        run.here[word] = run.sets.live[number, word] & ~run.debts[item, word]


@compiled
def _put(item: int, operator: int, reached: int, paid: int, depth: int, run: SearchState) -> bool:
    """Enter the state after an operator, without the chosen tensors; False when the table is full."""
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
def _branch(alone: int, item: int, operator: int, need: int, run: SearchState) -> bool:
    """Enter a state for each minimal choice of at least ``need`` units of room; False when the table is full.

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
def _expand(item: int, run: SearchState) -> bool:
    """Enter all successors of a state; False when the table is full."""
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
def search(run: SearchState, effort: int, flag: Integers) -> tuple[int, Integers, int]:
    """Search for the plan with the fewest avoidable units, if they are fewer than the run's limit.

    ``effort``: comparisons of states at most. ``flag``: of shape (1,); see
    `hw.scheduler.planner.watch.Watch`.

    Returns the outcome, the operators of the plan in order, and its avoidable units of `Lattice.unit` words.
    Without a plan the order is empty and the units are 0.
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
    # Without debts all states are alike, so the only one left pays the least.
    units, order = run.state[item, PAID], np.empty(len(run.lattice.before), dtype=np.int64)
    for step in range(len(order) - 1, -1, -1):
        order[step] = run.state[item, OPERATOR]
        item = run.state[item, PARENT]
    return FOUND, order, units
