"""Records of a program image: their tables, and the layouts of their rows.

A record has `RECORD_BYTES` bytes.  Its lowest `TABLE_BITS` bits are a `TableNumber`, the others a row of that
table, little-endian, as wide as the kernel's shape needs.
"""

from __future__ import annotations

import enum

from amaranth.hdl import Shape, unsigned
from amaranth.lib import data
from amaranth.utils import bits_for

from hw.network.attention.layouts import AttentionFields
from hw.network.commands import Core
from hw.network.config import WORD_BYTES, NetworkConfig
from hw.network.matrix.drain_command import DrainCommand
from hw.network.matrix.feed_command import TABLE_ENTRIES, FeedCommand, TileEntry
from hw.network.matrix.unit import UnitWeights
from hw.network.matrix.word_gate import FollowFields
from hw.network.tables.layouts import TABLE_WORDS
from hw.network.vector.layouts import EXPONENTIAL_BITS, ChannelRow, ScaleRow, TapRow, VectorFields

RECORD_BYTES = 64
RECORD_BITS = 8 * RECORD_BYTES
TABLE_BITS = 4
#: Bits of a row of a table.
ROW_BITS = RECORD_BITS - TABLE_BITS
#: Rows of a RAM in a record, bits of each, and bits of the first one's number.
SLOTS, SLOT_BITS, INDEX_BITS = 8, 61, 16
#: Bits of a gather's count of rows, and of a row's number.
GATHER_BITS, GATHER_ROW_BITS = 13, 26
#: Fields of the second feed's command that differ from the first one's.
SECOND_FEED = ("start", "x_start", "blanks")
#: Fields of a vector command that are records of their own: numbers that follow its loops.
VECTOR_WALKS = ("first", "second", "target", "column")


class TableNumber(enum.IntEnum):
    """The table of a record.  From `FIRST_RAM` on they are RAMs, and a record has several of their rows."""

    HEADER = 0
    STEPS = 1
    READS = 2
    WRITES = 3
    #: ``FEED``, ``DRAIN``: a matrix command.
    FEED = 4
    DRAIN = 5
    WEIGHTS = 6  #: Packets and tap rows of a matrix command, which run ahead of it.
    #: ``WALKS``, ``LOOPS``: a vector command.
    WALKS = 7
    LOOPS = 8
    ATTENTION = 9
    CHANNELS = 10  #: Factors of LayerNorms, a row for each lane.
    TAPS = 11  #: Of the matrix unit.
    VECTOR_TAPS = 12
    SCALES = 13
    TABLES = 14  #: Of 256 bytes, for both units.
    EXPONENTIALS = 15


#: The first of the tables that are RAMs.
FIRST_RAM = TableNumber.CHANNELS
#: The RAMs that take all rows of a record in one cycle; such a record begins at a multiple of `SLOTS`.
BLOCK_RAMS = (TableNumber.CHANNELS, TableNumber.TABLES)

#: Rows of a table of 256 bytes, and of one of exponentials.
TABLE_ROWS, EXPONENTIAL_ROWS = TABLE_WORDS, 256

#: Limits of a kernel that shape its images, and their bits in the header.
SHAPE_BITS = {
    "scratchpad_bytes": 32,
    "columns": 16,
    "weight_ports": 8,
    "port_bytes": 8,
    "lanes": 8,
    "max_steps": 16,
    "max_transfers": 16,
    "max_region_bytes": 40,
    "max_taps": 20,
    "vector_taps": 16,
    "scales": 16,
    "tables": 16,
    "exponentials": 16,
    "pixels": 16,
    "channels": 16,
    "attention_rows": 8,
    "attention_tokens": 16,
}
HEADER = data.StructLayout(
    {"magic": 32, "version": 12, "records": 32, "opening": 32, "weights_digest": 64, **SHAPE_BITS}
)
#: Rows of a RAM: ``count`` from row ``first`` on.
SLOTS_LAYOUT = data.StructLayout(
    {"first": INDEX_BITS, "count": range(SLOTS + 1), "slots": data.ArrayLayout(SLOT_BITS, SLOTS)}
)


def count_bits(config: NetworkConfig) -> int:
    """Return the bits of a count of commands."""
    return bits_for(config.max_steps)


def transfer_bits(config: NetworkConfig) -> int:
    """Return the bits of a count of transfers."""
    return bits_for(config.max_transfers)


