"""Cycles of a command on a scratchpad that never waits for another user."""

from __future__ import annotations

from hw.network.commands import VectorCommand, VectorKind
from hw.network.scratchpad.reader import GranuleReader
from hw.network.tables.table_copy import COPY_CYCLES
from hw.network.vector.config import VectorConfig
from hw.network.vector.fields import PASSES, Loops, loops_of
from hw.network.vector.lanes import (
    ADD_RESULT_AT,
    SCALED_RESULT_AT,
    WINDOW_RESULT_AT,
)
from hw.network.vector.normalizer import Normalizer
from hw.network.vector.softmax import DRAIN_CYCLES, QUOTIENT_CYCLES, RESULT_AT, WORD_CYCLES
from hw.network.vector.wide_lanes import NORM_RESULT_AT, SUM_RESULT_AT

#: Cycles from a command to its first step, with the scratchpad's latency, and from a result to the end.
_FIRST_STEP = 8 + GranuleReader.LATENCY
_END = 4
#: Cycles from a pixel's statistics to the end.
_STATISTICS_END = 0
#: Cycles from a command to the copy of a table.
_COPY_BEGINS = 4
_RESULTS_AT = {
    VectorKind.MAX: WINDOW_RESULT_AT,
    VectorKind.MEAN: SCALED_RESULT_AT,
    VectorKind.ADD: ADD_RESULT_AT,
    VectorKind.MULTIPLY: SCALED_RESULT_AT,
    VectorKind.TABLE: WINDOW_RESULT_AT,
    VectorKind.SOFTMAX: WORD_CYCLES + RESULT_AT + 1,
    VectorKind.NORM: NORM_RESULT_AT,
    VectorKind.ADD16: SUM_RESULT_AT,
    VectorKind.MEAN16: SUM_RESULT_AT,
}


def cycles(config: VectorConfig, command: VectorCommand, *, table_held: bool = False) -> int:
    """Return the cycles from a command's acceptance to its end.

    ``table_held``: whether the lanes have the command's table.
    """
    loops = loops_of(config, command)
    first = _FIRST_STEP
    if command.kind is VectorKind.TABLE and not table_held:
        first = max(first, _COPY_BEGINS + COPY_CYCLES)
    if command.kind is VectorKind.STATS:
        return first + loops.reads + Normalizer.latency(config) + _STATISTICS_END
    return first + _steps(command.kind, loops) + _RESULTS_AT[command.kind] + _END


def _steps(kind: VectorKind, loops: Loops) -> int:
    """Return the cycles from a command's first step to its last one, both included."""
    if kind is not VectorKind.SOFTMAX:
        return loops.reads
    # From a pass's last word to the next pass's first one.
    pause = DRAIN_CYCLES + 2
    row = PASSES * (loops.inner * WORD_CYCLES + pause) + QUOTIENT_CYCLES
    return loops.rows * loops.outer * row - pause - WORD_CYCLES + 1
