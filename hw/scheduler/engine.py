"""The scheduler engine's implementation of `hw.engine.Engine`."""

from dataclasses import replace

from hw.board import Board
from hw.board.resources import Resources
from hw.engine import Engine
from hw.errors import InputError
from hw.lib.arguments import ArgumentTable
from hw.lib.place import Placer
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.driver.workload import SchedulerWorkload
from hw.scheduler.kernel.arguments import argument_table
from hw.scheduler.kernel.body import SchedulerBody
from hw.scheduler.predict import predict
from hw.scheduler.resources import estimate

#: Scratchpad of the default configuration, on devices with at least twice as much RAM of its kind.
_SCRATCHPAD_BYTES = 2 << 20


class SchedulerEngine(Engine[SchedulerConfig, SchedulerWorkload]):
    """A static schedule of operators, transfers and a scratchpad; see `hw.scheduler`."""

    name = "scheduler"
    summary = "static schedule of operators over one scratchpad, loaded as a program"
    config_type = SchedulerConfig
    workload_type = SchedulerWorkload

    def default_config(self, board: Board) -> SchedulerConfig:
        """Return a shape with 2 MiB of scratchpad or, on a small board, half of its RAM."""
        config = SchedulerConfig(
            scratchpad_bytes=_SCRATCHPAD_BYTES,
            word_bytes=board.memory.port_data_width // 8,
            memory="ultra" if board.user.uram else "block",
        )
        half = replace(board.user, uram=board.user.uram // 2, bram36=board.user.bram36 // 2)
        while estimate(config).first_over(half) in ("uram", "bram36"):
            config = replace(config, scratchpad_bytes=config.scratchpad_bytes // 2)
        return config

    def arguments(self, config: SchedulerConfig, board: Board) -> ArgumentTable:
        """See `hw.scheduler.kernel.arguments.argument_table`."""
        return argument_table(config)

    def body(self, config: SchedulerConfig, board: Board, placer: Placer) -> SchedulerBody:
        """Make a `SchedulerBody`; raise `InputError` when words are not as wide as the memory port."""
        width = board.memory.port_data_width
        if config.word_bits != width:
            legal = f"{width // 8}, the port of {board.name}'s memory"
            raise InputError("word_bytes", config.word_bytes, legal)
        return SchedulerBody(config, placer)

    def resources(self, config: SchedulerConfig, board: Board) -> Resources:
        """See `hw.scheduler.resources.estimate`."""
        return estimate(config)

    def placement(self, config: SchedulerConfig, board: Board) -> dict[str, int]:
        """Connect the one port to the first channel."""
        return {"gmem0": 0}

    predict = staticmethod(predict)