def step_layout(config: NetworkConfig) -> data.StructLayout:
    """Return a step: its core, and in ``wait`` the counts that it needs and its word gate."""
    finished = data.ArrayLayout(count_bits(config), len(Core))
    needs = {"finished": finished, "writes": transfer_bits(config), "reads": transfer_bits(config)}
    item = data.StructLayout({"follow": FollowFields()})
    wait = data.StructLayout({"needs": data.StructLayout(needs), "item": item})
    return data.StructLayout({"core": range(len(Core)), "wait": wait})


def transfer_layout(config: NetworkConfig) -> data.StructLayout:
    """Return a transfer of whole words: the counts that it needs, of commands and of the other direction."""
    finished = data.ArrayLayout(count_bits(config), len(Core))
    item = {
        "dram": bits_for(config.max_region_bytes // WORD_BYTES - 1),
        "address": config.shape.address_bits,
        "words": bits_for(config.shape.words),
    }
    needs = data.StructLayout({"finished": finished, "others": transfer_bits(config)})
    return data.StructLayout({"needs": needs, "item": data.StructLayout(item)})


def read_layout(config: NetworkConfig) -> data.StructLayout:
    """Return a transfer to the scratchpad; one with ``some`` gathers ``rows`` of ``words`` each.

    ``dram``: of the numbers then. ``table``, ``last``: the table's first word, and its last row.
    """
    whole = transfer_layout(config)
    item = whole["item"].shape.members
    gather = {"some": 1, "rows": GATHER_BITS, "table": item["dram"], "last": GATHER_ROW_BITS}
    item = {**item, "gather": data.StructLayout(gather)}
    return data.StructLayout({"needs": whole["needs"].shape, "item": data.StructLayout(item)})


def feed_layout(config: NetworkConfig) -> data.StructLayout:
    """Return the feeds' part of a matrix command."""
    feed = FeedCommand(config.shape)
    second = data.StructLayout({name: feed.members[name] for name in SECOND_FEED})
    return data.StructLayout({"first": feed, "second": second, "two": 1})


def drain_layout(config: NetworkConfig) -> data.StructLayout:
    """Return the drain's part of a matrix command; ``table`` is read if its results pass one."""
    return data.StructLayout({"drain": DrainCommand(config.shape), "table": range(config.tables)})


def tap_run_layout(config: NetworkConfig) -> data.StructLayout:
    """Return the tap rows of a matrix command; ``two``: for both feeds."""
    return data.StructLayout({"first": range(config.max_taps), "count": range(TABLE_ENTRIES + 1), "two": 1})


def weights_layout(config: NetworkConfig) -> data.StructLayout:
    """Return the packets and the tap rows of a matrix command."""
    return data.StructLayout({"weights": UnitWeights(), "taps": tap_run_layout(config)})


def vector_layout(config: NetworkConfig, *, walks: bool) -> data.StructLayout:
    """Return a part of a vector command: its numbers that follow loops, or its other fields."""
    fields = VectorFields(config.vector).members
    return data.StructLayout({name: fields[name] for name in fields if (name in VECTOR_WALKS) == walks})


def attention_layout(config: NetworkConfig) -> data.StructLayout:
    """Return a command of attention."""
    return AttentionFields(config.attention) if config.attention_rows else data.StructLayout({"none": 1})


def ram_layout(number: TableNumber, config: NetworkConfig) -> data.StructLayout:
    """Return a row of a RAM."""
    rows = {
        TableNumber.CHANNELS: ChannelRow(),
        TableNumber.TAPS: TileEntry(config.shape),
        TableNumber.VECTOR_TAPS: TapRow(config.vector),
        TableNumber.SCALES: ScaleRow(),
        TableNumber.TABLES: unsigned(32),
        TableNumber.EXPONENTIALS: unsigned(EXPONENTIAL_BITS),
    }
    layout = rows[number]
    assert Shape.cast(layout).width <= SLOT_BITS
    return data.StructLayout({"row": layout})


def row_layout(number: TableNumber, config: NetworkConfig) -> data.StructLayout:
    """Return the row of a record."""
    if number >= FIRST_RAM:
        return SLOTS_LAYOUT
    layout = {
        TableNumber.HEADER: HEADER,
        TableNumber.STEPS: step_layout(config),
        TableNumber.READS: read_layout(config),
        TableNumber.WRITES: transfer_layout(config),
        TableNumber.FEED: feed_layout(config),
        TableNumber.DRAIN: drain_layout(config),
        TableNumber.WEIGHTS: weights_layout(config),
        TableNumber.WALKS: vector_layout(config, walks=True),
        TableNumber.LOOPS: vector_layout(config, walks=False),
        TableNumber.ATTENTION: attention_layout(config),
    }[number]
    assert layout.size <= ROW_BITS
    return layout
