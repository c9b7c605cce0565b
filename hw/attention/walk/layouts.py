"""Payload layouts of the streams between walk and movers: passes and tiles."""

from __future__ import annotations

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
                "units": range(most + 1),  #: Bytes of each by 16.
            }
        )


class TablePass(data.StructLayout):
    """What a pass reads beside queries, keys and values."""

    def __init__(self, config: AttentionConfig) -> None:
        members = {
            #: ``bitmap``, ``bitmap_rows``: address and length of its bitmap row, the length by 32 bytes; 0
            #: for none.
            "bitmap": ADDRESS_BITS,
            "bitmap_rows": bitmap_rows_shape(config),
        }
        if config.alibi:
            members |= {
                #: ``slopes``, ``heads``: address of its heads' slopes, and how many are to be read; 0 for
                #: none.
                "slopes": ADDRESS_BITS,
                "heads": range(config.rows + 1),
            }
        if config.paged:
            members |= {
                #: ``pages``, ``page_groups``: address and length of the entries of the pages that it
                #: sees, the length by `hw.attention.walk.job_setup.PAGE_GROUP`; 0 for none.
                "pages": ADDRESS_BITS,
                "page_groups": page_groups_shape(config),
            }
        super().__init__(members)


class QueryPass(data.StructLayout):
    """What a pass reads of the queries at each of their ports, with ``decode`` at all of them."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                #: Addresses count from the port's base, or the bytes of all ports.
                "q": Segments(config, element_bytes=1),
                "units": query_units_shape(config),  #: Bytes of one query by 16.
            }
        )


class WritePass(data.StructLayout):
    """What becomes of a pass's results at each of their ports."""

    def __init__(self, config: AttentionConfig) -> None:
        size = config.result_bits // 8
        units = result_units_shape(config)
        super().__init__(
            {
                "o": Segments(config, element_bytes=size),  #: Addresses count from the port's base.
                "units": units,  #: Bytes of one row by 16.
            }
        )


class RowPass(data.StructLayout):
    """What the rows of a pass see, and how their scores become logits."""

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
            #: 0: no slopes.  2: those of the pass before.  3: slopes of its ``heads`` follow.
            members["slopes"] = 2
        super().__init__(members)


class KeySource(data.StructLayout):
    """Where the tiles of a pass come from; the same for all tiles of a pass."""

    def __init__(self, config: AttentionConfig) -> None:
        members = {
            #: ``k_offset``, ``v_offset``: bytes from a port's base address to its part of the K/V head.
            "k_offset": ADDRESS_BITS,
            "v_offset": ADDRESS_BITS,
            #: ``key_units``, ``value_units``: what a key and a value take in a port, by 16 bytes.
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
                "decode": 1,  #: The pass is one of a job that decodes.
                #: ``again``, ``keep``: its keys and values are those of the pass before, which are kept;
                #: the next one has the same.
                "again": 1,
                "keep": 1,
            }
        if config.paged:
            tile = tile_shape(config)
            members |= {
                #: ``paged``, ``page_mask``, ``first_paged``: entries of a page table come for the pass;
                #: see `hw.attention.walk.job_setup.JobPlan`; and the first tile of the page of the first one
                #: of them.
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
                #: ``first``, ``end``: keys ``first <= j < end`` are seen by some row, unless ``none``.
                "first": KEY_BITS,
                "end": KEY_BITS,
                "none": 1,  #: No row sees any.
                #: If not 0, only tiles with a bit in the pass's bitmap row are; the row has as many 32 bytes.
                "bitmap_rows": bitmap_rows_shape(config),
                "clear": 1,  #: The first pass of a K/V head: nothing of it is in the caches.
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
    """A tile that a stream is to give."""

    def __init__(self, config: AttentionConfig) -> None:
        members = {
            #: Its number.  Tiles of a job that decodes have S P T keys, in all streams the same.
            "tile": tile_shape(config),
            #: Leading keys that it is given without, 0 ... T - 1: no row of the pass sees them.
            "lead": config.index_bits,
            #: Index in the tile of the last key that is given.  Of a dummy, both mean nothing, but of a job
            #: that decodes: then all three are 0, and what lies there is read.
            "last": config.index_bits,
            "clear": 1,  #: Before it, nothing is in the caches.
            "command": TileCommand(config),  #: For the core.
            "source": KeySource(config),
        }
        if config.paged:
            members["place"] = tile_shape(config)  #: Its number within its page, or its head.
        super().__init__(members)


class TilePlan(data.StructLayout):
    """A tile, and where its keys and values come from."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "request": TileRequest(config),
                #: Index in the tile, up to T: keys before it come from the caches, those from there on from
                #: memory.
                "held": config.index_bits + 1,
                "store": 1,  #: Those from memory are stored.
                "slot": slot_shape(config),  #: Place in the caches, if any of this.
            }
        )


class PartCommand(data.StructLayout):
    """The parts of a tile's keys, or of its values."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "lead": config.index_bits,  #: Index in the tile of the first one.
                "keys": config.index_bits + 1,  #: 1 ... T.
                "held": config.index_bits + 1,  #: Of these, leading ones that the cache holds.
                #: ``store``, ``dummy``: the others are stored; they are nothing but parts without meaning.
                "store": 1,
                "dummy": 1,
                "slot": slot_shape(config),  #: See `TilePlan`.
                "port": range(config.ports),  #: Where the first one that the cache does not hold comes from.
                "last_part": range(config.folds),  #: Parts of each, less 1.
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
    """Rows to be read: ``address``, ``length`` by 16 bytes, and ``rows``, a `RowsCommand`, which is not there
    with ``decode``: then rows are not cut.
    """

    def __init__(self, config: AttentionConfig) -> None:
        rows = read_rows(config)
        # A job that decodes reads T rows of a tile through each port.
        most = config.tile_keys if config.decodes else rows.most_rows
        length = range(most * config.max_head_dim // UNIT_ELEMENTS + 1)
        super().__init__(
            {"address": ADDRESS_BITS, "length": length} | ({} if config.decodes else {"rows": rows})
        )
