"""Cycle-by-cycle model of the hardware, without data; compiled, for `hw.scheduler.program.timing.timeline`.

The state is counts: words read, digested and written by the cores, words in rings, words in the DMAs, and
words in the memory's channel.  As with registers, each unit acts on the state at the end of the last cycle.

Not modelled: bank conflicts (a cycle each, see `hw.scheduler.core.scratchpad`) and rows of the memory.
Transfers are long and in order, so the memory controller opens rows ahead.
"""

import numpy as np

from hw.scheduler.compiled import compiled
from hw.scheduler.operators.timing import begin, computes_until, has_written, work
from hw.scheduler.program.latency import (
    ADDRESS_CYCLES,
    DMA_WORDS,
    DRAIN_CYCLES,
    FILL_CYCLES,
    GATE_WORDS,
    MAX_BURST_WORDS,
    SEND_CYCLES,
    TABLE_CYCLES,
    TOKEN_CYCLES,
    TRANSFERS_AHEAD,
    WALK_CYCLES,
)
from hw.scheduler.program.timing.memory import TimingModel
from hw.scheduler.program.timing.state import IN, MEMORY, NEXT, OUT, HardwareState, Integers, ProgramArrays

#: Phases of the sequencer.
_LOAD, _SLOT, _READS, _COMPUTE, _DRAIN = range(5)

#: Sizes of circular queues, above any count of items in them; powers of two.
BURSTS, WORDS = 256, 4096

# Columns of the state of the read engine.
_ISSUED, _PLACED, _LEFT, _SPLIT, _SPLIT_AT, _REQUESTED, _BUS, _JOINED = range(8)
_BUFFERED, _HELD, _HELD_LEFT, _ALLOWED, _DONE, _BURST_IN, _BURST_OUT, _SERVED = range(8, 16)
# Columns of the write engine, after the first five; _BURST_GO and _SENDING count whole bursts in the DMA.
_GRANTED, _RELEASED, _SENT, _ENTERED, _WRITTEN, _DONE_OUT, _BURST_GO, _SENDING = range(5, 13)
ENGINE_STATE = 16


@compiled
def _issue(
    state: Integers, transfers: Integers, times: Integers, begun: int, computed: int, cycle: int
) -> bool:
    """Issue the next transfer of an engine, if its start step is reached."""
    number = state[_ISSUED]
    if number == len(transfers) or number - state[_PLACED] >= (TRANSFERS_AHEAD + 1):
        return False
    start = transfers[number, 1]
    if computed <= start and not (transfers[number, 2] > 0 and begun > start):
        return False
    times[number] = cycle
    state[_ISSUED] += 1
    return True


@compiled
def _burst(transfer: Integers, at: int) -> int:
    """Return the words of the burst from word ``at`` of a transfer: up to the next multiple of 16."""
    return min(MAX_BURST_WORDS - (transfer[4] + at) % MAX_BURST_WORDS, transfer[0] - at)


