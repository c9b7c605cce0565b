"""When each step of a program begins and ends, and which resource bounds it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hw.board import Board
from hw.errors import LoomworkError
from hw.lib.axi import MAX_BURST_BEATS
from hw.lib.dma.read import ReadDMA
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid
from hw.network.commands import AttentionCommand, MatrixCommand, VectorKind
from hw.network.config import WORD_BYTES, NetworkConfig
from hw.network.matrix.array import MatrixArray
from hw.network.matrix.drain import RESULTS
from hw.network.matrix.feed_command import MOST_STEPS, TABLE_ENTRIES
from hw.network.matrix.layouts import PARAMETER_BEATS
from hw.network.matrix.timing import TAKE_CYCLES, steps_of_blocks, table_wait
from hw.network.model.image import ImageSize, image_size
from hw.network.model.latency import (
    DRAINED_CYCLES,
    FIRST_WORD_CYCLES,
    LOAD_CYCLES,
    LOADED_CYCLES,
    OFFER_CYCLES,
    PIXEL_CYCLES,
    RECORD_CYCLES,
    RESIDUAL_LEAD,
    RESPONSE_CYCLES,
    ROWS_CYCLES,
    TAPS_CYCLES,
    TAPS_PAUSE,
    UNREAD_CYCLES,
    WEIGHTS_CYCLES,
    drain_cycles,
)
from hw.network.model.memory import MemoryModel
from hw.network.model.residual import ReadTiming, ResidualCommand, residual_waits
from hw.network.model.transfers import Transfers
from hw.network.model.weights import ADOPTED, PacketTiming, stream, sweep
from hw.network.program.barriers import is_barriers
from hw.network.program.image import first_words
from hw.network.program.program import NetworkProgram, Step
from hw.network.scratchpad.response import READS_AHEAD
from hw.network.vector.timing import cycles

#: Most k tiles of a command whose residual may lack banks: others read it in a fraction of the cycles.
_RESIDUAL_TAPS = 3


class Bound(enum.StrEnum):
    """Causes of a step's cycles."""

    ARRAY = "array"  #: Steps of the array.
    WEIGHTS = "weights"  #: The array waits for the next packet.
    RESIDUAL = "residual"  #: Results wait for their residual, and the array for room.
    VECTOR = "vector"  #: Steps of the vector unit.
    ATTENTION = "attention"  #: Commands of the attention unit.
    WRITES = "writes"  #: Transfers to memory whose places the step takes over.
    READS = "reads"  #: Transfers from memory that it reads.
    PIPELINE = "pipeline"  #: Its command, its first pixel, its last result.


