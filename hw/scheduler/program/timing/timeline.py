"""How long a program takes: the gates cycle by cycle, against a simple model of the board's memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hw.board import Board
from hw.board.dram_timing import DramTiming
from hw.errors import InputError, LoomworkError
from hw.scheduler.operators.timing import STATE
from hw.scheduler.program.program import MAX_CORES, OperandWord, Program, TransferWord, Via
from hw.scheduler.program.timing import kernel
from hw.scheduler.program.timing.state import FIFO, MEMORY, WHOLE, Integers, Parts, Tables

_VIA = {Via.WHOLE: WHOLE, Via.MEMORY: MEMORY, Via.FIFO: FIFO}
#: Cycles of a program that is given up: all its words one after the other, many times over.
_LIMIT_FACTOR, _LIMIT_EXTRA_CYCLES = 64, 1_000_000


@dataclass(frozen=True, kw_only=True)
class TimingModel:
    """One memory port and the channel behind it, in cycles of the kernel's clock.

    Parameters
    ----------
    read_request_cycles, read_response_cycles : float
        From an address on the bus to the channel, and from there to the data on the bus.
    write_request_cycles, write_response_cycles : float
        From data on the bus to the channel, and from there to the response.
    word_cycles : float
        What the channel takes for a word.
    turnaround_cycles : float
        What it loses with each change of direction.
    refresh_interval_cycles, refresh_cycles : float
        How often it refreshes, and how long it then stands still.
    write_high_words : int
        Written words that end a run of reads.
    run_words : int
        Shortest run of one direction while the other waits.
    write_buffer_words, fabric_words : int
        Written words that the channel, and the way to it, can hold.

    Notes
    -----
    The defaults are those of an Alveo U55C at 300 MHz.
    """

    read_request_cycles: float = 14.0
    read_response_cycles: float = 40.0
    write_request_cycles: float = 14.0
    write_response_cycles: float = 10.0
    word_cycles: float = 2 / 3
    turnaround_cycles: float = 5.0
    refresh_interval_cycles: float = 1170.0
    refresh_cycles: float = 110.0
    write_high_words: int = 96
    run_words: int = 256
    write_buffer_words: int = 128
    fabric_words: int = 64

    def __post_init__(self) -> None:
        for name in ("word_cycles", "write_high_words", "run_words", "write_buffer_words", "fabric_words"):
            if not getattr(self, name) > 0:
                raise InputError(name, getattr(self, name), "above 0")
        for name in (
            "read_request_cycles",
            "read_response_cycles",
            "write_request_cycles",
            "write_response_cycles",
            "turnaround_cycles",
            "refresh_cycles",
        ):
            if not getattr(self, name) >= 0:
                raise InputError(name, getattr(self, name), "at least 0")
        if not self.refresh_interval_cycles > self.refresh_cycles:
            raise InputError("refresh_interval_cycles", self.refresh_interval_cycles, "above refresh_cycles")

    @classmethod
    def of(cls, board: Board) -> TimingModel:
        """Give the model of a board's memory, from its timing."""
        memory, timing = board.memory, board.memory.timing
        assert isinstance(timing, DramTiming)  # a board's own memory is one: `hw.board.Board`
        axi = board.clock_mhz / timing.axi_clock_mhz
        command = board.clock_mhz / timing.command_clock_mhz
        word_bytes = memory.port_data_width / 8
        granules = word_bytes / timing.granule_bytes
        return cls(
            read_request_cycles=board.cycles(timing.request_ns),
            # A row is opened for the first word; for those behind it, ahead of them.
            read_response_cycles=board.cycles(timing.read_response_ns),
            write_request_cycles=board.cycles(timing.request_ns),
            write_response_cycles=board.cycles(timing.write_response_ns),
            word_cycles=max(
                granules * timing.ccd_short_ck * command,
                granules * timing.granule_bytes / timing.port_beat_bytes * axi,
            ),
            # Half of a change to writes and back: the two take different times, but come in pairs.  The
            # latency of writes is gained in the one and lost in the other.
            turnaround_cycles=command
            / 2
            * (timing.cas_latency_ck + timing.read_to_write_gap_ck + 2 * timing.data_ck + timing.wtr_long_ck),
            refresh_interval_cycles=timing.refresh_interval_ck * command,
            refresh_cycles=(timing.refresh_ck + timing.rp_ck) * command,
            write_high_words=max(1, round(timing.write_high_granules / granules)),
            run_words=max(1, round(timing.direction_granules / granules)),
            write_buffer_words=max(1, round(timing.write_buffer_granules / granules)),
            fabric_words=max(1, round(timing.fabric_write_bytes / word_bytes)),
        )


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What a program takes.

    Members
    -------
    cycles_total
        From start to done.
    exposed_cycles
        Those of them in which only transfers were waited for.
    load_cycles
        Those of them in which the program was loaded.
    starts, ends
        Of each step: the cycle in which its slot begins, and the one in which it is computed.
    """

    cycles_total: int
    exposed_cycles: int
    load_cycles: int
    starts: tuple[int, ...]
    ends: tuple[int, ...]


def predict(program: Program, model: TimingModel | None = None, *, image_words: int = 0) -> Prediction:
    """Predict the time of a program.

    Parameters
    ----------
    program : Program
    model : TimingModel or None
        Of the memory; the default one when None.
    image_words : int
        Words of the program image that is loaded before; 0 where the program is frozen, and for a plan, whose
        cycles begin with its first step.

    Raises
    ------
    LoomworkError
        When the program waits for itself; `Program` refuses all known ways to.
    """
    tables = _tables(program, image_words)
    model = model or TimingModel()
    steps = len(program.steps)
    starts, ends = np.zeros(steps, np.int64), np.zeros(steps, np.int64)
    words = image_words + sum(
        item.words for items in (program.operands, program.reads, program.writes) for item in items
    )
    least = sum(core.compute_cycles for step in program.steps for core in step.cores)
    limit = _LIMIT_FACTOR * (words + least + 100 * steps) + _LIMIT_EXTRA_CYCLES
    loads = int(image_words > 0)
    total, exposed, load = kernel.simulate(
        tables, _parts(tables, model), _pace(model), starts, ends, loads, limit
    )
    if total < 0:
        raise LoomworkError("the program waits for itself: no step ends any more")
    return Prediction(
        cycles_total=int(total),
        exposed_cycles=int(exposed),
        load_cycles=int(load),
        starts=tuple(starts.tolist()),
        ends=tuple(ends.tolist()),
    )


def _tables(program: Program, image_words: int) -> Tables:
    """Give the program in numbers; the image is a read before all others."""
    image = [(image_words, -1, 0, 0, 0)] if image_words else []
    cores = np.zeros((len(program.steps), MAX_CORES, 7), np.int64)
    for number, step in enumerate(program.steps):
        for index, core in enumerate(step.cores):
            cores[number, index] = (
                sum(operand.words for operand in program.inputs_of(core)),
                sum(operand.words for operand in program.outputs_of(core)),
                core.compute_cycles,
                core.first_operand,
                core.inputs,
                core.first_operand + core.inputs,
                core.outputs,
            )
    return Tables(
        steps=np.array(
            [(s.wait_reads + len(image), s.wait_writes, len(s.cores)) for s in program.steps], np.int64
        ),
        cores=cores,
        operands=np.array([_operand(operand) for operand in program.operands], np.int64),
        reads=_transfers(program.reads, image),
        writes=_transfers(program.writes),
    )


def _operand(operand: OperandWord) -> tuple[int, int, int]:
    return operand.words, _VIA[operand.via], operand.ring


def _transfers(transfers: tuple[TransferWord, ...], before: Sequence[tuple[int, ...]] = ()) -> Integers:
    rows = [(word.words, word.start_step, word.ring, word.core, word.dram_address) for word in transfers]
    return np.array([*before, *rows], np.int64).reshape(-1, 5)


def _pace(model: TimingModel) -> kernel.Pace:
    return kernel.Pace(
        request=model.read_request_cycles,
        response=model.read_response_cycles,
        write_request=model.write_request_cycles,
        write_response=model.write_response_cycles,
        word=model.word_cycles,
        turn=model.turnaround_cycles,
        refresh_every=model.refresh_interval_cycles,
        refresh=model.refresh_cycles,
        write_high=model.write_high_words,
        run=model.run_words,
        buffer=model.write_buffer_words,
        fabric=model.fabric_words,
    )


def _parts(tables: Tables, model: TimingModel) -> Parts:
    def zeros(*shape: int) -> Integers:
        return np.zeros(shape, np.int64)

    return Parts(
        cores=zeros(MAX_CORES, STATE),
        rings=zeros(3, MAX_CORES, 2),
        changes=zeros(3, MAX_CORES, 2),
        reader=zeros(kernel.ENGINE_STATE),
        writer=zeros(kernel.ENGINE_STATE),
        reading=zeros(len(tables.reads) + 1),
        writing=zeros(len(tables.writes) + 1),
        burst_words=zeros(kernel.BURSTS),
        burst_cycle=zeros(kernel.BURSTS),
        ready=np.zeros(kernel.WORDS),
        sent=zeros(kernel.WORDS),
        released=zeros(kernel.BURSTS, 2),
        # Time, direction, length of the run, next refresh.
        dram=np.array([0.0, 0.0, 0.0, model.refresh_interval_cycles / 2]),
    )