@compiled
def _fill(cycle: int, begun: int, tables: ProgramArrays, hardware: HardwareState, pace: TimingModel) -> bool:
    """Advance the read engine; return whether it is busy."""
    state, reads = hardware.reader, tables.reads
    # Into the scratchpad; the held word belongs to the first transfer that is not done.
    fires = state[_HELD] == 1 and state[_ALLOWED] == 1
    if fires:
        row = reads[state[_DONE]]
        if row[2]:
            hardware.changes[IN, row[3], 0] += 1
            hardware.changes[IN, row[3], 1] += 1
        state[_DONE] += state[_HELD_LEFT] == 0
    joined = (
        state[_BUFFERED] < GATE_WORDS
        and state[_JOINED] < state[_BUS]
        and hardware.ready[state[_JOINED] % WORDS] + FILL_CYCLES <= cycle
    )
    if fires or not state[_HELD]:
        state[_HELD] = state[_BUFFERED] > 0
        if state[_HELD]:
            state[_BUFFERED] -= 1
            state[_HELD_LEFT] = (state[_HELD_LEFT] or reads[state[_DONE], 0]) - 1
    if state[_HELD]:
        row = reads[state[_DONE]]
        state[_ALLOWED] = row[2] == 0 or hardware.rings[IN, row[3], 0] + fires < row[2]
    if joined:
        state[_LEFT] = (state[_LEFT] or reads[state[_PLACED], 0]) - 1
        state[_PLACED] += state[_LEFT] == 0
        state[_JOINED] += 1
        state[_BUFFERED] += 1
    # Addresses.
    if (
        state[_SPLIT] < state[_ISSUED]
        and hardware.reading[state[_SPLIT]] + ADDRESS_CYCLES <= cycle
        and DMA_WORDS - (state[_REQUESTED] - state[_JOINED]) >= MAX_BURST_WORDS
    ):
        row = reads[state[_SPLIT]]
        words = _burst(row, state[_SPLIT_AT])
        slot = state[_BURST_IN] % BURSTS
        hardware.burst_words[slot], hardware.burst_cycle[slot] = words, cycle
        state[_BURST_IN] += 1
        state[_REQUESTED] += words
        state[_SPLIT_AT] += words
        if state[_SPLIT_AT] == row[0]:
            state[_SPLIT] += 1
            state[_SPLIT_AT] = 0
    _issue(state, reads, hardware.reading, begun, begun, cycle)
    in_gate = state[_HELD] + state[_BUFFERED] > 0
    return in_gate or state[_SPLIT] < state[_ISSUED] or state[_JOINED] < state[_REQUESTED]


@compiled
def _drain(
    cycle: int,
    begun: int,
    computed: int,
    tables: ProgramArrays,
    hardware: HardwareState,
    pace: TimingModel,
    last: Integers,
) -> bool:
    """Advance the write engine up to the bus; return whether it is busy."""
    state, writes = hardware.writer, tables.writes
    # Out of the scratchpad.
    if state[_PLACED] < state[_ISSUED] and state[_GRANTED] - state[_SENT] < DMA_WORDS:
        row = writes[state[_PLACED]]
        if hardware.writing[state[_PLACED]] + WALK_CYCLES <= cycle and (
            row[2] == 0 or hardware.rings[OUT, row[3], 1] > 0
        ):
            if row[2]:
                hardware.changes[OUT, row[3], 0] -= 1
                hardware.changes[OUT, row[3], 1] -= 1
            if state[_LEFT] == 0:
                state[_LEFT] = row[0]
            state[_LEFT] -= 1
            state[_GRANTED] += 1
            ends = _burst(row, row[0] - state[_LEFT] - 1) == 1
            if ends:
                # This word completes a burst.
                slot = state[_BURST_GO] % BURSTS
                hardware.released[slot, 0] = state[_GRANTED]
                hardware.released[slot, 1] = cycle + DRAIN_CYCLES + SEND_CYCLES
                state[_BURST_GO] += 1
            if state[_LEFT] == 0:
                last[state[_PLACED]] = state[_GRANTED]
                state[_PLACED] += 1
    # Onto the bus.
    while state[_SENDING] < state[_BURST_GO] and hardware.released[state[_SENDING] % BURSTS, 1] <= cycle:
        state[_RELEASED] = hardware.released[state[_SENDING] % BURSTS, 0]
        state[_SENDING] += 1
    if state[_SENT] < state[_RELEASED] and state[_SENT] - state[_ENTERED] < pace.fabric_words:
        hardware.sent[state[_SENT] % WORDS] = cycle
        state[_SENT] += 1
    # Into the channel, which responds.
    for _ in range(2):
        if (
            state[_ENTERED] < state[_SENT]
            and hardware.sent[state[_ENTERED] % WORDS] + pace.write_request_cycles <= cycle
            and state[_ENTERED] - state[_WRITTEN] < pace.write_buffer_words
        ):
            state[_ENTERED] += 1
            number = state[_DONE_OUT]
            if number < state[_PLACED] and last[number] == state[_ENTERED]:
                hardware.writing[number] = cycle + int(np.ceil(pace.write_response_cycles)) + TOKEN_CYCLES
                state[_DONE_OUT] += 1
    _issue(state, writes, hardware.writing, begun, computed, cycle)
    return state[_PLACED] < state[_ISSUED] or state[_WRITTEN] < state[_GRANTED]


