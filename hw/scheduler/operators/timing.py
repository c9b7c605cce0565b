"""Cycle model of an operator, without data: it mirrors the RTL of the traffic engine (`traffic`).

Another operator needs the same four functions: `begin`, `work`, `has_written` and `computes_until`.  Its
state is a row of `STATE` integers.
"""

from hw.scheduler.compiled import compiled
from hw.scheduler.program.latency import (
    COMMAND_CYCLES,
    GATE_CYCLES,
    GATE_WORDS,
    READ_LATENCY,
    READS_AHEAD,
)
from hw.scheduler.program.timing.state import IN, MEMORY, NEXT, OUT, WHOLE, Integers

# Columns of the state.  An output word passes the operator's register (_FILLED), the gate's skid buffer
# (_BUFFERED) and the register that requests the bank (_HELD).
_BEGIN, _ASKED, _FETCHED, _ARRIVED, _WAITING, _GIVEN, _LEAD, _FILLED, _BUFFERED, _HELD, _ALLOWED = range(11)
_SOURCE, _SOURCE_LEFT, _TARGET, _TARGET_LEFT, _HISTORY = range(11, 16)
STATE = _HISTORY + READ_LATENCY


@compiled
def begin(cycle: int, word: Integers, state: Integers, operands: Integers) -> None:
    """Start an operator in this cycle; its command is a row of `ProgramArrays.cores`."""
    state[:] = 0
    state[_BEGIN] = cycle
    state[_LEAD] = -word[0]
    state[_SOURCE] = word[3]
    state[_TARGET] = word[4]
    if word[3] < word[4]:
        state[_SOURCE_LEFT] = operands[word[3], 0]
    state[_TARGET_LEFT] = operands[word[4], 0]


@compiled
def has_written(word: Integers, state: Integers) -> bool:
    """Return whether the last word is in the scratchpad."""
    return state[_GIVEN] == word[1] and not (state[_FILLED] or state[_BUFFERED] or state[_HELD])


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
    """Advance an operator by a cycle; return whether it is done, moved a word, and waits for a transfer.

    This is the hottest function, so it takes rows: passing `ProgramArrays` and `HardwareState` costs time.
    """
    total_in, total_out, least = word[0], word[1], word[2]
    if has_written(word, state):
        return cycle >= state[_BEGIN] + least, False, False
    if cycle < state[_BEGIN] + COMMAND_CYCLES:
        return False, False, False
    # Words on their way to the scratchpad.  Room in a ring was compared in the previous cycle.
    fires = state[_HELD] == 1 and state[_ALLOWED] == 1
    via = operands[state[_TARGET], 1]
    waits = state[_HELD] == 1 and not fires and via == MEMORY
    if fires and via != WHOLE:
        kind = OUT if via == MEMORY else NEXT
        changes[kind, core, 0] += 1
        changes[kind, core, 1] += 1
    passes = state[_FILLED] == 1 and state[_BUFFERED] < GATE_WORDS
    free = passes or not state[_FILLED]
    if fires or not state[_HELD]:
        state[_HELD] = state[_BUFFERED] > 0
        if state[_HELD]:
            state[_BUFFERED] -= 1
            while state[_TARGET_LEFT] == 0:
                state[_TARGET] += 1
                state[_TARGET_LEFT] = operands[state[_TARGET], 0]
            state[_TARGET_LEFT] -= 1
    state[_BUFFERED] += passes
    via = operands[state[_TARGET], 1]
    kind = OUT if via == MEMORY else NEXT
    state[_ALLOWED] = via == WHOLE or rings[kind, core, 0] + fires < operands[state[_TARGET], 2]
    # Digest and result.
    owed = state[_LEAD] >= 0
    give = owed and state[_GIVEN] < total_out and free
    take = state[_WAITING] == 1 and (not owed or (give and state[_LEAD] < total_in))
    state[_ARRIVED] += state[_HISTORY + cycle % READ_LATENCY]
    fetch = state[_ARRIVED] > state[_FETCHED] and (state[_WAITING] == 0 or take)
    # The next read.
    ask = False
    begun = cycle >= state[_BEGIN] + COMMAND_CYCLES + GATE_CYCLES
    if begun and state[_ASKED] < total_in and state[_ASKED] - state[_FETCHED] < READS_AHEAD:
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
    state[_LEAD] += take * total_out - give * total_in
    state[_GIVEN] += give
    if free:
        state[_FILLED] = give
    return False, ask or fires or take or give, waits


@compiled
def computes_until(word: Integers, state: Integers) -> int:
    """Return the cycle up to which arithmetic keeps the operator from being done."""
    return state[_BEGIN] + word[2]
