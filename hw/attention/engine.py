"""The attention engine, for the generator."""

from dataclasses import replace

from hw.attention.config import MOST_DECODE_STREAMS, AttentionConfig
from hw.attention.driver.workload import AttentionWorkload
from hw.attention.kernel.arguments import argument_table
from hw.attention.kernel.body import AttentionBody
from hw.attention.model.predict import predict
from hw.attention.movers.ports import TABLE_PORT
from hw.attention.regions import regions
from hw.attention.resources import estimate
from hw.board import Board
from hw.board.resources import Resources
from hw.engine import Engine
from hw.lib.arguments import ArgumentTable
from hw.lib.place import Placer

#: Rows tried for a board, largest first; the first that fits is the default.
_DEFAULT_ROWS = (32, 24, 16, 12, 8, 6, 4, 2, 1)
#: With enough channels two streams: as many multipliers in half the rows, so passes have half the queries and
#: half the length.  Hence ports of queries and results, and merges, are wider.  A tile has T keys in each
#: stream, 64 in all.
_TWO_STREAMS = AttentionConfig(streams=2, tile_keys=32, merge_lanes=4, query_ports=2, result_ports=4)
#: Entries of the caches tried: 16,384 keys of 64 elements in UltraRAM, else those of some block RAMs.
_ULTRA_KEYS, _BLOCK_KEYS = 16384, 1024


class AttentionEngine(Engine[AttentionConfig, AttentionWorkload]):
    """Fused softmax attention, int8 in; see `hw.attention`."""

    name = "attention"
    summary = "fused softmax attention, int8 in, in one pass over keys and values"
    config_type = AttentionConfig
    workload_type = AttentionWorkload
    data_cells = ("attention_rows", "attention_results")
    modelled = True

    def default_config(self, board: Board) -> AttentionConfig:
        """Return the largest engine of 64 lanes that leaves a fifth of the board free.

        It has up to 32 rows times streams, and caches if they fit.  With enough channels there are two
        streams, with ports for a key and a value a cycle, two ports of queries and four of results.
        Otherwise one stream shares the channel. Jobs may decode with a channel for a key and one for a value
        of 16 streams.
        """
        channels = board.memory.channels
        config = _TWO_STREAMS if channels > 1 else AttentionConfig(ports_per_stream=1)
        slices = max(1, config.part_bits // board.memory.port_data_width) if channels > 1 else 1
        cached = (_ULTRA_KEYS if board.user.uram else _BLOCK_KEYS) // config.streams
        decode = channels >= 2 * MOST_DECODE_STREAMS
        config = replace(config, decode=decode, ports_per_stream=slices, cached_keys=cached)
        rows = (max(1, rows // config.streams) for rows in _DEFAULT_ROWS)
        return self.first_fit((replace(config, rows=count) for count in rows), board)

    def arguments(self, config: AttentionConfig, board: Board) -> ArgumentTable:
        """See `hw.attention.kernel.arguments.argument_table`."""
        return argument_table(config)

    def body(self, config: AttentionConfig, board: Board, placer: Placer) -> AttentionBody:
        """Make an `AttentionBody`."""
        return AttentionBody(config, placer, data_width=config.port_width(board.memory.port_data_width))

    def resources(self, config: AttentionConfig, board: Board) -> Resources:
        """See `hw.attention.resources.estimate`."""
        return estimate(config, config.port_width(board.memory.port_data_width))

    def placement(self, config: AttentionConfig, board: Board) -> dict[str, int]:
        """Assign each port a channel of its own, while there are any."""
        ports = self.arguments(config, board).ports
        return {port: int(port.removeprefix("gmem")) % board.memory.channels for port in ports}

    def data_ports(self, config: AttentionConfig, board: Board) -> tuple[str, ...]:
        """Return all ports but the one of tables."""
        return tuple(port for port in self.arguments(config, board).ports if port != f"gmem{TABLE_PORT}")

    regions = staticmethod(regions)
    predict = staticmethod(predict)