@compiled
def _serve(cycle: int, hardware: HardwareState, pace: TimingModel) -> None:
    """Advance the memory's channel to the end of this cycle: reads first, writes above a watermark."""
    dram, reader, writer = hardware.dram, hardware.reader, hardware.writer
    end = cycle + 1.0
    while dram[0] < end:
        now = dram[0]
        if now >= dram[3]:
            dram[0] = now + pace.refresh_cycles
            dram[3] += pace.refresh_interval_cycles
            continue
        slot = reader[_BURST_OUT] % BURSTS
        asked = hardware.burst_cycle[slot] + pace.read_request_cycles
        readable = reader[_BURST_OUT] < reader[_BURST_IN] and asked <= now
        held = writer[_ENTERED] - writer[_WRITTEN]
        ran = dram[2] >= pace.run_words
        if dram[1] > 0:
            change = readable and (held == 0 or ran)
        else:
            change = held > 0 and (not readable or (ran and held >= pace.write_high_words))
        if change:
            dram[0] = now + pace.turnaround_cycles
            dram[1] = 1.0 - dram[1]
            dram[2] = 0.0
            continue
        if dram[1] > 0 and held > 0:
            writer[_WRITTEN] += 1
        elif dram[1] == 0 and readable:
            last = hardware.ready[(reader[_BUS] - 1) % WORDS] + 1.0 if reader[_BUS] else 0.0
            hardware.ready[reader[_BUS] % WORDS] = max(last, np.ceil(now + pace.read_response_cycles))
            reader[_BUS] += 1
            reader[_SERVED] += 1
            if reader[_SERVED] == hardware.burst_words[slot]:
                reader[_SERVED] = 0
                reader[_BURST_OUT] += 1
        else:
            dram[0] = end
            break
        dram[2] += 1.0
        dram[0] = now + pace.word_cycles


@compiled
def _idle(cycle: int, hardware: HardwareState, pace: TimingModel) -> None:
    """Advance the idle channel to a cycle, with the refreshes before it."""
    dram = hardware.dram
    dram[0] = max(dram[0], cycle)
    if dram[3] < dram[0]:
        count = np.ceil((dram[0] - dram[3]) / pace.refresh_interval_cycles)
        dram[3] += pace.refresh_interval_cycles * count
        # The last refresh may not be over.
        dram[0] = max(dram[0], np.ceil(dram[3] - pace.refresh_interval_cycles) + pace.refresh_cycles)


@compiled
def _completed(state: Integers, times: Integers, known: int, cycle: int) -> int:
    """Count the writes with a response."""
    while known < state[_DONE_OUT] and times[known] <= cycle:
        known += 1
    return known


@compiled
def _streams_nothing(step: int, tables: ProgramArrays) -> bool:
    """Return whether a step streams nothing from or to memory.

    Then, once the transfer engines are idle, they stay idle, and the cores are simulated alone.
    """
    for core in range(tables.steps[step, 2]):
        word = tables.cores[step, core]
        for operand in range(word[3], word[5]):
            if tables.operands[operand, 1] == MEMORY:
                return False
    return True


@compiled
def _compute(step: int, cycle: int, tables: ProgramArrays, hardware: HardwareState) -> int:
    """Simulate the cores alone until all have written their last word; return that cycle."""
    count, words = tables.steps[step, 2], tables.cores[step]
    while True:
        written = True
        for core in range(count):
            written = written and has_written(words[core], hardware.cores[core])
        if written:
            return cycle
        for core in range(count - 1):
            for column in range(2):
                hardware.rings[NEXT, core, column] += hardware.changes[NEXT, core, column]
                hardware.changes[NEXT, core, column] = 0
        cycle += 1
        for core in range(count):
            work(
                core,
                cycle,
                words[core],
                hardware.cores[core],
                tables.operands,
                hardware.rings,
                hardware.changes,
            )


