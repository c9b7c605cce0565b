"""Cycles of a program: the cycle model of the hardware, on a simple model of the board's memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hw.errors import LoomworkError
from hw.scheduler.operators.timing import STATE
from hw.scheduler.program.program import MAX_CORES, SchedulerProgram, TransferWord
from hw.scheduler.program.timing import kernel, transfers
from hw.scheduler.program.timing.memory import TimingModel
from hw.scheduler.program.timing.state import HardwareState, Integers, ProgramArrays

#: Limit for a deadlock: many times the cycles of all words one after the other.
_LIMIT_FACTOR, _LIMIT_EXTRA_CYCLES = 64, 1_000_000


@dataclass(frozen=True, kw_only=True)
class ProgramCycles:
    """The predicted cycles of a program."""

    cycles_total: int  #: From start to done.
    exposed_cycles: int  #: Of these, cycles that only wait for transfers.
    load_cycles: int  #: Of these, cycles that load the program.


def predict(
    program: SchedulerProgram, model: TimingModel | None = None, *, image_words: int = 0
) -> ProgramCycles:
    """Predict the cycles of a program.

    ``model``: the memory; None is the default. ``image_words``: words of the program image loaded first.  It
    is 0 for a frozen program, and for a plan, whose cycles begin with its first step.

    Raises `LoomworkError` when the program deadlocks.
    """
    tables = _tables(program, image_words)
    model = model or TimingModel()
    words = image_words + sum(
        item.words for items in (program.operands, program.reads, program.writes) for item in items
    )
    least = sum(core.compute_cycles for step in program.steps for core in step.cores)
    limit = _LIMIT_FACTOR * (words + least + 100 * len(program.steps)) + _LIMIT_EXTRA_CYCLES
    loads = int(image_words > 0)
    total, exposed, load = kernel.simulate(tables, _reset_state(tables, model), model, loads, limit)
    if total < 0:
        raise LoomworkError("the program waits for itself: no step ends any more")
    return ProgramCycles(cycles_total=int(total), exposed_cycles=int(exposed), load_cycles=int(load))


def _tables(program: SchedulerProgram, image_words: int) -> ProgramArrays:
    """Return the program as arrays; the image is a read before all others."""
    image = [(image_words, -1, 0, 0, 0)] if image_words else []
    cores = np.zeros((len(program.steps), MAX_CORES, 6), np.int64)
    first = 0
    for number, step in enumerate(program.steps):
        for index, core in enumerate(step.cores):
            middle, end = first + len(core.inputs), first + len(core.operands)
            cores[number, index] = core.words_in, core.words_out, core.compute_cycles, first, middle, end
            first = end
    return ProgramArrays(
        steps=np.array(
            [(s.wait_reads + len(image), s.wait_writes, len(s.cores)) for s in program.steps], np.int64
        ),
        cores=cores,
        operands=np.array([(each.words, each.via, each.ring) for each in program.operands], np.int64),
        reads=_transfers(program.reads, image),
        writes=_transfers(program.writes),
    )


def _transfers(transfers: tuple[TransferWord, ...], before: Sequence[tuple[int, ...]] = ()) -> Integers:
    rows = [(word.words, word.start_step, word.ring, word.core, word.dram_address) for word in transfers]
    return np.array([*before, *rows], np.int64).reshape(-1, 5)


def _reset_state(tables: ProgramArrays, model: TimingModel) -> HardwareState:
    def zeros(*shape: int) -> Integers:
        return np.zeros(shape, np.int64)

    return HardwareState(
        cores=zeros(MAX_CORES, STATE),
        rings=zeros(3, MAX_CORES, 2),
        changes=zeros(3, MAX_CORES, 2),
        reader=zeros(transfers.ENGINE_STATE),
        writer=zeros(transfers.ENGINE_STATE),
        reading=zeros(len(tables.reads) + 1),
        writing=zeros(len(tables.writes) + 1),
        burst_words=zeros(transfers.BURSTS),
        burst_cycle=zeros(transfers.BURSTS),
        ready=np.zeros(transfers.WORDS),
        sent=zeros(transfers.WORDS),
        released=zeros(transfers.BURSTS, 2),
        # Time, direction, length of the current run, next refresh.
        dram=np.array([0.0, 0.0, 0.0, model.refresh_interval_cycles / 2]),
    )
