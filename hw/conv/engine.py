"""The convolution engine, as the generator sees it."""

from dataclasses import replace

from hw.board import Board
from hw.board.resources import Resources
from hw.conv.config import ConvConfig
from hw.conv.driver.workload import ConvWorkload
from hw.conv.kernel.arguments import argument_table
from hw.conv.kernel.body import ConvBody
from hw.conv.model.predict import predict
from hw.conv.movers.movers import side_port
from hw.conv.regions import regions
from hw.conv.resources import estimate
from hw.engine import Engine
from hw.lib.arguments import ArgumentTable
from hw.lib.place import Placer

#: Shapes tried for a board, largest first; the first that fits is the default.
_DEFAULTS = (
    ConvConfig(),
    ConvConfig(
        lanes=32,
        taps=1,
        inputs=32,
        outputs=32,
        block_words=1024,
        bypass_words=512,
        bank_words=4096,
        tap_words=512,
    ),
    ConvConfig(
        lanes=16,
        ports=1,
        taps=1,
        strip=False,
        mask=False,
        gather_words=0,
        memory="block",
        bank_words=1024,
        inputs=16,
        outputs=16,
        offset_entries=512,
        tap_words=256,
        block_pixels=64,
        block_words=1024,
        bypass_words=256,
    ),
)


class ConvEngine(Engine[ConvConfig, ConvWorkload]):
    """Plain and deformable convolution, int8; see `hw.conv`."""

    name = "conv"
    summary = "plain and deformable convolution, int8, any sampling pattern at a fixed rate"
    config_type = ConvConfig
    workload_type = ConvWorkload
    data_cells = ("conv_lane_cell", "conv_point_cell")

    def default_config(self, board: Board) -> ConvConfig:
        """Return the largest of three shapes that leaves a fifth of the board free.

        At most a quarter of the memory's channels have ports of maps.
        """
        most = max(1, board.memory.channels // 4)
        shapes = (replace(shape, ports=min(shape.ports, most)) for shape in _DEFAULTS)
        return self.first_fit(shapes, board)

    def arguments(self, config: ConvConfig, board: Board) -> ArgumentTable:
        """See `hw.conv.kernel.arguments.argument_table`."""
        return argument_table(config)

    def body(self, config: ConvConfig, board: Board, placer: Placer) -> ConvBody:
        """Make a `ConvBody`."""
        return ConvBody(config, placer, data_width=config.port_width(board.memory.port_data_width))

    def resources(self, config: ConvConfig, board: Board) -> Resources:
        """See `hw.conv.resources.estimate`."""
        return estimate(config, config.port_width(board.memory.port_data_width))

    def placement(self, config: ConvConfig, board: Board) -> dict[str, int]:
        """Assign each port a channel of its own, while there are free channels."""
        return {f"gmem{n}": n % board.memory.channels for n in range(side_port(config) + 1)}

    regions = staticmethod(regions)
    predict = staticmethod(predict)