@compiled
def _arithmetic_end(step: int, tables: ProgramArrays, hardware: HardwareState) -> int:
    """Return the cycle in which a step's arithmetic ends; 0 while a core has words left to write."""
    end = 0
    for core in range(tables.steps[step, 2]):
        word, state = tables.cores[step, core], hardware.cores[core]
        if not has_written(word, state):
            return 0
        end = max(end, computes_until(word, state))
    return end


@compiled
def simulate(
    tables: ProgramArrays, hardware: HardwareState, pace: TimingModel, loads: int, limit: int
) -> tuple[int, int, int]:
    """Simulate a program.

    * ``hardware``: the initial state: zero, except for the memory's first refresh.
    * ``loads``: 1 when the first read is the program image, loaded before the first step; else 0.
    * ``limit``: cycles after which the program counts as deadlocked.

    Returns cycles from start to done, of them exposed to transfers, of them loading the program; the first is
    -1 on a deadlock.
    """
    steps = len(tables.steps)
    last = np.zeros(len(tables.writes), np.int64)
    phase, step, begun, computed, exposed, loading = _SLOT, 0, 0, 0, 0, 0
    if loads:
        # The loader's DMA command is as early as that of a transfer issued at the start.
        phase = _LOAD
        hardware.reader[_ISSUED] = 1
    done_reads = done_writes = 0
    drained = False
    cycle = TABLE_CYCLES
    while cycle < limit:
        done, moved, waits, computing = True, False, False, False
        if phase == _COMPUTE:
            for core in range(tables.steps[step, 2]):
                core_done, core_moved, core_waits = work(
                    core,
                    cycle,
                    tables.cores[step, core],
                    hardware.cores[core],
                    tables.operands,
                    hardware.rings,
                    hardware.changes,
                )
                done = done and core_done
                moved = moved or core_moved
                waits = waits or core_waits
                computing = computing or cycle < computes_until(
                    tables.cores[step, core], hardware.cores[core]
                )
            # Waits behind arithmetic are hidden.
            exposed += waits and not moved and not computing
        busy = _fill(cycle, begun, tables, hardware, pace)
        busy = _drain(cycle, begun, computed, tables, hardware, pace, last) or busy
        _serve(cycle, hardware, pace)
        if phase == _LOAD:
            if done_reads == loads:
                # The loader receives a word two cycles before the scratchpad would.  Its done arrives a cycle
                # later, as the first row of a table does.
                loading = cycle - TABLE_CYCLES
                phase = _SLOT
        elif phase == _SLOT:
            if done_writes >= tables.steps[step, 1]:
                begun += 1
                phase = _READS
            else:
                exposed += 1
        elif phase == _READS:
            if done_reads >= tables.steps[step, 0]:
                for core in range(tables.steps[step, 2]):
                    begin(cycle + 1, tables.cores[step, core], hardware.cores[core], tables.operands)
                phase = _COMPUTE
            else:
                exposed += 1
        elif phase == _COMPUTE:
            if done:
                computed += 1
                step += 1
                phase = _SLOT if step < steps else _DRAIN
            elif not (moved or busy or waits):
                # Only arithmetic is left: skip to its end.
                target = _arithmetic_end(step, tables, hardware)
                if target - 1 > cycle:
                    cycle = target - 1
                    _idle(cycle, hardware, pace)
            elif not busy and _streams_nothing(step, tables):
                cycle = _compute(step, cycle, tables, hardware)
                _idle(cycle, hardware, pace)
        else:
            if drained:
                return cycle, exposed, loading
            exposed += 1
        # Element by element, for the reason in `hw.scheduler.planner.order.lattice.copy_into`.
        for place in np.ndindex(hardware.changes.shape):
            hardware.rings[place] += hardware.changes[place]
            hardware.changes[place] = 0
        drained = done_reads == len(tables.reads) and done_writes == len(tables.writes)
        done_reads = hardware.reader[_DONE]
        done_writes = _completed(hardware.writer, hardware.writing, done_writes, cycle)
        cycle += 1
    return -1, 0, 0
