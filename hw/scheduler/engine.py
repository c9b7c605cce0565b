"""The scheduler engine, as the generator sees it."""

from __future__ import annotations

from hw.board import Board
from hw.board.resources import Resources
from hw.engine import Engine
from hw.errors import InputError
from hw.lib.arguments import ArgumentTable
from hw.lib.place import Placer
from hw.prediction import Prediction
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.default_plan import default_plan
from hw.scheduler.kernel.arguments import argument_table
from hw.scheduler.kernel.body import SchedulerBody
from hw.scheduler.predict import SchedulerWorkload, predict
from hw.scheduler.program.lower import configure
from hw.scheduler.resources import estimate


class SchedulerEngine(Engine[SchedulerConfig, SchedulerWorkload]):
    """A static schedule of operators, transfers and a scratchpad; see `hw.scheduler`."""

    name = "scheduler"
    summary = "static schedule of operators over one scratchpad, from a plan"
    config_type = SchedulerConfig
    workload_type = SchedulerWorkload

    def default_config(self, board: Board) -> SchedulerConfig:
        """Lower the plan of `hw.scheduler.default_plan`, a transformer's layer, for the board."""
        return configure(default_plan(board.memory.port_data_width // 8), board)

    def arguments(self, config: SchedulerConfig, board: Board) -> ArgumentTable:
        """See `hw.scheduler.kernel.arguments.argument_table`."""
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

    def predict(self, workload: SchedulerWorkload, config: SchedulerConfig, board: Board) -> Prediction:
        """See `hw.scheduler.predict.predict`."""
        return predict(workload, config, board)
