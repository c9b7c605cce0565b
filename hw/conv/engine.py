"""The convolution engine, as the generator sees it."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from hw.board import Board
from hw.board.resources import RamWords, Resources
from hw.conv.config import ConvConfig
from hw.conv.driver.workload import ConvWorkload
from hw.conv.kernel.arguments import argument_table
from hw.conv.kernel.body import ConvBody
from hw.conv.model.predict import planned, predict
from hw.conv.movers.movers import side_port
from hw.conv.regions import regions
from hw.conv.resources import estimate, ram_words
from hw.engine import Engine
from hw.lib.arguments import ArgumentTable
from hw.lib.place import Placer

_LARGE = ConvConfig()
_MIDDLE = ConvConfig(
    lanes=32,
    taps=1,
    inputs=32,
    outputs=32,
    block_words=1024,
    bypass_words=512,
    bank_words=4096,
    tap_words=512,
)
_SMALL = ConvConfig(
    lanes=16,
    ports=1,
    taps=1,
    strip=False,
    mask=False,
    gather_words=0,
    memory="block",
    bank_words=4096,
    inputs=16,
    outputs=16,
    offset_entries=1024,
    tap_words=1024,
    block_pixels=64,
    block_words=2048,
    bypass_words=256,
)
#: As many products in the pointwise array, but one tap a cycle and fewer RAMs.
_LEAN = replace(_LARGE, taps=1, strip=False, mask=False, gather_words=0)
#: Shapes tried for a board, by multipliers, most first; the first that fits is the default.
_DEFAULTS = (
    _LARGE,
    _LEAN,
    replace(_LARGE, outputs=32),
    replace(_LEAN, outputs=32),
    replace(_LARGE, outputs=16),
    _MIDDLE,
    replace(_MIDDLE, outputs=16),
    replace(_MIDDLE, outputs=16, strip=False, mask=False),
    _SMALL,
    replace(_SMALL, outputs=8),
    replace(_SMALL, lanes=8, inputs=8, outputs=8, dot_words=0),
)
#: Fewest words of a bank of the line buffer, of each half of the buffers beside the pointwise array, and of
#: the buffer of the other map.
_LEAST_WORDS = {"bank_words": 1024, "block_words": 512, "bypass_words": 256}


class ConvEngine(Engine[ConvConfig, ConvWorkload]):
    """Plain and deformable convolution, int8; see `hw.conv`."""

    name = "conv"
    summary = "plain and deformable convolution, int8, any sampling pattern at a fixed rate"
    config_type = ConvConfig
    workload_type = ConvWorkload
    data_cells = ("conv_lane_cell", "conv_point_cell")

    def default_config(self, board: Board) -> ConvConfig:
        """Return the shape of most multipliers that leaves a fifth of the board free.

        Its buffers are the largest that fit, in UltraRAM or in block RAM.  At most a quarter of the memory's
        channels have ports of maps.
        """
        return self.first_fit(_shapes(board), board)

    def arguments(self, config: ConvConfig, board: Board) -> ArgumentTable:
        """See `hw.conv.kernel.arguments.argument_table`."""
        return argument_table(config)

    def body(self, config: ConvConfig, board: Board, placer: Placer) -> ConvBody:
        """Make a `ConvBody`."""
        return ConvBody(config, placer, data_width=config.port_width(board.memory.port_data_width))

    def resources(self, config: ConvConfig, board: Board) -> Resources:
        """See `hw.conv.resources.estimate`."""
        return estimate(config, config.port_width(board.memory.port_data_width))

    def ram_words(self, config: ConvConfig, board: Board) -> RamWords:
        """See `hw.conv.resources.ram_words`."""
        return ram_words(config, config.port_width(board.memory.port_data_width))

    def placement(self, config: ConvConfig, board: Board) -> dict[str, int]:
        """Assign each port a channel of its own, while there are free channels."""
        return {f"gmem{n}": n % board.memory.channels for n in range(side_port(config) + 1)}

    def check(self, workload: ConvWorkload, config: ConvConfig, board: Board) -> None:
        """Plan the jobs; see `hw.conv.model.predict.planned`."""
        planned(workload, config, board)

    regions = staticmethod(regions)
    predict = staticmethod(predict)


def _shapes(board: Board) -> Iterator[ConvConfig]:
    """Yield the shapes tried, each with its own kind of RAM first and with buffers halved up to three times.

    Halves are no smaller than `_LEAST_WORDS`.
    """
    most = max(1, board.memory.channels // 4)
    for shape in _DEFAULTS:
        other: Literal["ultra", "block"] = "block" if shape.memory == "ultra" else "ultra"
        for memory, halvings in itertools.product((shape.memory, other), range(4)):
            words = {
                name: max(min(least, getattr(shape, name)), getattr(shape, name) >> halvings)
                for name, least in _LEAST_WORDS.items()
            }
            yield replace(shape, ports=min(shape.ports, most), memory=memory, **words)
