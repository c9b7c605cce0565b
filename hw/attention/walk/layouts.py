"""Payload layouts of the streams between walk and movers: passes and tiles."""

from amaranth.hdl import signed
from amaranth.lib import data

from hw.attention.config import (
    CAP_BITS,
    KEY_BITS,
    MULTIPLIER_BITS,
    POSITION_BITS,
    SHIFT_BITS,
    UNIT_BITS,
    AttentionConfig,
)
from hw.attention.core.command import QueryCommand, TileCommand
from hw.attention.walk.job import ADDRESS_BITS, UNIT_ELEMENTS, size_shape
from hw.attention.walk.job_setup import (
    HEAD_BITS,
    bitmap_rows_shape,
    page_groups_shape,
    query_units_shape,
    result_units_shape,
    slot_shape,
    tile_shape,
)
from hw.lib.rows.command import RowsCommand


class Segments(data.StructLayout):
    """Rows of a pass in memory: pieces of equal length at equal distances."""

    def __init__(self, config: AttentionConfig, *, element_bytes: int) -> None:
        most = config.rows * config.max_head_dim * element_bytes // UNIT_ELEMENTS
        super().__init__(
            {
                "address": ADDRESS_BITS,  #: Of the first piece.
                "stride": HEAD_BITS,  #: Bytes from one to the next.
                "count": range(config.rows + 1),  #: Pieces, 1 ... R.
                "rows": range(config.rows + 1),  #: Rows in each.
                "units": range(most + 1),  #: Bytes of each, in 16.
            }
        )


class TablePass(data.StructLayout):
    """The reads of a pass beside queries, keys and values."""

    def __init__(self, config: AttentionConfig) -> None:
        members = {
            #: ``bitmap``, ``bitmap_rows``: address and length of its bitmap row, the length in 32 bytes; 0
            #: for none.
            "bitmap": ADDRESS_BITS,
            "bitmap_rows": bitmap_rows_shape(config),
        }
        if config.alibi:
            members |= {
                #: ``slopes``, ``heads``: address of its heads' slopes, and their number; 0 for none.
                "slopes": ADDRESS_BITS,
                "heads": range(config.rows + 1),
            }
        if config.paged:
            members |= {
                #: ``pages``, ``page_groups``: address and length of the entries of its pages, the length in
                #: `hw.attention.walk.job_setup.PAGE_GROUP`; 0 for none.
                "pages": ADDRESS_BITS,
                "page_groups": page_groups_shape(config),
            }
        super().__init__(members)


class QueryPass(data.StructLayout):
    """The reads of a pass's queries at each of their ports; with ``decode``, at all ports together."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                #: Relative to the port's base; with ``decode``, bytes over all ports.
                "q": Segments(config, element_bytes=1),
                "units": query_units_shape(config),  #: Bytes of one query, in 16.
            }
        )


class WritePass(data.StructLayout):
    """The writes of a pass's results at each of their ports."""

    def __init__(self, config: AttentionConfig) -> None:
        size = config.result_bits // 8
        units = result_units_shape(config)
        super().__init__(
            {
                "o": Segments(config, element_bytes=size),  #: Relative to the port's base.
                "units": units,  #: Bytes of one row, in 16.
            }
        )


class RowPass(data.StructLayout):
    """The keys that the rows of a pass see, and the scale of their scores."""

    def __init__(self, config: AttentionConfig) -> None:
        members = {
            #: ``heads``, ``positions``: row ``r`` is position ``r % positions`` of head ``r // positions``.
            "heads": range(config.rows + 1),
            "positions": range(config.rows + 1),
            "position": signed(POSITION_BITS),  #: Key index of the first position.
            #: ``causal``, ``windowed``, ``window``, ``keys``, ``multiplier``, ``shift``: of the job.
            "causal": 1,
            "windowed": 1,
            "window": KEY_BITS,
            "keys": KEY_BITS,
            "multiplier": MULTIPLIER_BITS,
            "shift": SHIFT_BITS,
        }
        if config.alibi:
            #: 0: no slopes.  2: the slopes of the pass before.  3: slopes of its ``heads`` follow.
            members["slopes"] = 2
        super().__init__(members)


