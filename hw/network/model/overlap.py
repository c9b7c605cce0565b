"""When each command of a program whose commands overlap begins and ends.

Commands are taken in program order, in which each waits only for those before it.  The model has the cycle in
which each word is written and each command is finished.  A command's reads follow words, and its results
follow its reads, one a cycle.  Left out are conflicts at the scratchpad's banks, reads from memory that wait
for commands, and waits for weights, as sweeps of at least 20 pixels need fewer bytes than the ports bring.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.board import Board
from hw.network.attention.timing import cycles as attention_cycles
from hw.network.attention.timing import steps as attention_steps
from hw.network.commands import AttentionCommand, Core, Follow, MatrixCommand, VectorCommand, VectorKind
from hw.network.config import WORD_BYTES, NetworkConfig
from hw.network.matrix.timing import TAKE_CYCLES, steps_of_blocks, sweep_cycles
from hw.network.model.image import ImageSize, image_size
from hw.network.model.latency import (
    DRAINED_CYCLES,
    FIRST_WORD_CYCLES,
    OFFER_CYCLES,
    PIXEL_CYCLES,
    ROWS_CYCLES,
    drain_cycles,
)
from hw.network.model.memory import MemoryModel
from hw.network.model.timeline import load_cycles
from hw.network.program.program import NetworkProgram, Step
from hw.network.vector.fields import loops_of
from hw.network.vector.timing import cycles as vector_cycles

Cycles = NDArray[np.int64]

#: From a word's count to the first request that it lets go.
_GATE_CYCLES = 2
#: From a transfer's issue to its first word's count, measured on the U55C's memory.
_TRANSFER_CYCLES = 67


@dataclass(frozen=True, kw_only=True)
class Span:
    """A command's cycles from the launch's start on."""

    step: Step
    begin: int  #: Of its first read.
    end: int  #: Its last word is written.


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """The cycles of a launch."""

    load_cycles: int  #: From start until the opening of the program is loaded.
    read_cycles: int  #: From there to the first command.
    spans: tuple[Span, ...]
    drain_cycles: int  #: From the last command's end to done.
    image: ImageSize

    @property
    def cycles(self) -> int:
        """Cycles from start to done."""
        return max(each.end for each in self.spans) + self.drain_cycles


def overlap(
    program: NetworkProgram, config: NetworkConfig, board: Board, *, memory: MemoryModel | None = None
) -> Overlap:
    """Return the cycles of a launch of a program whose commands overlap."""
    return _Launch(program, config, memory or MemoryModel.of(board, config)).run()


class _Launch:
    def __init__(self, program: NetworkProgram, config: NetworkConfig, memory: MemoryModel) -> None:
        self._program, self._config = program, config
        self._loaded = load_cycles(program, config, memory)
        self._begin = self._loaded + ROWS_CYCLES
        self._words: list[list[Cycles]] = [[] for _ in Core]  # of each command: when its words are counted
        self._finished: list[list[int]] = [[self._begin] for _ in Core]
        self._free = [self._begin for _ in Core]  # when the next command's first read may be
        self._read_ends = [self._begin]
        self._pace = WORD_BYTES // config.port_bytes
        self._image = image_size(program, lanes=config.lanes)

    def run(self) -> Overlap:
        """Go through all commands."""
        self._reads()
        self._arrived = self._arrivals()
        spans = [self._span(*numbered) for numbered in enumerate(self._program.steps)]
        last = max(each.end for each in spans)
        return Overlap(
            load_cycles=self._loaded,
            read_cycles=min(each.begin for each in spans) - self._loaded,
            spans=tuple(spans),
            drain_cycles=self._writes(last) - last + DRAINED_CYCLES,
            image=self._image,
        )

    def _reads(self) -> None:
        """Find when each read is complete, as if none waited for a command."""
        end = self._begin + _TRANSFER_CYCLES
        for transfer in self._program.reads:
            # Numbers of rows come before the rows.
            end += self._pace * transfer.moved_words + _TRANSFER_CYCLES * (transfer.gathered is not None)
            self._read_ends.append(end)

    def _arrivals(self) -> list[int]:
        """Find when the records of each command are there: behind the opening and the first reads."""
        reads = (n for n, each in enumerate(self._program.reads) if any(each.starts) or each.others)
        cycle = self._read_ends[next(reads, len(self._program.reads))]
        found = [self._begin] * (1 + len(self._program.steps))
        opening = self._image.opening
        for step, rows in zip(self._image.steps[opening:], self._image.rows[opening:], strict=True):
            cycle += max(self._pace, 1 + rows)
            found[step] = cycle + ROWS_CYCLES
        return list(itertools.accumulate(found, max))

    def _writes(self, last: int) -> int:
        """Return when the last write is complete."""
        end = last
        for transfer in self._program.writes:
            ready = max(self._finished[core][count] for core, count in enumerate(transfer.starts))
            end = max(end, ready + _TRANSFER_CYCLES) + self._pace * transfer.words
        return end

    def _span(self, number: int, step: Step) -> Span:
        core, command = step.core, step.command
        start = max(
            self._free[core],
            self._arrived[number],
            self._read_ends[step.wait_reads],
            *(self._finished[each][count] + OFFER_CYCLES for each, count in enumerate(step.waits)),
        )
        if isinstance(command, MatrixCommand):
            begin, words, end = self._matrix(step, command, start)
        elif isinstance(command, VectorCommand):
            begin, words, end = self._vector(step, command, start)
        else:
            begin, words, end = self._attention(command, start)
        self._words[core].append(words)
        self._finished[core].append(max(end, self._finished[core][-1]))
        return Span(step=step, begin=begin, end=end)

    def _requests(self, follow: Follow | None, count: int, start: int) -> Cycles:
        """Return the cycles of a command's first ``count`` reads, one a cycle, as words let them go."""
        numbers = np.arange(count)
        ready = np.full(count, start)
        if follow is not None:
            tile, place = np.divmod(numbers, follow.per_tile)
            gated = tile < follow.tiles
            needed = follow.first + tile * follow.tile_step + place * follow.step
            written = np.concatenate(self._words[follow.core])
            ready[gated] = np.maximum(start, written[needed[gated]] + _GATE_CYCLES)
        return np.maximum.accumulate(ready - numbers) + numbers

    def _matrix(self, step: Step, command: MatrixCommand, start: int) -> tuple[int, Cycles, int]:
        config = self._config.matrix
        blocks = steps_of_blocks(command)
        first = command.taps * blocks[0]
        reads = self._requests(step.follow, first, start + TAKE_CYCLES)
        steps = reads + PIXEL_CYCLES
        total = sweep_cycles(command, config)
        self._free[Core.MATRIX] = int(reads[-1]) + total - first + 1
        # Steps of the last tap of each column tile have results.
        parts = []
        for number, count in enumerate(np.repeat(blocks, command.column_tiles).tolist()):
            if number == 0:
                parts.append(steps[first - count :])
            else:
                begin = int(parts[-1][-1]) + 1 + (command.taps - 1) * max(count, 20)
                parts.append(begin + np.arange(count))
        results = np.concatenate(parts) + drain_cycles(self._config)
        words = self._drained(np.repeat(results, command.bits // 8))
        return int(reads[0]), words, int(words[-1])

    def _drained(self, results: Cycles) -> Cycles:
        """Return when words are written, one a cycle, behind those of the command before."""
        before = self._words[Core.MATRIX]
        if before:
            results = np.maximum(results, int(before[-1][-1]) + 1)
        numbers = np.arange(len(results))
        return np.maximum.accumulate(results - numbers) + numbers

    def _vector(self, step: Step, command: VectorCommand, start: int) -> tuple[int, Cycles, int]:
        config = self._config.vector
        total, loops = vector_cycles(config, command), loops_of(config, command)
        count, words = loops.reads, loops.results
        reads = self._requests(step.follow, count, start + OFFER_CYCLES)
        end = int(reads[-1]) + total - count - OFFER_CYCLES
        self._free[Core.VECTOR] = end + 1
        if command.kind is VectorKind.STATS:
            return int(reads[0]), np.zeros(0, np.int64), end
        ends = np.linspace(count / words, count, words).round().astype(np.int64) - 1
        return int(reads[0]), reads[ends] + (end - int(reads[-1])), end

    def _attention(self, command: AttentionCommand, start: int) -> tuple[int, Cycles, int]:
        config = self._config.attention
        total, busy = attention_cycles(config, command), attention_steps(config, command)
        end = max(start + total, self._finished[Core.ATTENTION][-1] + busy)
        self._free[Core.ATTENTION] = end - total + busy
        # Results of each pass come at its end.
        passes = -(-command.queries // config.rows)
        rows = command.heads * command.queries
        turn = np.arange(rows) % command.queries // config.rows + np.arange(rows) // command.queries * passes
        ends = end - (command.heads * passes - 1 - turn) * busy // (command.heads * passes)
        words = np.repeat(ends, config.row_beats(command.head_dim))
        return start + FIRST_WORD_CYCLES, words, end
