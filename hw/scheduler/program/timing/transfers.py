"""Cycle-by-cycle model of the two transfer engines and the memory's channel, without data; compiled.

The state is counts: words in the DMAs, on the bus, and in the channel.  As with registers, each unit acts on
the state at the end of the last cycle.

Not modelled: bank conflicts of the scratchpad (a cycle each) and rows of the memory.  Transfers are long and
in order, so the memory controller opens rows ahead.
"""

import numpy as np

from hw.scheduler.compiled import compiled
from hw.scheduler.program.latency import (
    ADDRESS_CYCLES,
    DMA_WORDS,
    DRAIN_CYCLES,
    FILL_CYCLES,
    GATE_WORDS,
    MAX_BURST_WORDS,
    SEND_CYCLES,
    TOKEN_CYCLES,
    TRANSFERS_AHEAD,
    WALK_CYCLES,
)
from hw.scheduler.program.timing.memory import TimingModel
from hw.scheduler.program.timing.state import IN, OUT, HardwareState, Integers, ProgramArrays

#: Sizes of circular queues, above any count of items in them; powers of two.
BURSTS, WORDS = 256, 4096

# Columns of the state of the read engine.
ISSUED, _PLACED, _LEFT, _SPLIT, _SPLIT_AT, _REQUESTED, _BUS, _JOINED = range(8)
_BUFFERED, _HELD, _HELD_LEFT, _ALLOWED, DONE, _BURST_IN, _BURST_OUT, _SERVED = range(8, 16)
# Columns of the write engine, after the first five; _BURST_GO and _SENDING count whole bursts in the DMA.
_GRANTED, _RELEASED, _SENT, _ENTERED, _WRITTEN, DONE_OUT, _BURST_GO, _SENDING = range(5, 13)
ENGINE_STATE = 16


@compiled
def issue(
    state: Integers, transfers: Integers, times: Integers, begun: int, computed: int, cycle: int
) -> bool:
    """Issue the next transfer of an engine, if its start step is reached."""
    number = state[ISSUED]
    if number == len(transfers) or number - state[_PLACED] >= (TRANSFERS_AHEAD + 1):
        return False
    start = transfers[number, 1]
    if computed <= start and not (transfers[number, 2] > 0 and begun > start):
        return False
    times[number] = cycle
    state[ISSUED] += 1
    return True


@compiled
def burst(transfer: Integers, at: int) -> int:
    """Return the words of the burst from word ``at`` of a transfer: up to the next multiple of 16."""
    return min(MAX_BURST_WORDS - (transfer[4] + at) % MAX_BURST_WORDS, transfer[0] - at)


@compiled
def fill(cycle: int, begun: int, tables: ProgramArrays, hardware: HardwareState, pace: TimingModel) -> bool:
    """Advance the read engine; return whether it is busy."""
    state, reads = hardware.reader, tables.reads
    # Into the scratchpad; the held word belongs to the first transfer that is not done.
    fires = state[_HELD] == 1 and state[_ALLOWED] == 1
    if fires:
        row = reads[state[DONE]]
        if row[2]:
            hardware.changes[IN, row[3], 0] += 1
            hardware.changes[IN, row[3], 1] += 1
        state[DONE] += state[_HELD_LEFT] == 0
    joined = (
        state[_BUFFERED] < GATE_WORDS
        and state[_JOINED] < state[_BUS]
        and hardware.ready[state[_JOINED] % WORDS] + FILL_CYCLES <= cycle
    )
    if fires or not state[_HELD]:
        state[_HELD] = state[_BUFFERED] > 0
        if state[_HELD]:
            state[_BUFFERED] -= 1
            state[_HELD_LEFT] = (state[_HELD_LEFT] or reads[state[DONE], 0]) - 1
    if state[_HELD]:
        row = reads[state[DONE]]
        state[_ALLOWED] = row[2] == 0 or hardware.rings[IN, row[3], 0] + fires < row[2]
    if joined:
        state[_LEFT] = (state[_LEFT] or reads[state[_PLACED], 0]) - 1
        state[_PLACED] += state[_LEFT] == 0
        state[_JOINED] += 1
        state[_BUFFERED] += 1
    # Addresses.
    if (
        state[_SPLIT] < state[ISSUED]
        and hardware.reading[state[_SPLIT]] + ADDRESS_CYCLES <= cycle
        and DMA_WORDS - (state[_REQUESTED] - state[_JOINED]) >= MAX_BURST_WORDS
    ):
        row = reads[state[_SPLIT]]
        words = burst(row, state[_SPLIT_AT])
        slot = state[_BURST_IN] % BURSTS
        hardware.burst_words[slot], hardware.burst_cycle[slot] = words, cycle
        state[_BURST_IN] += 1
        state[_REQUESTED] += words
        state[_SPLIT_AT] += words
        if state[_SPLIT_AT] == row[0]:
            state[_SPLIT] += 1
            state[_SPLIT_AT] = 0
    issue(state, reads, hardware.reading, begun, begun, cycle)
    in_gate = state[_HELD] + state[_BUFFERED] > 0
    return in_gate or state[_SPLIT] < state[ISSUED] or state[_JOINED] < state[_REQUESTED]


@compiled
def drain(
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
    if state[_PLACED] < state[ISSUED] and state[_GRANTED] - state[_SENT] < DMA_WORDS:
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
            ends = burst(row, row[0] - state[_LEFT] - 1) == 1
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
            number = state[DONE_OUT]
            if number < state[_PLACED] and last[number] == state[_ENTERED]:
                hardware.writing[number] = cycle + int(np.ceil(pace.write_response_cycles)) + TOKEN_CYCLES
                state[DONE_OUT] += 1
    issue(state, writes, hardware.writing, begun, computed, cycle)
    return state[_PLACED] < state[ISSUED] or state[_WRITTEN] < state[_GRANTED]


@compiled
def serve(cycle: int, hardware: HardwareState, pace: TimingModel) -> None:
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
            last = hardware.ready[(reader[_BUS] - 1) % WORDS] + pace.bus_cycles if reader[_BUS] else 0.0
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
def idle(cycle: int, hardware: HardwareState, pace: TimingModel) -> None:
    """Advance the idle channel to a cycle, with the refreshes before it."""
    dram = hardware.dram
    dram[0] = max(dram[0], cycle)
    if dram[3] < dram[0]:
        count = np.ceil((dram[0] - dram[3]) / pace.refresh_interval_cycles)
        dram[3] += pace.refresh_interval_cycles * count
        # The last refresh may not be over.
        dram[0] = max(dram[0], np.ceil(dram[3] - pace.refresh_interval_cycles) + pace.refresh_cycles)


@compiled
def completed(state: Integers, times: Integers, known: int, cycle: int) -> int:
    """Count the writes with a response."""
    while known < state[DONE_OUT] and times[known] <= cycle:
        known += 1
    return known
