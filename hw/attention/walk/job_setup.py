"""Counts and sizes derived from a job, computed once before its first pass."""

from typing import Any, ClassVar

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import KEY_BITS, MAX_KEYS, POSITION_BITS, AttentionConfig
from hw.attention.core.command import UNIT_ELEMENTS
from hw.attention.walk.job import UNIT_SHIFT, Job

#: Most parts that the reader of a job that decodes keeps from one pass to the next.
KEPT_PARTS = 256
#: Bytes that rows of a bitmap are padded to.
BITMAP_ROW_BYTES = 32
#: Bytes of an entry of a page table; entries that are read together, and log2 of them.
PAGE_ENTRY_BYTES, PAGE_GROUP, PAGE_GROUP_SHIFT = 8, 4, 2
#: Bytes of a slope.
SLOPE_BYTES = 4
#: Rows of a query tile of a job that decodes: those of a cell.
DECODE_ROWS = 2
#: Bits of the size of a head in bytes, in a port or in all: up to 2^17 rows of 512 elements of 2 bytes.
HEAD_BITS = 28


def slot_shape(config: AttentionConfig) -> Any:
    """Return the shape of a number of tiles in a stream's cache."""
    return range(config.cached_keys // config.tile_keys + 1)


def tile_shape(config: AttentionConfig) -> Any:
    """Return the shape of the number of tiles of a head."""
    return range(-(-MAX_KEYS // config.tile_span) + 1)


def page_shift_shape(config: AttentionConfig) -> Any:
    """Return the shape of log2 of the tiles of a page."""
    return range((MAX_KEYS // config.tile_span).bit_length())


def page_groups_shape(config: AttentionConfig) -> Any:
    """Return the shape of the length of a page table, counted in `PAGE_GROUP` entries."""
    return range(-(-MAX_KEYS // config.tile_span // PAGE_GROUP) + 1)


def bitmap_rows_shape(config: AttentionConfig) -> Any:
    """Return the shape of the length of a bitmap row, counted in `BITMAP_ROW_BYTES`."""
    return range(-(-MAX_KEYS // config.tile_span // (8 * BITMAP_ROW_BYTES)) + 1)


def query_units_shape(config: AttentionConfig) -> Any:
    """Return the shape of the units of a query, see `AttentionConfig.query_units`."""
    return range(config.query_units(config.max_head_dim) + 1)


def result_units_shape(config: AttentionConfig) -> Any:
    """Return the shape of the units of a row of results at each port."""
    return range(config.result_units(config.max_head_dim) + 1)


class JobPlan(data.StructLayout):
    """A job, with the counts and sizes that follow from it."""

    def __init__(self, config: AttentionConfig) -> None:
        members = {
            "job": Job(config),
            "empty": 1,  #: It has no queries, keys or heads.
            #: Positions of a full query tile: R // pack; 2 // pack in a job that decodes.
            "positions": range(config.rows + 1),
            "joined": 1,  #: A query tile holds all queries of its heads, which are contiguous in memory.
            "diagonal": signed(POSITION_BITS),  #: Key index of query 0's position: keys - queries.
            #: ``q_head``, ``o_head``, ``k_head``, ``v_head``: bytes in a port of a query head, of its
            #: results, and of a K/V head.  With ``decode``, ``q_head`` counts all ports.
            "q_head": HEAD_BITS,
            "o_head": HEAD_BITS,
            "k_head": HEAD_BITS,
            "v_head": HEAD_BITS,
            #: ``q_units``, ``o_units``: units of `UNIT_BITS` in a port, of a query and of a row of results.
            #: With ``decode``, ``q_units`` counts all ports.
            "q_units": query_units_shape(config),
            "o_units": result_units_shape(config),
            #: ``last_key_part``, ``last_value_part``: see `hw.attention.core.command.QueryCommand`.
            "last_key_part": range(config.folds),
            "last_value_part": range(config.folds),
            #: If ``sparse``: length of a bitmap row in `BITMAP_ROW_BYTES`; else 0.
            "bitmap_rows": bitmap_rows_shape(config),
            "slots": slot_shape(config),  #: Tiles in a stream's cache; 0 in a job that decodes.
            #: Slots are a ring: the head has more tiles than slots and a window moves over them.  ``slots``
            #: is then a power of two, or 0.
            "ring": 1,
        }
        if config.decodes:
            #: The passes of a K/V head read the same keys and values, which readers keep.
            members["keeps"] = 1
        if config.paged:
            members |= {
                #: ``page_shift``, ``page_mask``: log2 of the tiles of a page; that number less 1, or all ones
                #: without pages.
                "page_shift": page_shift_shape(config),
                "page_mask": tile_shape(config),
            }
        super().__init__(members)


class _Counts:
    """Registers of the first stage: a job and its counts that need no product."""

    def __init__(self, config: AttentionConfig) -> None:
        shapes = {
            "job": Job(config),
            "tiles": tile_shape(config),
            "port_rows": KEY_BITS,
            "q_units": query_units_shape(config),
            "o_units": result_units_shape(config),
            "positions": range(config.rows + 1),
            "key_part": range(config.folds),
            "value_part": range(config.folds),
        }
        (
            self.job,
            self.tiles,
            self.port_rows,
            self.q_units,
            self.o_units,
            self.positions,
            self.key_part,
            self.value_part,
        ) = (Signal(shape, name=name, reset_less=True) for name, shape in shapes.items())


class JobSetup(wiring.Component):
    """Completes jobs.

    Behaviour
    ---------
    Latency 2 cycles; a job a cycle.  The next job waits here while the current one is on ``o``, so jobs
    follow each other without a gap.  All products are of 18 by 6 bits.
    """

    #: Cycles from ``i`` to ``o``.
    LATENCY: ClassVar = 2

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {"i": In(stream.Signature(Job(config))), "o": Out(stream.Signature(JobPlan(config)))}
        )

    def elaborate(self, platform: Any) -> Module:
        """Two stages: counts that need no product, then products and the size of the caches."""
        m = Module()
        config, o = self._config, self.o
        now = _Counts(config)
        held = Signal()
        advance = Signal()
        m.d.comb += [advance.eq(~o.valid | o.ready), self.i.ready.eq(~held | advance)]
        with m.If(self.i.ready):
            m.d.sync += [held.eq(self.i.valid), *self._count(now)]
        with m.If(advance):
            m.d.sync += o.valid.eq(held)

        slots = Signal(slot_shape(config))
        turns = Signal(slot_shape(config))
        ring = Signal()
        last_part = Mux(now.key_part > now.value_part, now.key_part, now.value_part)
        counts = [config.cached_keys // config.tile_keys // (part + 1) for part in range(config.folds)]
        m.d.comb += [
            slots.eq(_table(counts, last_part)),
            turns.eq(_table([1 << count.bit_length() >> 1 for count in counts], last_part)),
            ring.eq(now.job.flags.windowed & (now.tiles > slots)),
        ]
        with m.If(advance):
            m.d.sync += self._derive(now, Mux(ring, turns, slots), ring)
            if config.decodes:
                most = _table(
                    [KEPT_PARTS // (part + 1) * config.decode_streams for part in range(config.folds)],
                    last_part,
                )
                joined = now.job.queries <= now.positions
                m.d.sync += o.payload.keeps.eq(now.job.flags.decode & joined & (now.job.keys <= most))
            if config.paged:
                m.d.sync += self._place_pages(now.job)
        return m

    def _count(self, now: _Counts) -> list[Any]:
        """Return the assignments of the first stage."""
        config, given = self._config, self.i.payload
        shift = config.tile_keys.bit_length() - 1
        all_tiles = (given.keys + config.tile_span - 1) >> (config.stream_bits + shift)
        head_tiles = Value.cast(all_tiles)  # of a head, or of its keys in a page
        if config.paged:
            head_tiles = Mux(given.flags.paged, given.page_keys >> (config.stream_bits + shift), all_tiles)
        q_ports, ports = config.query_port_count, config.result_ports
        last_query_part = _last_part(config, given.query_units)
        query_units: Value = (given.query_units + q_ports - 1) >> q_ports.bit_length() - 1
        if config.decodes:
            query_units = whole_parts(config, last_query_part)
        units = given.value_units << (config.result_bits // 16)
        per_tile = _per_pack(config.rows, config, given.pack)
        if config.decodes:
            per_tile = Mux(given.flags.decode, _per_pack(DECODE_ROWS, config, given.pack), per_tile)
        return [
            now.job.eq(given),
            now.tiles.eq(all_tiles),
            # Exact: T is at least the number of ports.
            now.port_rows.eq((head_tiles << shift) >> (config.ports.bit_length() - 1)),
            now.q_units.eq(query_units),
            now.o_units.eq((units + ports - 1) >> ports.bit_length() - 1),
            now.positions.eq(per_tile),
            now.key_part.eq(last_query_part),
            now.value_part.eq(_last_part(config, given.value_units)),
        ]

    def _derive(self, now: _Counts, held_tiles: Value, ring: Signal) -> list[Any]:
        """Return the assignments of the second stage; a cache holds ``held_tiles``, in turn if ``ring``."""
        config, job, plan = self._config, now.job, self.o.payload
        key_units, value_units = job.query_units, job.value_units
        if config.decodes:
            held_tiles = Mux(job.flags.decode, 0, held_tiles)
            key_units, value_units = (whole_parts(config, last) for last in (now.key_part, now.value_part))
        return [
            plan.job.eq(job),
            plan.empty.eq((job.queries == 0) | (job.keys == 0) | (job.heads == 0)),
            plan.positions.eq(now.positions),
            plan.joined.eq(job.queries <= now.positions),
            plan.diagonal.eq(job.keys - job.queries),
            plan.q_head.eq((job.queries * now.q_units) << UNIT_SHIFT),
            plan.o_head.eq((job.queries * now.o_units) << UNIT_SHIFT),
            plan.q_units.eq(now.q_units),
            plan.o_units.eq(now.o_units),
            plan.k_head.eq((now.port_rows * key_units) << UNIT_SHIFT),
            plan.v_head.eq((now.port_rows * value_units) << UNIT_SHIFT),
            plan.last_key_part.eq(now.key_part),
            plan.last_value_part.eq(now.value_part),
            plan.bitmap_rows.eq(
                Mux(job.flags.sparse, (now.tiles + 8 * BITMAP_ROW_BYTES - 1) // (8 * BITMAP_ROW_BYTES), 0)
            ),
            plan.slots.eq(held_tiles),
            plan.ring.eq(ring & ~job.flags.decode if config.decodes else ring),
        ]

    def _place_pages(self, job: Any) -> list[Any]:
        """Return the assignments of the size of a page."""
        config, plan = self._config, self.o.payload
        of_page = job.page_keys[config.stream_bits + config.tile_keys.bit_length() - 1 :]
        return [
            plan.page_shift.eq(_log2(of_page)),
            plan.page_mask.eq(Mux(job.flags.paged, of_page - 1, ~Const(0, len(plan.page_mask)))),
        ]


def _table(entries: list[int], index: Value) -> Value:
    """Look up a constant; an index beyond the table selects the last entry."""
    shape = range(max(entries) + 1)
    return Array([Const(entry, shape) for entry in entries])[index]


def _log2(power: Value) -> Value:
    """Return the index of the only bit that is set."""
    bits = range((len(power) - 1).bit_length())
    return Cat(Cat(power[n] for n in range(len(power)) if n >> bit & 1).any() for bit in bits)


def _per_pack(rows: int, config: AttentionConfig, pack: Value) -> Value:
    """Return ``rows // pack``."""
    return _table([rows] + [rows // heads for heads in range(1, config.rows + 1)], pack)


def whole_parts(config: AttentionConfig, last_part: Value) -> Value:
    """Return the units of ``last_part + 1`` parts, as in `AttentionConfig.key_units` with ``decode``."""
    lanes = config.lanes // UNIT_ELEMENTS
    return _table([lanes * (part + 1) for part in range(config.folds)], last_part)


def _last_part(config: AttentionConfig, units: Value) -> Value:
    """Count the parts of ``units``, less 1."""
    lanes = config.lanes // UNIT_ELEMENTS
    count: Any = Const(0, range(config.folds))
    for part in range(1, config.folds):
        count = Mux(units > part * lanes, part, count)
    return Value.cast(count)