class KeySource(data.StructLayout):
    """The source of the tiles of a pass, the same for all of them."""

    def __init__(self, config: AttentionConfig) -> None:
        members = {
            #: ``k_offset``, ``v_offset``: bytes from a port's base address to its part of the K/V head.
            "k_offset": ADDRESS_BITS,
            "v_offset": ADDRESS_BITS,
            #: ``key_units``, ``value_units``: size of a key and of a value in a port, in 16 bytes.
            "key_units": size_shape(config),
            "value_units": size_shape(config),
            "last_key_part": range(config.folds),
            "last_value_part": range(config.folds),
            #: ``slots``, ``ring``: see `hw.attention.walk.job_setup.JobPlan`.
            "slots": slot_shape(config),
            "ring": 1,
        }
        if config.logit_cap:
            members["cap"] = CAP_BITS
        if config.decodes:
            members |= {
                "decode": 1,  #: The pass is of a job that decodes.
                #: ``again``, ``keep``: the pass before had the same keys and values, which were kept; the
                #: next pass has the same ones.
                "again": 1,
                "keep": 1,
            }
        if config.paged:
            tile = tile_shape(config)
            members |= {
                #: ``paged``, ``page_mask``, ``first_paged``: the pass reads a page table; see
                #: `hw.attention.walk.job_setup.JobPlan`; and the first tile of the page of its first entry.
                "paged": 1,
                "page_mask": tile,
                "first_paged": tile,
            }
        super().__init__(members)


class KeyPass(data.StructLayout):
    """The keys of a pass."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                #: ``first``, ``end``: some row sees keys ``first <= j < end``, unless ``none``.
                "first": KEY_BITS,
                "end": KEY_BITS,
                "none": 1,  #: No row sees any.
                #: If not 0, only tiles with a bit in the bitmap row exist; the length of the row, in 32
                #: bytes.
                "bitmap_rows": bitmap_rows_shape(config),
                "clear": 1,  #: The first pass of a K/V head: the caches hold none of its keys.
                "source": KeySource(config),
            }
        )


class Pass(data.StructLayout):
    """A pass: ``tables``, ``queries``, ``write``, ``rows``, ``keys``, and ``command`` for the core."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "tables": TablePass(config),
                "queries": QueryPass(config),
                "write": WritePass(config),
                "rows": RowPass(config),
                "keys": KeyPass(config),
                "command": QueryCommand(config),
            }
        )


class TileRequest(data.StructLayout):
    """A tile that a stream requests."""

    def __init__(self, config: AttentionConfig) -> None:
        members = {
            #: Its number.  In a job that decodes a tile has S P T keys, and all streams share it.
            "tile": tile_shape(config),
            #: Leading keys that are left out, 0 ... T - 1: no row of the pass sees them.
            "lead": config.index_bits,
            #: Index in the tile of the last key.  In a placeholder ``lead`` and ``last`` have no meaning,
            #: except in a job that decodes: there ``tile``, ``lead`` and ``last`` are 0, and the first row is
            #: read.
            "last": config.index_bits,
            "clear": 1,  #: The caches are invalid before it.
            "command": TileCommand(config),  #: For the core.
            "source": KeySource(config),
        }
        if config.paged:
            members["place"] = tile_shape(config)  #: Its number within its page, or its head.
        super().__init__(members)


class TilePlan(data.StructLayout):
    """A tile, with the source of its keys and values."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "request": TileRequest(config),
                #: Index in the tile, up to T: keys before it come from the caches, the others from memory.
                "held": config.index_bits + 1,
                "store": 1,  #: Keys from memory are stored in the caches.
                "slot": slot_shape(config),  #: Slot in the caches, if any key is read there or stored.
            }
        )


class PartCommand(data.StructLayout):
    """The parts of a tile's keys, or of its values."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "lead": config.index_bits,  #: Index in the tile of the first key.
                "keys": config.index_bits + 1,  #: 1 ... T.
                "held": config.index_bits + 1,  #: Leading keys that the cache holds.
                #: ``store``, ``dummy``: the other keys are stored; the tile is a placeholder, with parts
                #: without meaning.
                "store": 1,
                "dummy": 1,
                "slot": slot_shape(config),  #: See `TilePlan`.
                "port": range(config.ports),  #: Port of the first key that the cache does not hold.
                "last_part": range(config.folds),  #: Parts of a key, less 1.
            }
        )


def read_rows(config: AttentionConfig) -> RowsCommand:
    """Return the command for rows that are read: queries, keys or values."""
    most = max(config.rows, config.tile_keys // config.ports)
    return RowsCommand(most_rows=most, most_units=config.max_head_dim // UNIT_ELEMENTS, unit_bits=UNIT_BITS)


def written_rows(config: AttentionConfig) -> RowsCommand:
    """Return the command for rows that are written at a port: results."""
    size = config.result_units(config.max_head_dim)
    return RowsCommand(most_rows=config.rows, most_units=size, unit_bits=UNIT_BITS)


class RowsFetch(data.StructLayout):
    """Rows to be read: ``address``, ``length`` in 16 bytes, and ``rows``, a `RowsCommand`.

    With ``decode`` rows are not cut, and ``rows`` does not exist.
    """

    def __init__(self, config: AttentionConfig) -> None:
        rows = read_rows(config)
        # A job that decodes reads T rows of a tile through each port.
        most = config.tile_keys if config.decodes else rows.most_rows
        length = range(most * config.max_head_dim // UNIT_ELEMENTS + 1)
        super().__init__(
            {"address": ADDRESS_BITS, "length": length} | ({} if config.decodes else {"rows": rows})
        )
