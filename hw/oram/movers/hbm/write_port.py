"""One HBM port that writes beats with strobes, checks the deadline of responses, and erases its slice."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.lib import axi
from hw.lib.fifo import Fifo
from hw.oram.core.layouts import ADDRESS_BITS
from hw.oram.movers.hbm.eraser import Eraser
from hw.oram.movers.hbm.lines import Lines, write_signature


def port_write_layout(lines: Lines) -> data.StructLayout:
    """Return a beat for a port: its byte offset from the base, data, strobe of bytes."""
    return data.StructLayout(
        {
            "beat": lines.beat_bits,
            "data": 8 * lines.port_bytes,
            "strobe": lines.port_bytes,
        }
    )


class LineWritePort(wiring.Component):
    """Writes single beats through one port, or erases all of its lines.

    ``deadline``: cycles to a beat's response. ``depth``: maximum number of beats in the queue or unanswered.

    Behaviour
    ---------
    One beat a cycle. An address and its first data appear on the bus in the same cycle.

    While ``erase`` is high, beats are taken and dropped. Earlier ones are written; when all are answered, the
    slice is erased once.
    """

    #: Cycles from ``i`` to ``awvalid`` and ``wvalid``.
    LATENCY: ClassVar = Fifo.LATENCY + 2

    def __init__(self, lines: Lines, *, deadline: int, depth: int) -> None:
        self._lines = lines
        self._deadline = deadline
        self._depth = depth
        super().__init__(
            {
                "base": In(ADDRESS_BITS),  #: Address of the port's first line, a multiple of 4096.
                "i": In(stream.Signature(port_write_layout(lines))),
                "axi": Out(write_signature(lines)),
                "busy": Out(1),  #: A beat is unanswered.
                "late": Out(1),  #: A beat missed its deadline, since reset.
                "error": Out(1),  #: A response other than OKAY arrived since reset.
                #: ``erase``, ``erased``: erase the slice; and it is erased. ``erase`` then falls, or stays.
                "erase": In(1),
                "erased": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Queue or eraser -> base added -> port registers; beside it, arrival times of unanswered beats."""
        m = Module()
        drops = Signal()
        m.d.sync += drops.eq(self.erase)
        m.submodules.eraser = eraser = Eraser(self._lines)
        m.submodules.queue = queue = Fifo(self.i.payload.shape(), depth=self._depth)
        m.submodules.times = times = Fifo(range(self._deadline + 1), depth=self._depth)
        now = Signal(range(self._deadline + 1))
        taken = self.i.valid & queue.i.ready & times.i.ready & ~drops
        m.d.sync += now.eq(now + 1)
        m.d.comb += [
            self.i.ready.eq((queue.i.ready & times.i.ready) | drops),
            queue.i.payload.eq(self.i.payload),
            queue.i.valid.eq(taken),
            times.i.payload.eq(now),
            times.i.valid.eq(taken),
            eraser.erase.eq(drops),
            eraser.idle.eq(times.empty),
            eraser.answer.eq(self.axi.bvalid),
            self.erased.eq(eraser.erased),
        ]
        self._bus(m, queue, eraser)

        # Responses arrive in order: the head of `times` is the oldest beat. Its age passes the deadline while
        # it is the head, or the previous head's did.
        age = Signal.like(now)
        waiting = Signal()
        m.d.comb += [
            self.axi.bready.eq(1),
            times.o.ready.eq(self.axi.bvalid),
            self.busy.eq(~times.empty),
        ]
        m.d.sync += [waiting.eq(times.o.valid), age.eq(now - times.o.payload)]
        with m.If(waiting & (age == self._deadline)):
            m.d.sync += self.late.eq(1)
        with m.If(self.axi.bvalid & (self.axi.bresp != axi.RESP_OKAY)):
            m.d.sync += self.error.eq(1)
        return m

    def _bus(self, m: Module, queue: Fifo, eraser: Eraser) -> None:
        """Advance when both channels of the bus are free: data never precede their address."""
        aligned = exact_log2(self._lines.port_bytes)
        beat, empty, erases = queue.o.payload, eraser.o.payload, eraser.active
        head = self._lines.head
        full = Signal()
        sent = Signal()
        given = Signal()
        address = Signal(ADDRESS_BITS - aligned, reset_less=True)
        held = Signal(8 * self._lines.port_bytes, reset_less=True)
        strobe = Signal(self._lines.port_bytes, reset_less=True)
        first = Signal(reset_less=True)
        last = Signal(reset_less=True)
        length = Signal.like(empty.length, reset_less=True)
        advance = Signal()
        free = Signal()
        m.d.comb += [
            free.eq((~sent | self.axi.awready) & (~given | self.axi.wready)),
            advance.eq(~full | free),
            queue.o.ready.eq(advance),
            eraser.o.ready.eq(advance),
            self.axi.awvalid.eq(sent),
            self.axi.wvalid.eq(given),
        ]
        with m.If(advance):
            m.d.sync += [
                full.eq(queue.o.valid | eraser.o.valid),
                address.eq(self.base[aligned:] + Mux(erases, empty.beat, beat.beat)),
                Cat(held, strobe).eq(Cat(beat.data, beat.strobe)),
                first.eq(empty.first | ~erases),
                last.eq(empty.last | ~erases),
                length.eq(Mux(erases, empty.length, 0)),
            ]
        # No beat of the queue is held then. Whether the port advances would be a long path to all bits.
        zeros = Cat(bit for n, bit in enumerate(held) if not head >> n & 1)
        ones = Cat(bit for n, bit in enumerate(held) if head >> n & 1)
        with m.If(erases):
            m.d.sync += [zeros.eq(0), strobe.eq(-1)]
            with m.If(advance):
                m.d.sync += ones.eq(empty.head.replicate(len(ones)))
        awaddr = Signal.like(address, reset_less=True)
        awlen = Signal.like(length, reset_less=True)
        wdata = Signal.like(held, reset_less=True)
        wstrb = Signal.like(strobe, reset_less=True)
        wlast = Signal(reset_less=True)
        m.d.comb += [
            self.axi.awaddr[aligned:].eq(awaddr),
            self.axi.awlen.eq(awlen),
            self.axi.wdata.eq(wdata),
            self.axi.wstrb.eq(wstrb),
            self.axi.wlast.eq(wlast),
        ]
        with m.If(free):
            m.d.sync += [
                Cat(sent, given).eq(Cat(full & first, full)),
                awaddr.eq(address),
                awlen.eq(length),
                Cat(wdata, wstrb, wlast).eq(Cat(held, strobe, last)),
            ]
        with m.Else():
            with m.If(self.axi.awready):
                m.d.sync += sent.eq(0)
            with m.If(self.axi.wready):
                m.d.sync += given.eq(0)
