"""Cycles of a matrix command whose weights and pixels never wait."""

from __future__ import annotations

from hw.lib.fifo import Fifo
from hw.network.commands import MatrixCommand
from hw.network.matrix.array import MatrixArray
from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.feed_command import MOST_STEPS
from hw.network.matrix.layouts import packet_beats
from hw.network.scratchpad.reader import GranuleReader
from hw.network.tables.table_copy import COPY_CYCLES

#: Cycles of a command beside its sweeps, at most: from the command to its first pixel, through array and
#: drain, until the scratchpad holds the last result.
COMMAND_CYCLES = 68
#: Cycles until a command is taken.
TAKE_CYCLES = 1
#: From there until the drain may take a result: its queue, the table that the lanes have or a copy, places.
HELD_TABLE_CYCLES = Fifo.LATENCY + 1 + 3
NEW_TABLE_CYCLES = HELD_TABLE_CYCLES + COPY_CYCLES


def steps_of_blocks(command: MatrixCommand) -> list[int]:
    """Return the steps of each block: a pixel each, or two."""
    steps = -(-command.rows * command.columns // (2 if command.halves else 1))
    return [min(MOST_STEPS, steps - first) for first in range(0, steps, MOST_STEPS)]


def beats_of_pass(command: MatrixCommand, config: MatrixConfig) -> int:
    """Return the beats of a command's packets, each once: one block reads all of them."""
    plain, first = packet_beats(config, parameters=False), packet_beats(config, parameters=True)
    return command.column_tiles * ((command.taps - 1) * plain + first)


def table_wait(command: MatrixCommand, *, last_result: int, held: bool) -> int:
    """Return the cycles by which a command's last result waits for its table, of a command on its own.

    ``last_result``: cycles from the command, when it is taken, until the drain has its last result. ``held``:
    the lanes have the table.
    """
    if command.table < 0:
        return 0
    results = sum(steps_of_blocks(command)) * command.column_tiles
    ready = HELD_TABLE_CYCLES if held else NEW_TABLE_CYCLES
    if command.residual is not None:
        ready += GranuleReader.LATENCY
    return max(0, ready + results - 1 - last_result)


def sweep_cycles(command: MatrixCommand, config: MatrixConfig) -> int:
    """Return the cycles from a command's first step to its last.

    A sweep of few pixels takes as long as the next tile's packet needs.
    """
    plain, renewed = (_least_sweep(config, parameters=parameters) for parameters in (False, True))
    total = 0
    for steps in steps_of_blocks(command):
        tiles = (command.taps - 1) * max(steps, plain) + max(steps, renewed)
        total += command.column_tiles * tiles
    # Nothing waits for a packet behind the last sweep.
    return total - max(0, renewed - steps_of_blocks(command)[-1])


def _least_sweep(config: MatrixConfig, *, parameters: bool) -> int:
    """Return the fewest cycles from tile to tile; ``parameters``: the second's packet has parameters."""
    # One beat waits before the array when the tile is adopted.
    words = config.lines * packet_beats(config, parameters=parameters)
    return max(MatrixArray.least_sweep(config, parameters=parameters), words, words - config.lines + 2)
