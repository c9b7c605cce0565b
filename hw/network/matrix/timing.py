"""Cycles of a matrix command whose weights and pixels never wait."""

from __future__ import annotations

from hw.network.commands import MatrixCommand
from hw.network.matrix.array import MatrixArray
from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.feed_command import MOST_STEPS

#: Cycles of a command beside its sweeps, at most: from the command to its first pixel, through array and
#: drain, until the scratchpad holds the last result.
COMMAND_CYCLES = 64


def steps_of_blocks(command: MatrixCommand) -> list[int]:
    """Return the steps of each block: a pixel each, or two."""
    steps = -(-command.rows * command.columns // (2 if command.halves else 1))
    return [min(MOST_STEPS, steps - first) for first in range(0, steps, MOST_STEPS)]


def sweep_cycles(command: MatrixCommand, config: MatrixConfig) -> int:
    """Return the cycles from a command's first step to its last.

    A sweep of few pixels takes as long as the next tile's packet needs.
    """
    plain = MatrixArray.least_sweep(config, parameters=False)
    renewed = MatrixArray.least_sweep(config, parameters=True)
    total = 0
    for steps in steps_of_blocks(command):
        tiles = (command.taps - 1) * max(steps, plain) + max(steps, renewed)
        total += command.column_tiles * tiles
    # Nothing waits for a packet behind the last sweep.
    return total - max(0, renewed - steps_of_blocks(command)[-1])
