"""The cores of a program, cycle by cycle, without their data; compiled, for `timeline_kernel`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
compiled: Any = numba.njit(cache=True)

#: What an operand goes through, as numbers.
WHOLE, MEMORY, FIFO = 0, 1, 2
#: Rings by their ends: memory to core, core to memory, core to the next core.
IN, OUT, NEXT = 0, 1, 2
#: From a core's command to its first read, and from a granted read to the word at its digest.
_COMMAND_CYCLES, _READ_CYCLES = 2, 4
#: Reads a port may have under way.
_READS_AHEAD = 8

# Columns of a core's state.
BEGIN, _ASKED, _FETCHED, _ARRIVED, _WAITING, _TAKEN, GIVEN, _LEAD, _FILLED = range(9)
_SOURCE, _SOURCE_LEFT, _TARGET, _TARGET_LEFT, _PATH, _RING, _HISTORY = range(9, 16)
CORE_STATE = _HISTORY + _READ_CYCLES


class Tables(NamedTuple):
    """A program in numbers.

    Members
    -------
    steps
        ``[steps, 3]``: reads and writes waited for, cores.
    cores
        ``[steps, cores, 7]``: words in, words out, least cycles, first input and inputs, first output and
        outputs.
    operands
        ``[operands, 3]``: words, way, ring.
    reads, writes
        ``[transfers, 5]``: words, start step, ring, core, first word in memory.
    """

    steps: Integers
    cores: Integers
    operands: Integers
    reads: Integers
    writes: Integers


class Parts(NamedTuple):
    """State: cores, rings and what changes in them this cycle, engines, queues by transfer and by word."""

    cores: Integers
    rings: Integers
    changes: Integers
    reader: Integers
    writer: Integers
    reading: Integers
    writing: Integers
    burst_words: Integers
    burst_cycle: Integers
    ready: Any
    sent: Integers
    released: Integers
    dram: Any


@compiled
def begin(core: int, step: int, cycle: int, tables: Tables, parts: Parts) -> None:
    """Give a core its command in this cycle."""
    state, word = parts.cores[core], tables.cores[step, core]
    state[:] = 0
    state[BEGIN] = cycle
    state[_LEAD] = -word[0]
    state[_SOURCE] = word[3]
    state[_TARGET] = word[5]
    if word[4]:
        state[_SOURCE_LEFT] = tables.operands[word[3], 0]
    state[_TARGET_LEFT] = tables.operands[word[5], 0]


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
    """Advance a core by a cycle; tell whether it is done, has moved, and waits for a ring of the memory's.

    It is called the most, so it is given rows and not `Tables` and `Parts`, which take long to pass on.
    """
    total_in, total_out, least = word[0], word[1], word[2]
    if state[GIVEN] == total_out and not state[_FILLED] and cycle > state[BEGIN]:
        return cycle >= state[BEGIN] + least, False, False
    if cycle < state[BEGIN] + _COMMAND_CYCLES:
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
    give = owed and state[GIVEN] < total_out and free
    take = state[_WAITING] == 1 and (not owed or (give and state[_LEAD] < total_in))
    state[_ARRIVED] += state[_HISTORY + cycle % _READ_CYCLES]
    fetch = state[_ARRIVED] > state[_FETCHED] and (state[_WAITING] == 0 or take)
    # The next read.
    ask = False
    if state[_ASKED] < total_in and state[_ASKED] - state[_FETCHED] < _READS_AHEAD:
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
    state[_HISTORY + cycle % _READ_CYCLES] = ask
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
        state[GIVEN] += 1
        state[_TARGET_LEFT] -= 1
        state[_LEAD] -= total_in
    return False, ask or fires or take or give, waits


@compiled
def is_apart(step: int, tables: Tables) -> bool:
    """Tell whether a step's cores stream nothing: while no transfer is under way none can begin then, and the
    cores can be followed without the other units.
    """
    for core in range(tables.steps[step, 2]):
        word = tables.cores[step, core]
        for first, count in ((word[3], word[4]), (word[5], word[6])):
            for operand in range(first, first + count):
                if tables.operands[operand, 1] == MEMORY:
                    return False
    return True


@compiled
def compute(step: int, cycle: int, tables: Tables, parts: Parts) -> int:
    """Follow the cores alone until all have given their last word; give the cycle in which that happened."""
    count, words = tables.steps[step, 2], tables.cores[step]
    while True:
        given = True
        for core in range(count):
            given = given and parts.cores[core, GIVEN] == words[core, 1]
        if given:
            return cycle
        for core in range(count - 1):
            for column in range(2):
                parts.rings[NEXT, core, column] += parts.changes[NEXT, core, column]
                parts.changes[NEXT, core, column] = 0
        cycle += 1
        for core in range(count):
            work(core, cycle, words[core], parts.cores[core], tables.operands, parts.rings, parts.changes)
