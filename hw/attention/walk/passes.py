"""The walk over passes: K/V heads, sets of query heads, blocks of positions."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import KEY_BITS, POSITION_BITS, AttentionConfig
from hw.attention.walk.job import ADDRESS_BITS, COUNT_BITS, UNIT_SHIFT
from hw.attention.walk.job_setup import (
    BITMAP_ROW_BYTES,
    PAGE_ENTRY_BYTES,
    PAGE_GROUP,
    PAGE_GROUP_SHIFT,
    SLOPE_BYTES,
    JobPlan,
    page_groups_shape,
    whole_parts,
)
from hw.attention.walk.layouts import Pass


class _Registers:
    """Registers of the walk, for the job, the set of query heads, and the block of positions."""

    def __init__(self, config: AttentionConfig) -> None:
        self.heads_left = Signal(COUNT_BITS)  # this set's included
        self.group_left = Signal(COUNT_BITS)
        self.k_offset = Signal(ADDRESS_BITS)
        self.v_offset = Signal(ADDRESS_BITS, name="v_offset")
        self.clear = Signal()
        self.opens_group = Signal()
        # Of the set.
        self.heads = Signal(range(config.rows + 1))
        self.q_set, self.o_set, self.slopes = (
            Signal(ADDRESS_BITS, name=name) for name in ("q_set", "o_set", "slopes")
        )
        # To the next set.
        self.q_stride = Signal(ADDRESS_BITS)
        self.o_stride = Signal(ADDRESS_BITS, name="o_stride")
        self.opens_set = Signal()
        # Of the block.
        self.queries_left = Signal(KEY_BITS)  # this block's included
        self.positions = Signal(range(config.rows + 1))
        self.position = Signal(signed(POSITION_BITS))
        self.q_address, self.o_address, self.bitmap = (
            Signal(ADDRESS_BITS, name=name) for name in ("q_address", "o_address", "bitmap")
        )
        self.ends_set = Signal()
        # First and last group of the entries of the page table that it needs.
        self.first_group, self.last_group = (
            Signal(page_groups_shape(config), name=name) for name in ("first_group", "last_group")
        )
        self.following_group = Signal(COUNT_BITS)
        self.ends_group = Signal()
        self.ends_job = Signal(name="ends_job")


class PassWalker(wiring.Component):
    """Lists the passes of jobs.

    Behaviour
    ---------
    The first pass of a job comes 3 cycles after its plan, or 5 after the last pass of the job before.  The
    next passes come every 4 cycles, the first block of a set after 3.  A query tile takes longer to compute,
    so the walk is ahead of the core except at the start.

    Why
    ---
    A pass follows from the one before by additions.  The products, of a tile's rows and their bytes, are
    small and have a cycle of their own.
    """

    #: Cycles from a plan to the job's first pass.  Then, from a pass to the first one of the next set, to the
    #: first one of the next job, and to any other one.
    LATENCY: ClassVar = 3
    SET_INTERVAL: ClassVar = 3
    JOB_INTERVAL: ClassVar = 5
    INTERVAL: ClassVar = 4

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(JobPlan(config))),  #: Taken in the cycle after the job's last pass.
                #: One pass for each K/V head, set of ``pack`` query heads of its group (the last set may be
                #: smaller) and block of positions.
                "o": Out(stream.Signature(Pass(config))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A state machine that lists passes; the fields of a pass follow from its registers."""
        m = Module()
        config, now = self._config, _Registers(self._config)
        with m.FSM():
            with m.State("JOB"):
                self._open_job(m, now)
            with m.State("BLOCK"):
                self._open_block(m, now)
            with m.State("ROWS"):
                self._count_rows(m, now)
            with m.State("BYTES"):
                self._count_bytes(m, now)
            with m.State("OFFER"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready):
                    self._advance(m, now)
            with m.State("DONE"):
                # A cycle of its own: the handshake of a pass is late, and a job has many registers.
                m.d.comb += self.i.ready.eq(1)
                m.next = "JOB"
        self._drive(m, now)
        if config.logit_cap:
            m.d.comb += self.o.payload.keys.source.cap.eq(self.i.payload.job.cap)
        if config.paged:
            self._drive_pages(m, now)
        if config.alibi:
            self._drive_slopes(m, now)
        return m

    def _open_set(self, m: Module, now: _Registers, left: Value, q: Value, o: Value) -> None:
        """Load the registers of a set; ``left`` heads of its group are not done."""
        plan, job = self.i.payload, self.i.payload.job
        m.d.sync += [
            now.heads.eq(Mux(left < job.pack, left, job.pack)),
            now.opens_set.eq(1),
            now.queries_left.eq(job.queries),
            now.positions.eq(Mux(plan.joined, job.queries, plan.positions)),
            now.ends_set.eq(plan.joined),
            now.position.eq(plan.diagonal),
            now.q_set.eq(q),
            now.o_set.eq(o),
            now.q_address.eq(q),
            now.o_address.eq(o),
            now.bitmap.eq(job.bitmap),
        ]

    def _open_job(self, m: Module, now: _Registers) -> None:
        """Load the registers of a job and of its first set."""
        plan, job = self.i.payload, self.i.payload.job
        m.d.comb += self.i.ready.eq(plan.empty)
        m.d.sync += [
            now.heads_left.eq(job.heads),
            now.group_left.eq(job.kv_group),
            now.k_offset.eq(job.k_offset),
            now.v_offset.eq(job.v_offset),
            now.clear.eq(~job.flags.reuse_kv),
            now.opens_group.eq(1),
            now.slopes.eq(job.slopes),
        ]
        self._open_set(m, now, job.kv_group, job.q_offset, job.o_offset)
        with m.If(self.i.valid & ~plan.empty):
            m.next = "ROWS"

    def _open_block(self, m: Module, now: _Registers) -> None:
        """Count the positions of a block behind the first one of its set."""
        plan = self.i.payload
        m.d.sync += [
            now.ends_set.eq(now.queries_left <= plan.positions),
            now.positions.eq(Mux(now.queries_left <= plan.positions, now.queries_left, plan.positions)),
        ]
        m.next = "ROWS"

    def _count_rows(self, m: Module, now: _Registers) -> None:
        """Find the visible keys of the block; multiply for its rows and for the stride of sets."""
        plan, job, current = self.i.payload, self.i.payload.job, self.o.payload
        m.d.sync += self._visible(job, now.position, now.positions, current.keys)
        m.d.sync += [
            now.ends_group.eq(now.group_left <= job.pack),
            now.ends_job.eq(now.heads_left <= now.heads),
            current.command.rows.eq(now.heads * now.positions),
            now.q_stride.eq((now.heads * (plan.q_head >> UNIT_SHIFT)) << UNIT_SHIFT),
            now.o_stride.eq((now.heads * (plan.o_head >> UNIT_SHIFT)) << UNIT_SHIFT),
        ]
        m.next = "BYTES"

    def _count_bytes(self, m: Module, now: _Registers) -> None:
        """Multiply for the bytes of the rows; find the entries of the page table."""
        config, plan, job, current = self._config, self.i.payload, self.i.payload.job, self.o.payload
        queries, write, keys = current.queries, current.write, current.keys
        piece = Mux(plan.joined, current.command.rows, now.positions)
        m.d.sync += [
            now.following_group.eq(Mux(now.ends_group, job.kv_group, now.group_left - job.pack)),
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
                now.first_group.eq(first >> plan.page_shift >> PAGE_GROUP_SHIFT),
                now.last_group.eq(last >> plan.page_shift >> PAGE_GROUP_SHIFT),
                # The bits of the tile in its page, and of the page in its group, are cleared.
                keys.source.first_paged.eq(
                    first & ~Cat(Const(PAGE_GROUP - 1, PAGE_GROUP_SHIFT), plan.page_mask)
                ),
            ]
        if config.decodes:
            # A set then has one pass.
            m.d.sync += [
                keys.source.again.eq(plan.keeps & ~now.opens_group),
                keys.source.keep.eq(plan.keeps & ~now.ends_group),
            ]
        m.next = "OFFER"

    def _advance(self, m: Module, now: _Registers) -> None:
        """Step to the next block of the set, or to the next set, K/V head or job."""
        plan, current = self.i.payload, self.o.payload
        queries, write = current.queries, current.write
        m.d.sync += [now.clear.eq(0), now.opens_set.eq(0)]
        with m.If(~now.ends_set):
            m.d.sync += [
                now.queries_left.eq(now.queries_left - plan.positions),
                now.position.eq(now.position + plan.positions),
                now.q_address.eq(now.q_address + (queries.q.units << UNIT_SHIFT)),
                now.o_address.eq(now.o_address + (write.o.units << UNIT_SHIFT)),
                now.bitmap.eq(now.bitmap + plan.bitmap_rows * BITMAP_ROW_BYTES),
            ]
            m.next = "BLOCK"
        with m.Else():
            m.d.sync += [
                now.opens_group.eq(now.ends_group),
                now.heads_left.eq(now.heads_left - now.heads),
                now.group_left.eq(now.following_group),
                now.slopes.eq(now.slopes + now.heads * SLOPE_BYTES),
            ]
            self._open_set(m, now, now.following_group, now.q_set + now.q_stride, now.o_set + now.o_stride)
            with m.If(now.ends_group):
                m.d.sync += [
                    now.k_offset.eq(now.k_offset + plan.k_head),
                    now.v_offset.eq(now.v_offset + plan.v_head),
                    now.clear.eq(1),
                ]
            m.next = "ROWS"
            with m.If(now.ends_job):
                m.next = "DONE"

    def _drive(self, m: Module, now: _Registers) -> None:
        """Drive the fields that every configuration has."""
        config, plan, job, current = self._config, self.i.payload, self.i.payload.job, self.o.payload
        tables, queries, write = current.tables, current.queries, current.write
        rows, keys = current.rows, current.keys
        key_units, value_units = job.query_units, job.value_units
        if config.decodes:
            key_units, value_units = (
                whole_parts(config, last) for last in (plan.last_key_part, plan.last_value_part)
            )
            m.d.comb += keys.source.decode.eq(job.flags.decode)
        m.d.comb += [
            tables.bitmap.eq(now.bitmap),
            tables.bitmap_rows.eq(plan.bitmap_rows),
            queries.q.address.eq(now.q_address),
            queries.q.stride.eq(plan.q_head),
            queries.q.count.eq(Mux(plan.joined, 1, now.heads)),
            queries.units.eq(plan.q_units),
            write.o.address.eq(now.o_address),
            write.o.stride.eq(plan.o_head),
            write.o.count.eq(Mux(plan.joined, 1, now.heads)),
            write.units.eq(plan.o_units),
            rows.heads.eq(now.heads),
            rows.positions.eq(now.positions),
            rows.position.eq(now.position),
            rows.causal.eq(job.flags.causal),
            rows.windowed.eq(job.flags.windowed),
            rows.window.eq(job.window),
            rows.keys.eq(job.keys),
            rows.multiplier.eq(job.multiplier),
            rows.shift.eq(job.shift),
            keys.bitmap_rows.eq(plan.bitmap_rows),
            keys.clear.eq(now.clear),
            keys.source.k_offset.eq(now.k_offset),
            keys.source.v_offset.eq(now.v_offset),
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

    def _drive_pages(self, m: Module, now: _Registers) -> None:
        """Drive the fields of the page table."""
        plan, job, keys, tables = (
            self.i.payload,
            self.i.payload.job,
            self.o.payload.keys,
            self.o.payload.tables,
        )
        paged = job.flags.paged & ~keys.none
        m.d.comb += [
            tables.pages.eq(job.pages + now.first_group * (PAGE_GROUP * PAGE_ENTRY_BYTES)),
            tables.page_groups.eq(Mux(paged, now.last_group - now.first_group + 1, 0)),
            keys.source.paged.eq(paged),
            keys.source.page_mask.eq(plan.page_mask),
        ]

    def _drive_slopes(self, m: Module, now: _Registers) -> None:
        """Drive the fields of ALiBi's slopes."""
        job, tables, rows = self.i.payload.job, self.o.payload.tables, self.o.payload.rows
        given = job.slopes != 0
        m.d.comb += [
            tables.slopes.eq(now.slopes),
            tables.heads.eq(Mux(given & now.opens_set, now.heads, 0)),
            rows.slopes.eq(Mux(given, 2 | now.opens_set, 0)),
        ]

    @staticmethod
    def _visible(job: Any, position: Value, positions: Value, keys: Any) -> list[Any]:
        """Return the range of keys that some position of a block sees."""
        after = position + positions
        oldest = position - job.window + 1
        return [
            keys.end.eq(Mux(job.flags.causal, Mux(after < 0, 0, after), job.keys)),
            keys.first.eq(Mux(job.flags.windowed & (oldest > 0), oldest, 0)),
        ]