@dataclass(frozen=True, kw_only=True)
class StepTime:
    """The cycles of one step."""

    step: Step
    begin: int  #: First cycle, from the launch's start on.
    end: int  #: The cycle in which its last result is in the scratchpad.
    spent: Mapping[Bound, int]  #: All of its cycles.
    room: int = 0  #: Of the residual's: cycles in which the array waits for room.
    first: int  #: Of the pipeline's: cycles in which the unit waits for its first pixel or word.

    @property
    def cycles(self) -> int:
        """Cycles from the last step's end to its own."""
        return self.end - self.begin + 1

    @property
    def bound(self) -> Bound:
        """The cause of most of its cycles."""
        return max(Bound, key=lambda each: self.spent.get(each, 0))


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The cycles of a launch."""

    load_cycles: int  #: From start until the program is loaded.
    steps: tuple[StepTime, ...]
    drain_cycles: int  #: From the last step's end to done.
    image: ImageSize

    @property
    def cycles(self) -> int:
        """Cycles from start to done."""
        return self.steps[-1].end + self.drain_cycles

    def total(self, cause: Bound) -> int:
        """Return the cycles of all steps that are spent on a cause."""
        return sum(each.spent.get(cause, 0) for each in self.steps)


def timeline(
    program: NetworkProgram, config: NetworkConfig, board: Board, *, memory: MemoryModel | None = None
) -> Timeline:
    """Return the cycles of a launch of a program of barriers.

    ``memory``: the board's calibrated memory if None. Raises `LoomworkError` when the program waits for
    itself, or its steps are no barriers.
    """
    if not is_barriers(program):
        raise LoomworkError("the cycles of steps that overlap are not predicted")
    return _Launch(program, config, memory or MemoryModel.of(board, config)).run()


def load_cycles(program: NetworkProgram, config: NetworkConfig, memory: MemoryModel) -> int:
    """Return the cycles from start until the records before the first command are loaded."""
    return _Launch(program, config, memory).loaded


class _Launch:
    def __init__(self, program: NetworkProgram, config: NetworkConfig, memory: MemoryModel) -> None:
        self._program, self._config, self._memory = program, config, memory
        self._image = image_size(program, lanes=config.lanes)
        self.loaded = self._load()
        self._rows = self.loaded + ROWS_CYCLES  # the first rows of tables are there
        self._weights = memory.weight_state()
        self._packets = _packet_timing(config)
        self._places = first_words(program, config)
        self._table = -1  # that the drain's lanes have
        self._vector_table = -1  # that the vector unit's lanes have
        self._last_tap = self._rows + TAPS_CYCLES - TAPS_PAUSE - 1
        # Of commands whose tap rows are in the feeds' tables: rows, and when they are freed.
        self._taps: list[tuple[int, int]] = []

    def run(self) -> Timeline:
        """Run all steps, and transfers beside them."""
        program = self._program
        transfers = Transfers(
            program,
            self._memory.main,
            port_bytes=self._config.port_bytes,
            begin=self._rows,
            refresh=self._memory.first_refreshes[0],
        )
        found: list[StepTime] = []
        cycle = self._rows
        for number, step in enumerate(program.steps):
            slot = transfers.wait(cycle, begun=number, computed=number, writes=step.wait_writes)
            asked = slot + OFFER_CYCLES
            transfers.run(asked, begun=number, computed=number)
            ready = transfers.wait(asked, begun=number + 1, computed=number, reads=step.wait_reads)
            waits = {Bound.WRITES: slot - cycle, Bound.READS: ready - asked}
            # A count that is awaited is compared in a cycle of its own.
            made = self._step(step, cycle, ready + OFFER_CYCLES * (ready > asked), waits)
            transfers.run(made.end + 1, begun=number + 1, computed=number)
            found.append(made)
            cycle = made.end + 1
        drained = transfers.drain(cycle, steps=len(program.steps))
        return Timeline(
            load_cycles=self.loaded,
            steps=tuple(found),
            drain_cycles=drained + DRAINED_CYCLES - found[-1].end,
            image=self._image,
        )

    def _load(self) -> int:
        """Return the cycle in which the loader is done."""
        state, words = self._memory.weight_state(), WORD_BYTES // self._config.port_bytes
        state.ports[0, 2] = self._memory.first_refreshes[0]
        arrived = stream(
            words * self._image.opening,
            LOAD_CYCLES,
            self._memory.weights,
            _packet_timing(self._config),
            state._replace(ports=state.ports[:1]),
        )
        free = 0  # the loader is, for the next record
        rows = self._image.rows[: self._image.opening]
        for arrives, count in zip(arrived[words - 1 :: words].tolist(), rows, strict=True):
            free = max(free, arrives + RECORD_CYCLES) + 1 + count
        return free - 1 + LOADED_CYCLES

    def _step(self, step: Step, begin: int, command: int, waits: dict[Bound, int]) -> StepTime:
        """Return the times of a step whose command is at its unit in the cycle ``command``."""
        made = step.command
        if isinstance(made, MatrixCommand):
            return self._matrix(step, made, begin, command, waits)
        if isinstance(made, AttentionCommand):
            raise LoomworkError("the cycles of attention are not predicted")
        held = made.kind is VectorKind.TABLE and self._vector_table == made.table
        if made.kind is VectorKind.TABLE:
            self._vector_table = made.table
        end = command + cycles(self._config.vector, made, table_held=held)
        spent = waits | {Bound.PIPELINE: FIRST_WORD_CYCLES + OFFER_CYCLES}
        spent[Bound.VECTOR] = end - begin + 1 - sum(spent.values())
        return StepTime(step=step, begin=begin, end=end, spent=spent, first=FIRST_WORD_CYCLES)

    def _matrix(
        self, step: Step, made: MatrixCommand, begin: int, command: int, waits: dict[Bound, int]
    ) -> StepTime:
        command += TAKE_CYCLES
        held = self._table == made.table
        if made.table >= 0:
            self._table = made.table
        pixels = max(command, self._tap_rows(made.taps)) + PIXEL_CYCLES
        blocks = steps_of_blocks(made)
        row = (made.taps, made.column_tiles, len(blocks), blocks[0], blocks[-1], self._places[made.weights])
        last, waited = sweep(
            np.array(row, np.int64),
            pixels,
            UNREAD_CYCLES if self._begins_outside(made) else 0,
            self._rows + WEIGHTS_CYCLES,
            self._memory.weights,
            self._packets,
            self._weights,
        )
        self._taps[-1] = made.taps, last - blocks[-1]
        late_step, late = self._residual(made)
        result = last + MatrixArray.latency(self._config.matrix) + Fifo.DEEP_LATENCY
        table_late = table_wait(made, last_result=result - command, held=held)
        last += late_step
        self._weights.now[ADOPTED] += late_step
        end = last + drain_cycles(self._config) + max(late, table_late) - late_step
        busy = sum(blocks) * made.taps * made.column_tiles
        spent = waits | {Bound.ARRAY: busy, Bound.WEIGHTS: waited, Bound.RESIDUAL: late}
        spent[Bound.PIPELINE] = end - begin + 1 - sum(spent.values())
        first = pixels - command - 1
        return StepTime(step=step, begin=begin, end=end, spent=spent, first=first, room=late_step)

    def _residual(self, made: MatrixCommand) -> tuple[int, int]:
        """Return the cycles by which a command's last step and last result are late for its residual."""
        if made.residual is None or made.taps > _RESIDUAL_TAPS:
            return 0, 0
        taps = self._program.taps[made.first_tap :][: made.taps]
        rows = [(tap.offset, tap.row, *tap.columns, *map(int, tap.valid)) for tap in taps]
        feeds, source, bounds = 1 + made.halves, made.source, made.bounds
        command = ResidualCommand(
            steps=sum(steps_of_blocks(made)),
            block_steps=MOST_STEPS,
            feeds=feeds,
            n_tiles=made.column_tiles,
            columns=made.columns,
            base=source.base,
            across=source.across,
            down=source.down,
            group_step=made.group_step,
            height=bounds.height,
            width=bounds.width,
            stride_y=bounds.stride_y,
            stride_x=bounds.stride_x,
            residual_base=made.residual.base,
            residual_pitch=feeds * made.residual.across,
            residual_granules=self._config.columns // 16,
        )
        shape = self._config.shape
        timing = ReadTiming(
            banks=shape.banks,
            words=shape.words,
            ahead=READS_AHEAD,
            response_cycles=RESPONSE_CYCLES,
            result_cycles=MatrixArray.latency(self._config.matrix) + Fifo.DEEP_LATENCY,
            results=RESULTS,
            lead=RESIDUAL_LEAD,
        )
        found = residual_waits(command, np.array(rows, np.int64), timing)
        return max(0, int(found[0])), max(0, int(found[1]))

    def _begins_outside(self, made: MatrixCommand) -> bool:
        """Tell whether the first word of each feed has no granule in the image."""
        tap, bounds = self._program.taps[made.first_tap], made.bounds
        for pixel in range(1 + made.halves):
            y, x = divmod(pixel, made.columns)
            columns = [
                x * bounds.stride_x + column
                for column, valid in zip(tap.columns, tap.valid, strict=True)
                if valid
            ]
            if 0 <= y * bounds.stride_y + tap.row < bounds.height and any(
                0 <= column < bounds.width for column in columns
            ):
                return False
        return True

    def _tap_rows(self, rows: int) -> int:
        """Return when the last tap row of the next command is in the feeds' tables."""
        last = self._last_tap + TAPS_PAUSE + rows
        level = rows
        for count, freed in reversed(self._taps):
            level += count
            if level > TABLE_ENTRIES:
                # Rows without a place follow when that command frees its own.
                last = max(last, freed + level - TABLE_ENTRIES)
                break
        self._last_tap = last
        self._taps.append((rows, last))
        return last


def _packet_timing(config: NetworkConfig) -> PacketTiming:
    matrix = config.matrix
    return PacketTiming(
        lines=matrix.lines,
        burst_words=MAX_BURST_BEATS,
        fifo_words=ReadDMA.FIFO_BEATS,
        # The aligner's two words, and the port's queue.
        behind_words=2 + Skid.CAPACITY,
        entry_cycles=2 + WEIGHTS_CYCLES,
        address_cycles=Skid.LATENCY,
        data_cycles=ReadDMA.DATA_LATENCY + Skid.LATENCY,
        weight_beats=matrix.weight_beats,
        parameter_beats=PARAMETER_BEATS,
        parameters_wait=MatrixArray.least_sweep(matrix, parameters=True) - PARAMETER_BEATS,
    )
