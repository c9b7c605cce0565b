"""The walk over K/V heads, sets of query heads, and blocks of positions."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import KEY_BITS, POSITION_BITS, AttentionConfig
from hw.attention.walk.geometry import (
    BITMAP_ROW_BYTES,
    PAGE_ENTRY_BYTES,
    PAGE_GROUP,
    PAGE_GROUP_SHIFT,
    Plan,
    page_groups_shape,
    whole_parts,
)
from hw.attention.walk.job import ADDRESS_BITS, COUNT_BITS, UNIT_SHIFT
from hw.attention.walk.layouts import Pass

#: Bytes of a slope.
_SLOPE_BYTES = 4


class PassWalker(wiring.Component):
    """Lists the passes of jobs.

    Behaviour
    ---------
    First pass of a job 3 cycles after its plan, or 5 after the last one of the job before; then one every 3
    cycles, or 4 for all but the first block of a set.  A query tile takes longer to compute, so the walk is
    ahead of the core except at the start.

    Why
    ---
    A pass follows from the one before by additions.  What takes a product, of a tile's rows and their bytes,
    is small and has a cycle of its own.
    """

    #: Cycles from a plan to the job's first pass; from a pass to the next set's, to the next job's, and to
    #: any other next one.
    LATENCY: ClassVar = 3
    SET_INTERVAL: ClassVar = 3
    JOB_INTERVAL: ClassVar = 5
    INTERVAL: ClassVar = 4

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(Plan(config))),  #: Taken in the cycle after the job's last pass.
                #: For each K/V head, for each set of ``pack`` query heads of its group (the last set may have
                #: fewer), for each block of positions: a query tile.
                "o": Out(stream.Signature(Pass(config))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config, plan, job = self._config, self.i.payload, self.i.payload.job
        # Of the job.
        heads_left = Signal(COUNT_BITS)  # this set's included
        group_left = Signal(COUNT_BITS)
        k_offset, v_offset = Signal(ADDRESS_BITS), Signal(ADDRESS_BITS)
        clear = Signal()
        opens_group = Signal()
        # Of the set.
        heads = Signal(range(config.rows + 1))
        q_set, o_set, slopes = (Signal(ADDRESS_BITS, name=name) for name in ("q_set", "o_set", "slopes"))
        q_stride, o_stride = Signal(ADDRESS_BITS), Signal(ADDRESS_BITS)  # to the next set
        opens_set = Signal()
        # Of the block.
        queries_left = Signal(KEY_BITS)  # this block's included
        positions = Signal(range(config.rows + 1))
        position = Signal(signed(POSITION_BITS))
        q_address, o_address, bitmap = (
            Signal(ADDRESS_BITS, name=name) for name in ("q_address", "o_address", "bitmap")
        )
        ends_set = Signal()
        # Entries of the page table that it needs: the first and the last group of them.
        first_group, last_group = (
            Signal(page_groups_shape(config), name=name) for name in ("first_group", "last_group")
        )
        current = self.o.payload
        tables, queries, write = current.tables, current.queries, current.write
        rows, keys = current.rows, current.keys

        following_group = Signal(COUNT_BITS)
        ends_group, ends_job = Signal(), Signal()

        def begin_set(left: Value, q: Value, o: Value) -> None:
            """Assign what a set begins with; ``left`` heads of its group are not done."""
            m.d.sync += [
                heads.eq(Mux(left < job.pack, left, job.pack)),
                opens_set.eq(1),
                queries_left.eq(job.queries),
                positions.eq(Mux(plan.joined, job.queries, plan.positions)),
                ends_set.eq(plan.joined),
                position.eq(plan.diagonal),
                q_set.eq(q),
                o_set.eq(o),
                q_address.eq(q),
                o_address.eq(o),
                bitmap.eq(job.bitmap),
            ]

        with m.FSM():
            with m.State("JOB"):
                m.d.comb += self.i.ready.eq(plan.empty)
                m.d.sync += [
                    heads_left.eq(job.heads),
                    group_left.eq(job.kv_group),
                    k_offset.eq(job.k_offset),
                    v_offset.eq(job.v_offset),
                    clear.eq(~job.flags.reuse_kv),
                    opens_group.eq(1),
                    slopes.eq(job.slopes),
                ]
                begin_set(job.kv_group, job.q_offset, job.o_offset)
                with m.If(self.i.valid & ~plan.empty):
                    m.next = "ROWS"
            with m.State("BLOCK"):
                m.d.sync += [
                    ends_set.eq(queries_left <= plan.positions),
                    positions.eq(Mux(queries_left <= plan.positions, queries_left, plan.positions)),
                ]
                m.next = "ROWS"
            with m.State("ROWS"):
                m.d.sync += self._visible(job, position, positions, keys)
                m.d.sync += [
                    ends_group.eq(group_left <= job.pack),
                    ends_job.eq(heads_left <= heads),
                    current.command.rows.eq(heads * positions),
                    q_stride.eq((heads * (plan.q_head >> UNIT_SHIFT)) << UNIT_SHIFT),
                    o_stride.eq((heads * (plan.o_head >> UNIT_SHIFT)) << UNIT_SHIFT),
                ]
                m.next = "BYTES"
            with m.State("BYTES"):
                piece = Mux(plan.joined, current.command.rows, positions)
                m.d.sync += [
                    following_group.eq(Mux(ends_group, job.kv_group, group_left - job.pack)),
                    keys.none.eq(keys.end <= keys.first),
                    queries.q.rows.eq(piece),
                    queries.q.units.eq(piece * plan.q_units),
                    write.o.rows.eq(piece),
                    write.o.units.eq(piece * plan.o_units),
                ]
                if config.paged:
                    tile_bits = config.stream_bits + config.index_bits
                    first, last = keys.first >> tile_bits, (keys.end - 1)[:KEY_BITS] >> tile_bits
                    m.d.sync += [
                        first_group.eq(first >> plan.page_shift >> PAGE_GROUP_SHIFT),
                        last_group.eq(last >> plan.page_shift >> PAGE_GROUP_SHIFT),
                        # With the bits of its place in a page, and of the page's in a group, cleared.
                        keys.source.first_paged.eq(
                            first & ~Cat(Const(PAGE_GROUP - 1, PAGE_GROUP_SHIFT), plan.page_mask)
                        ),
                    ]
                if config.decodes:
                    # A set has one pass then.
                    m.d.sync += [
                        keys.source.again.eq(plan.keeps & ~opens_group),
                        keys.source.keep.eq(plan.keeps & ~ends_group),
                    ]
                m.next = "OFFER"
            with m.State("OFFER"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    m.d.sync += [clear.eq(0), opens_set.eq(0)]
                    with m.If(~ends_set):
                        m.d.sync += [
                            queries_left.eq(queries_left - plan.positions),
                            position.eq(position + plan.positions),
                            q_address.eq(q_address + (queries.q.units << UNIT_SHIFT)),
                            o_address.eq(o_address + (write.o.units << UNIT_SHIFT)),
                            bitmap.eq(bitmap + plan.bitmap_rows * BITMAP_ROW_BYTES),
                        ]
                        m.next = "BLOCK"
                    with m.Else():
                        m.d.sync += [
                            opens_group.eq(ends_group),
                            heads_left.eq(heads_left - heads),
                            group_left.eq(following_group),
                            slopes.eq(slopes + heads * _SLOPE_BYTES),
                        ]
                        begin_set(following_group, q_set + q_stride, o_set + o_stride)
                        with m.If(ends_group):
                            m.d.sync += [
                                k_offset.eq(k_offset + plan.k_head),
                                v_offset.eq(v_offset + plan.v_head),
                                clear.eq(1),
                            ]
                        m.next = "ROWS"
                        with m.If(ends_job):
                            m.next = "DONE"
            with m.State("DONE"):
                # In a cycle of its own: whether a pass is taken is known late, and a job has many registers.
                m.d.comb += self.i.ready.eq(1)
                m.next = "JOB"

        key_units, value_units = job.query_units, job.value_units
        if config.decodes:
            key_units, value_units = (
                whole_parts(config, last) for last in (plan.last_key_part, plan.last_value_part)
            )
            m.d.comb += keys.source.decode.eq(job.flags.decode)
        m.d.comb += [
            tables.bitmap.eq(bitmap),
            tables.bitmap_rows.eq(plan.bitmap_rows),
            queries.q.address.eq(q_address),
            queries.q.stride.eq(plan.q_head),
            queries.q.count.eq(Mux(plan.joined, 1, heads)),
            queries.units.eq(plan.q_units),
            write.o.address.eq(o_address),
            write.o.stride.eq(plan.o_head),
            write.o.count.eq(Mux(plan.joined, 1, heads)),
            write.units.eq(plan.o_units),
            rows.heads.eq(heads),
            rows.positions.eq(positions),
            rows.position.eq(position),
            rows.causal.eq(job.flags.causal),
            rows.windowed.eq(job.flags.windowed),
            rows.window.eq(job.window),
            rows.keys.eq(job.keys),
            rows.multiplier.eq(job.multiplier),
            rows.shift.eq(job.shift),
            keys.bitmap_rows.eq(plan.bitmap_rows),
            keys.clear.eq(clear),
            keys.source.k_offset.eq(k_offset),
            keys.source.v_offset.eq(v_offset),
            keys.source.key_units.eq(key_units),
            keys.source.value_units.eq(value_units),
            keys.source.last_key_part.eq(plan.last_key_part),
            keys.source.last_value_part.eq(plan.last_value_part),
            keys.source.slots.eq(plan.slots),
            keys.source.ring.eq(plan.ring),
            current.command.last_key_part.eq(plan.last_key_part),
            current.command.last_value_part.eq(plan.last_value_part),
            current.command.value_units.eq(job.value_units),
            current.command.scale.eq(job.scale),
        ]
        if config.logit_cap:
            m.d.comb += keys.source.cap.eq(job.cap)
        if config.paged:
            paged = job.flags.paged & ~keys.none
            m.d.comb += [
                tables.pages.eq(job.pages + first_group * (PAGE_GROUP * PAGE_ENTRY_BYTES)),
                tables.page_groups.eq(Mux(paged, last_group - first_group + 1, 0)),
                keys.source.paged.eq(paged),
                keys.source.page_mask.eq(plan.page_mask),
            ]
        if config.alibi:
            given = job.slopes != 0
            m.d.comb += [
                tables.slopes.eq(slopes),
                tables.heads.eq(Mux(given & opens_set, heads, 0)),
                rows.slopes.eq(Mux(given, 2 | opens_set, 0)),
            ]
        return m

    @staticmethod
    def _visible(job: Any, position: Value, positions: Value, keys: Any) -> list[Any]:
        """Return the keys that the first and the last position of a block, and so all between, can see."""
        after = position + positions
        oldest = position - job.window + 1
        return [
            keys.end.eq(Mux(job.flags.causal, Mux(after < 0, 0, after), job.keys)),
            keys.first.eq(Mux(job.flags.windowed & (oldest > 0), oldest, 0)),
        ]
