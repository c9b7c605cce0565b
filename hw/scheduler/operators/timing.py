"""How long an operator takes, cycle by cycle, without its data: the traffic engine's gates (`traffic`).

A real operator joins with the same four functions: `begin`, `work`, `has_given` and `computes_until`; its
state is a row of `STATE` integers.
"""

from __future__ import annotations

from hw.scheduler.program.latency import COMMAND_CYCLES, READ_LATENCY, READS_AHEAD
from hw.scheduler.program.timing.state import IN, MEMORY, NEXT, OUT, WHOLE, Integers, compiled

# Columns of the state.
_BEGIN, _ASKED, _FETCHED, _ARRIVED, _WAITING, _TAKEN, _GIVEN, _LEAD, _FILLED = range(9)
_SOURCE, _SOURCE_LEFT, _TARGET, _TARGET_LEFT, _PATH, _RING, _HISTORY = range(9, 16)
STATE = _HISTORY + READ_LATENCY


@compiled
def begin(cycle: int, word: Integers, state: Integers, operands: Integers) -> None:
    """Give an operator its command, a row of `Tables.cores`, in this cycle."""
    state[:] = 0
    state[_BEGIN] = cycle
    state[_LEAD] = -word[0]
    state[_SOURCE] = word[3]
    state[_TARGET] = word[5]
    if word[4]:
        state[_SOURCE_LEFT] = operands[word[3], 0]
    state[_TARGET_LEFT] = operands[word[5], 0]


@compiled
def work(
    core: int,
    cycle: int,
    word: Integers,
    state: Integers,
    operands: Integers,
    rings: Integers,
    changes: Integers,
) -> tuple[bool, bool, bool]:
    """Advance an operator by a cycle; tell whether it is done, has moved, and waits for a transfer.

    It is called the most, so it is given rows and not `Tables` and `Parts`, which take long to pass on.
    """
    total_in, total_out, least = word[0], word[1], word[2]
    if state[_GIVEN] == total_out and not state[_FILLED] and cycle > state[_BEGIN]:
        return cycle >= state[_BEGIN] + least, False, False
    if cycle < state[_BEGIN] + COMMAND_CYCLES:
        return False, False, False
    waits = False
    # The word on its way to the scratchpad.
    fires = False
    if state[_FILLED]:
        kind = OUT if state[_PATH] == MEMORY else NEXT
        fires = state[_PATH] == WHOLE or rings[kind, core, 0] < state[_RING]
        if fires and state[_PATH] != WHOLE:
            changes[kind, core, 0] += 1
            changes[kind, core, 1] += 1
        waits = not fires and state[_PATH] == MEMORY
    free = fires or not state[_FILLED]
    # Digest and result.
    owed = state[_LEAD] >= 0
    give = owed and state[_GIVEN] < total_out and free
    take = state[_WAITING] == 1 and (not owed or (give and state[_LEAD] < total_in))
    state[_ARRIVED] += state[_HISTORY + cycle % READ_LATENCY]
    fetch = state[_ARRIVED] > state[_FETCHED] and (state[_WAITING] == 0 or take)
    # The next read.
    ask = False
    if state[_ASKED] < total_in and state[_ASKED] - state[_FETCHED] < READS_AHEAD:
        while state[_SOURCE_LEFT] == 0:
            state[_SOURCE] += 1
            state[_SOURCE_LEFT] = operands[state[_SOURCE], 0]
        via = operands[state[_SOURCE], 1]
        if via == WHOLE:
            ask = True
        else:
            kind, owner = (IN, core) if via == MEMORY else (NEXT, core - 1)
            ask = rings[kind, owner, 1] > 0
            if ask:
                changes[kind, owner, 0] -= 1
                changes[kind, owner, 1] -= 1
            waits = waits or (not ask and via == MEMORY)
    state[_HISTORY + cycle % READ_LATENCY] = ask
    if ask:
        state[_ASKED] += 1
        state[_SOURCE_LEFT] -= 1
    if fetch:
        state[_FETCHED] += 1
    state[_WAITING] = fetch or (state[_WAITING] == 1 and not take)
    if take:
        state[_TAKEN] += 1
        state[_LEAD] += total_out
    if free:
        state[_FILLED] = give
    if give:
        while state[_TARGET_LEFT] == 0:
            state[_TARGET] += 1
            state[_TARGET_LEFT] = operands[state[_TARGET], 0]
        state[_PATH] = operands[state[_TARGET], 1]
        state[_RING] = operands[state[_TARGET], 2]
        state[_GIVEN] += 1
        state[_TARGET_LEFT] -= 1
        state[_LEAD] -= total_in
    return False, ask or fires or take or give, waits


@compiled
def has_given(word: Integers, state: Integers) -> bool:
    """Tell whether the last word is on its way to the scratchpad."""
    return state[_GIVEN] == word[1]


@compiled
def computes_until(word: Integers, state: Integers) -> int:
    """Give the cycle up to which arithmetic keeps the operator from being done."""
    return state[_BEGIN] + word[2]
