"""The attention engine, as the generator sees it."""

from __future__ import annotations

from hw.attention.config import AttentionConfig
from hw.attention.kernel.arguments import argument_table
from hw.attention.kernel.body import AttentionBody
from hw.attention.movers import port_count
from hw.attention.resources import estimate
from hw.board import Board
from hw.engine import Engine
from hw.lib.arguments import ArgumentTable
from hw.lib.place import Placer
from hw.resources import Resources

#: Rows tried for a board, largest first; the first that fits is the default.
_DEFAULT_ROWS = (32, 24, 16, 12, 8, 6, 4, 2, 1)
#: Share of the user's region the default may take: routing fails long before it is full.
_FILL = 0.8


class AttentionEngine(Engine[AttentionConfig]):
    """Fused softmax attention, int8 in, int16 out; see `hw.attention`."""

    name = "attention"
    summary = "fused softmax attention, int8 to int16, in one pass over keys and values"
    config_type = AttentionConfig

    def default_config(self, board: Board) -> AttentionConfig:
        """Give 64 lanes, with ports for a key and a value a cycle if there are channels for them, and the
        most rows, up to 32, that leave a fifth of the board free.
        """
        slices = max(1, 8 * 64 // board.memory.port_data_width) if board.memory.channels > 1 else 1
        for rows in _DEFAULT_ROWS:
            config = AttentionConfig(rows=rows, head_dim=64, tile_keys=64, ports_per_stream=slices)
            need = self.resources(config, board)
            share = Resources(**{name: int(_FILL * count) for name, count in board.user.items()})
            if need.first_over(share) is None:
                break
        return config

    def arguments(self, config: AttentionConfig, board: Board) -> ArgumentTable:
        """See `hw.attention.kernel.arguments.argument_table`."""
        return argument_table(config)

    def body(self, config: AttentionConfig, board: Board, placer: Placer) -> AttentionBody:
        """Make an `AttentionBody` with ports as wide as the board's memory."""
        return AttentionBody(config, placer, data_width=board.memory.port_data_width)

    def resources(self, config: AttentionConfig, board: Board) -> Resources:
        """See `hw.attention.resources.estimate`."""
        return estimate(config, board.memory.port_data_width)

    def placement(self, config: AttentionConfig, board: Board) -> dict[str, int]:
        """Give each port a channel of its own, as far as there are any."""
        return {f"gmem{n}": n % board.memory.channels for n in range(port_count(config))}
