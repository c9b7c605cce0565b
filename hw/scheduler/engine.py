"""The scheduler engine, as the generator sees it."""

from __future__ import annotations

from hw.board import Board
from hw.engine import Engine
from hw.errors import InputError
from hw.lib.arguments import ArgumentTable
from hw.lib.place import Placer
from hw.resources import Resources
from hw.scheduler.arguments import argument_table
from hw.scheduler.body import SchedulerBody
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.example import example_program
from hw.scheduler.resources import estimate

#: Scratchpad of the default configuration, bytes.
_DEFAULT_BYTES = 64 * 1024


class SchedulerEngine(Engine[SchedulerConfig]):
    """A static schedule of operators, transfers and a scratchpad; see `hw.scheduler`."""

    name = "scheduler"
    summary = "static schedule of operators over one scratchpad, from a plan"
    config_type = SchedulerConfig

    def default_config(self, board: Board) -> SchedulerConfig:
        """Give the program of `hw.scheduler.example` on a small scratchpad, of UltraRAM if there is any."""
        word_bytes = board.memory.port_data_width // 8
        return SchedulerConfig(
            program=example_program(word_bytes),
            scratchpad_bytes=_DEFAULT_BYTES,
            word_bytes=word_bytes,
            memory="ultra" if board.user.uram else "block",
        )

    def arguments(self, config: SchedulerConfig, board: Board) -> ArgumentTable:
        """See `hw.scheduler.arguments.argument_table`."""
        return argument_table()

    def body(self, config: SchedulerConfig, board: Board, placer: Placer) -> SchedulerBody:
        """Make a `SchedulerBody`.

        Raises
        ------
        InputError
            When the words of the program are not as wide as the board's memory port.
        """
        width = board.memory.port_data_width
        if config.word_bits != width:
            raise InputError(
                "word_bytes", config.word_bytes, f"{width // 8}, the port of {board.name}'s memory"
            )
        return SchedulerBody(config, placer)

    def resources(self, config: SchedulerConfig, board: Board) -> Resources:
        """See `hw.scheduler.resources.estimate`."""
        return estimate(config)

    def placement(self, config: SchedulerConfig, board: Board) -> dict[str, int]:
        """Give the one port the first channel."""
        return {"gmem0": 0}
