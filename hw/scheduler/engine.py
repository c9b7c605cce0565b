"""The scheduler engine's implementation of `hw.engine.Engine`."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from hw.board import Board
from hw.board.resources import RamWords, Resources
from hw.engine import Engine
from hw.errors import InputError
from hw.lib.arguments import ArgumentTable
from hw.lib.place import Placer
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.driver.workload import SchedulerWorkload
from hw.scheduler.kernel.arguments import argument_table
from hw.scheduler.kernel.body import SchedulerBody
from hw.scheduler.predict import predict
from hw.scheduler.program.image import DRAM_BITS, WORDS_BITS
from hw.scheduler.resources import estimate, ram_words

#: Scratchpads tried for the default configuration, down to the least useful: 2 MiB to 16 KiB.
_SCRATCHPAD_BYTES = tuple(1 << bits for bits in range(21, 13, -1))
#: For devices with little RAM or logic: short programs, and one core.
_SMALL: dict[str, Any] = {"max_steps": 256, "max_operands": 512, "max_transfers": 512, "banks": 4, "cores": 1}


class SchedulerEngine(Engine[SchedulerConfig, SchedulerWorkload]):
    """A static schedule of operators, transfers and a scratchpad; see `hw.scheduler`."""

    name = "scheduler"
    summary = "static schedule of operators over one scratchpad, loaded as a program"
    config_type = SchedulerConfig
    workload_type = SchedulerWorkload

    def default_config(self, board: Board) -> SchedulerConfig:
        """Return a shape with 2 MiB of scratchpad or, on a small board, half of its RAM.

        It leaves a fifth of the board's logic free.  A board with too little for two cores gets one, with
        short programs.
        """
        half = replace(board.user, uram=board.user.uram // 2, bram36=board.user.bram36 // 2)
        shapes = list(_shapes(board))
        fitting = [shape for shape in shapes if estimate(shape).first_over(half) is None]
        return self.first_fit(fitting or shapes[-1:], board)

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

    def ram_words(self, config: SchedulerConfig, board: Board) -> RamWords:
        """See `hw.scheduler.resources.ram_words`."""
        return ram_words(config)

    def placement(self, config: SchedulerConfig, board: Board) -> dict[str, int]:
        """Connect the one port to the first channel."""
        return {"gmem0": 0}

    predict = staticmethod(predict)


def _shapes(board: Board) -> Iterator[SchedulerConfig]:
    """Yield the shapes tried, largest first; the memory's port limits bytes of transfers."""
    word = board.memory.port_data_width // 8
    default = SchedulerConfig()
    limits = {
        "word_bytes": word,
        "max_operator_bytes": min(default.max_operator_bytes, word * (2**WORDS_BITS - 1)),
        "max_region_bytes": min(default.max_region_bytes, word << DRAM_BITS),
    }
    memories: tuple[Literal["ultra", "block"], ...] = ("ultra", "block") if board.user.uram else ("block",)
    for options, memory, size in itertools.product(({}, _SMALL), memories, _SCRATCHPAD_BYTES):
        yield SchedulerConfig(**{**limits, **options, "memory": memory, "scratchpad_bytes": size})
