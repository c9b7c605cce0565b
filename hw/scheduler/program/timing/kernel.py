"""Cycle-by-cycle model of the hardware, without data; compiled, for `hw.scheduler.program.timing.timeline`.

The state is counts: words read, digested and written by the cores, and words in rings.  As with registers,
each unit acts on the state at the end of the last cycle.  `hw.scheduler.program.timing.transfers` has the
transfer engines and the memory.
"""

import numpy as np

from hw.scheduler.compiled import compiled
from hw.scheduler.operators.timing import begin, computes_until, has_written, work
from hw.scheduler.program.latency import TABLE_CYCLES
from hw.scheduler.program.timing.memory import TimingModel
from hw.scheduler.program.timing.state import MEMORY, NEXT, HardwareState, ProgramArrays
from hw.scheduler.program.timing.transfers import DONE, ISSUED, completed, drain, fill, idle, serve

#: Phases of the sequencer.
_LOAD, _SLOT, _READS, _COMPUTE, _DRAIN = range(5)


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
        hardware.reader[ISSUED] = 1
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
        busy = fill(cycle, begun, tables, hardware, pace)
        busy = drain(cycle, begun, computed, tables, hardware, pace, last) or busy
        serve(cycle, hardware, pace)
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
                    idle(cycle, hardware, pace)
            elif not busy and _streams_nothing(step, tables):
                cycle = _compute(step, cycle, tables, hardware)
                idle(cycle, hardware, pace)
        else:
            if drained:
                return cycle, exposed, loading
            exposed += 1
        # Element by element, for the reason in `hw.scheduler.planner.order.lattice.copy_into`.
        for place in np.ndindex(hardware.changes.shape):
            hardware.rings[place] += hardware.changes[place]
            hardware.changes[place] = 0
        drained = done_reads == len(tables.reads) and done_writes == len(tables.writes)
        done_reads = hardware.reader[DONE]
        done_writes = completed(hardware.writer, hardware.writing, done_writes, cycle)
        cycle += 1
    return -1, 0, 0
