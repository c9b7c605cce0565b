"""The attention engine, for the generator."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

from hw.attention.config import MOST_DECODE_STREAMS, AttentionConfig
from hw.attention.driver.workload import AttentionWorkload
from hw.attention.kernel.arguments import argument_table
from hw.attention.kernel.body import AttentionBody
from hw.attention.model.predict import predict
from hw.attention.movers.ports import TABLE_PORT
from hw.attention.regions import regions
from hw.attention.resources import estimate, ram_words
from hw.board import Board
from hw.board.resources import RamWords, Resources
from hw.engine import Engine
from hw.lib.arguments import ArgumentTable
from hw.lib.place import Placer

#: Rows times streams tried for a board, largest first; the first that fits is the default.
_DEFAULT_ROWS = (32, 24, 16, 12, 8, 6, 4, 2, 1)
#: With enough channels two streams: as many multipliers in half the rows, so passes have half the queries and
#: half the length.  Hence ports of queries and results, and merges, are wider.  A tile has T keys in each
#: stream, 64 in all.
_TWO_STREAMS = AttentionConfig(streams=2, tile_keys=32, merge_lanes=4, query_ports=2, result_ports=4)
_ONE_STREAM = AttentionConfig(ports_per_stream=1)
#: Shapes for devices without room for a row of 64 lanes: heads of up to 128 and of up to 64 elements.
_NARROW = tuple(replace(_ONE_STREAM, lanes=lanes, folds=4) for lanes in (32, 16))
#: Entries of the caches tried for each number of rows, in all streams: keys in UltraRAM, in block RAM, none.
_CACHED_KEYS = (16384, 8192, 4096, 1024, 512, 256, 0)


class AttentionEngine(Engine[AttentionConfig, AttentionWorkload]):
    """Fused softmax attention, int8 in; see `hw.attention`."""

    name = "attention"
    summary = "fused softmax attention, int8 in, in one pass over keys and values"
    config_type = AttentionConfig
    workload_type = AttentionWorkload
    data_cells = ("attention_rows", "attention_results")
    modelled = True

    def default_config(self, board: Board) -> AttentionConfig:
        """Return the largest engine that leaves a fifth of the board free, of 64 lanes if one does.

        It has up to 32 rows times streams, and the largest caches that fit beside them.  With enough channels
        there are two streams, with ports for a key and a value a cycle, two ports of queries and four of
        results. Otherwise one stream shares the channel. Jobs may decode with a channel for a key and one for
        a value of 16 streams.
        """
        return self.first_fit(_shapes(board), board)

    def arguments(self, config: AttentionConfig, board: Board) -> ArgumentTable:
        """See `hw.attention.kernel.arguments.argument_table`."""
        return argument_table(config)

    def body(self, config: AttentionConfig, board: Board, placer: Placer) -> AttentionBody:
        """Make an `AttentionBody`."""
        return AttentionBody(config, placer, data_width=config.port_width(board.memory.port_data_width))

    def resources(self, config: AttentionConfig, board: Board) -> Resources:
        """See `hw.attention.resources.estimate`."""
        return estimate(config, config.port_width(board.memory.port_data_width))

    def ram_words(self, config: AttentionConfig, board: Board) -> RamWords:
        """See `hw.attention.resources.ram_words`."""
        return ram_words(config, config.port_width(board.memory.port_data_width))

    def placement(self, config: AttentionConfig, board: Board) -> dict[str, int]:
        """Assign each port a channel of its own, while there are any."""
        ports = self.arguments(config, board).ports
        return {port: int(port.removeprefix("gmem")) % board.memory.channels for port in ports}

    def data_ports(self, config: AttentionConfig, board: Board) -> tuple[str, ...]:
        """Return all ports but the one of tables."""
        return tuple(port for port in self.arguments(config, board).ports if port != f"gmem{TABLE_PORT}")

    regions = staticmethod(regions)
    predict = staticmethod(predict)


def _shapes(board: Board) -> Iterator[AttentionConfig]:
    """Yield the shapes tried, largest first: all rows of a width, then those of fewer lanes."""
    channels = board.memory.channels
    wide = [_ONE_STREAM]
    if channels > 1:
        slices = max(1, _TWO_STREAMS.part_bits // board.memory.port_data_width)
        decode = channels >= 2 * MOST_DECODE_STREAMS
        wide.insert(0, replace(_TWO_STREAMS, decode=decode, ports_per_stream=slices))
    for shapes in (wide, *([shape] for shape in _NARROW)):
        for rows, shape, keys in itertools.product(_DEFAULT_ROWS, shapes, _CACHED_KEYS):
            yield replace(shape, rows=max(1, rows // shape.streams), cached_keys=keys // shape.streams)
