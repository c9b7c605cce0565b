"""A stream FIFO of any depth: registers or LUTRAM when it is shallow, block RAM when it is deep."""

from __future__ import annotations

from typing import ClassVar, Literal

from amaranth.hdl import Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError
from hw.lib.loads import LOADS, copies
from hw.lib.memory import RamStyle, check_ram_style, uninitialised
from hw.lib.skid import Skid

#: Deepest FIFO that goes into LUTRAM when no ``ram_style`` is given: one level of 64-deep distributed RAM.
SHALLOW_DEPTH = 64


class Fifo(wiring.Component):
    """First in, first out.

    ``depth``: items it holds, at least 1; need not be a power of two. ``ram_style``: ``"distributed"``
    (shallow kind) or ``"block"`` / ``"ultra"`` (deep kind).  By default by depth: distributed up to
    `SHALLOW_DEPTH`.

    Behaviour
    ---------
    Nothing passes combinationally between ``i`` and ``o``.  One item a cycle, full or not; only at depth 1,
    where an item must have left before the next may come, one item every second cycle.

    ``i.ready``, ``o.valid`` and ``empty`` come straight out of flip-flops.

    * Shallow: latency 1 cycle; ``o.payload`` is read through the LUTRAM.
    * Without a payload (a shape of no bits): as a shallow one, and no memory.
    * Deep: latency 3 cycles; a skid buffer stands behind the RAM's own output latch, so that the RAM's slow
      clock-to-out never reaches the consumer, nor the consumer's ``ready`` the RAM.

    Why
    ---
    The level counts what the output register holds too: a producer that reserves room (a DMA issuing bursts)
    may rely on every one of ``depth`` places.
    """

    #: Cycles from ``i`` to ``o`` of a shallow one, and of a deep one.
    LATENCY: ClassVar = 1
    DEEP_LATENCY: ClassVar = 2 + Skid.LATENCY

    def __init__(self, shape: ShapeLike, *, depth: int, ram_style: RamStyle | None = None) -> None:
        if not isinstance(depth, int) or depth < 1:
            raise InputError("depth", depth, "an integer of at least 1")
        if ram_style is None:
            ram_style = "distributed" if depth <= SHALLOW_DEPTH else "block"
        check_ram_style(ram_style)
        self._shape = shape
        self.depth = depth
        shallow = ram_style == "distributed" or not Shape.cast(shape).width
        self.kind: Literal["shallow", "deep"] = "shallow" if shallow else "deep"
        self.ram_style: RamStyle = ram_style
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                #: Items held, output register included; ``i.ready`` is ``level != depth``.
                "level": Out(range(depth + 1)),
                "empty": Out(1, init=1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        width = Shape.cast(self._shape).width
        i_payload = Value.cast(self.i.payload)
        o_payload = Value.cast(self.o.payload)
        push = Signal()
        pop = Signal()
        m.d.comb += [
            push.eq(self.i.valid & self.i.ready),
            pop.eq(self.o.valid & self.o.ready),
        ]
        with m.If(push & ~pop):
            m.d.sync += self.level.eq(self.level + 1)
        with m.If(pop & ~push):
            m.d.sync += self.level.eq(self.level - 1)

        if self.depth == 1:
            m.d.comb += [self.i.ready.eq(self.empty), self.o.valid.eq(~self.empty)]
            with m.If(push):
                m.d.sync += [self.empty.eq(0), o_payload.eq(i_payload)]
            with m.If(pop):
                m.d.sync += self.empty.eq(1)
            return m

        def following(row: Signal) -> Value:
            return Mux(row == self.depth - 1, 0, row + 1)

        # The oldest of all that is held.  Of LUTRAM each bit is addressed by itself, but for pairs in shallow
        # ones: wide words are slices with rows of their own.
        slice_bits = LOADS - 8 if self.depth > 32 else 2 * (LOADS - 8)
        slices = max(1, -(-width // slice_bits)) if self.kind == "shallow" else 1
        write_rows = copies(Signal(range(self.depth), name="write_row"), slices)
        oldest_rows = copies(Signal(range(self.depth), name="oldest_row"), slices)
        write_row, oldest_row = write_rows[0], oldest_rows[0]
        with m.If(push):
            m.d.sync += [row.eq(following(write_row)) for row in write_rows]
        with m.If(pop):
            m.d.sync += [row.eq(following(oldest_row)) for row in oldest_rows]
        # Full and empty from the rows, which are there early, and not from the level: `push` and `pop` come
        # at the ends of long paths.
        room = Signal(init=1)
        m.d.comb += self.i.ready.eq(room)
        with m.If(push & ~pop):
            m.d.sync += [room.eq(following(write_row) != oldest_row), self.empty.eq(0)]
        with m.If(pop & ~push):
            m.d.sync += [room.eq(1), self.empty.eq(following(oldest_row) == write_row)]

        if self.kind == "shallow":
            m.d.comb += self.o.valid.eq(~self.empty)
        if not width:  # tokens, which are only counted: Yosys knows no memory without bits
            return m

        def storage(name: str, bits: slice, row: Signal) -> memory.Memory:
            stored = i_payload[bits]
            ram = uninitialised(width=len(stored), depth=self.depth, ram_style=self.ram_style)
            m.submodules[name] = ram
            write = ram.write_port()
            m.d.comb += [write.en.eq(push), write.addr.eq(row), write.data.eq(stored)]
            return ram

        if self.kind == "shallow":
            for n, (last, oldest) in enumerate(zip(write_rows, oldest_rows, strict=True)):
                bits = slice(n * slice_bits, min(width, (n + 1) * slice_bits))
                read = storage(f"storage_{n}", bits, last).read_port(domain="comb")
                m.d.comb += [read.addr.eq(oldest), o_payload[bits].eq(read.data)]
            return m

        # RAM rows -> the RAM's output latch -> skid buffer, which keeps `o.ready` from the RAM.  The latch
        # moves on when the buffer has room; a row is read at the earliest in the cycle after it was written.
        m.submodules.output = output = Skid(width)
        read = storage("storage", slice(0, width), write_row).read_port()
        read_row = Signal(range(self.depth))
        waiting = Signal()  # a row was written and not read
        latched = Signal()
        fetch = Signal()
        advance = output.i.ready
        m.d.comb += [
            output.i.valid.eq(latched),
            output.i.payload.eq(read.data),
            self.o.valid.eq(output.o.valid),
            o_payload.eq(output.o.payload),
            output.o.ready.eq(self.o.ready),
            fetch.eq(waiting & (~latched | advance)),
            read.addr.eq(read_row),
            read.en.eq(fetch),
        ]
        with m.If(push & ~fetch):
            m.d.sync += waiting.eq(1)
        with m.If(fetch & ~push):
            m.d.sync += waiting.eq(following(read_row) != write_row)
        with m.If(fetch):
            m.d.sync += [read_row.eq(following(read_row)), latched.eq(1)]
        with m.Elif(advance):
            m.d.sync += latched.eq(0)
        return m
