"""A stream FIFO of any depth: LUTRAM when it is shallow, block RAM when it is deep."""

from typing import ClassVar, Literal

from amaranth.hdl import Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError
from hw.lib.loads import LOADS, copies
from hw.lib.memory import RamStyle, check_ram_style, uninitialised
from hw.lib.skid import Skid

#: Deepest FIFO in LUTRAM by default: one level of 64-deep distributed RAM.
SHALLOW_DEPTH = 64


class Fifo(wiring.Component):
    """First in, first out.

    ``depth``: items it holds, at least 1; any number. ``ram_style``: ``"distributed"`` (shallow kind) or
    ``"block"`` / ``"ultra"`` (deep kind).  The default is distributed up to `SHALLOW_DEPTH`.

    Behaviour
    ---------
    No combinational path between ``i`` and ``o``.  One item a cycle, also when full; every second cycle at
    depth 1.  ``i.ready``, ``o.valid`` and ``empty`` are flip-flops.

    * Shallow: latency 1 cycle; ``o.payload`` is read through the LUTRAM.
    * Without a payload (a shape of no bits): as a shallow one, without memory.
    * Deep: latency 3 cycles.  A skid buffer follows the RAM's output latch.  It keeps the RAM's clock-to-out
      from the consumer and the consumer's ``ready`` from the RAM.

    Why
    ---
    The level includes the output register: a producer that reserves room (a DMA that issues bursts) may use
    every one of ``depth`` places.

    Example
    -------
    >>> fifo = Fifo(16, depth=65)
    >>> fifo.kind, fifo.ram_style, fifo.level.shape()
    ('deep', 'block', unsigned(7))
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
                #: Items held, with the output register; ``i.ready`` is ``level != depth``.
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

        # Row of the oldest item.  Each bit of LUTRAM has its own address input, shared by pairs of bits in
        # shallow ones.  Wide words are slices with their own row registers.
        slice_bits = LOADS - 8 if self.depth > 32 else 2 * (LOADS - 8)
        slices = max(1, -(-width // slice_bits)) if self.kind == "shallow" else 1
        write_rows = copies(Signal(range(self.depth), name="write_row"), slices)
        oldest_rows = copies(Signal(range(self.depth), name="oldest_row"), slices)
        write_row, oldest_row = write_rows[0], oldest_rows[0]
        with m.If(push):
            m.d.sync += [row.eq(following(write_row)) for row in write_rows]
        with m.If(pop):
            m.d.sync += [row.eq(following(oldest_row)) for row in oldest_rows]
        # Full and empty follow from the rows, which are registers, not from the level: `push` and `pop` end
        # long paths.
        room = Signal(init=1)
        m.d.comb += self.i.ready.eq(room)
        with m.If(push & ~pop):
            m.d.sync += [room.eq(following(write_row) != oldest_row), self.empty.eq(0)]
        with m.If(pop & ~push):
            m.d.sync += [room.eq(1), self.empty.eq(following(oldest_row) == write_row)]

        if self.kind == "shallow":
            m.d.comb += self.o.valid.eq(~self.empty)
        if not width:  # tokens are only counted: Yosys has no memory without bits
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
        # advances when the buffer has room; a row is read in the cycle after its write or later.
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
