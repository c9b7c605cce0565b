"""One HBM port that writes beats with strobes, and checks the deadline of their responses."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.lib import axi
from hw.lib.fifo import Fifo
from hw.oram.core.layouts import ADDRESS_BITS
from hw.oram.movers.hbm.lines import Lines, write_signature


def port_write_layout(lines: Lines) -> data.StructLayout:
    """Return a beat for a port: its byte offset from the base, data, strobe of bytes."""
    return data.StructLayout(
        {
            "beat": lines.offset_bits - exact_log2(lines.port_bytes),
            "data": 8 * lines.port_bytes,
            "strobe": lines.port_bytes,
        }
    )


class LineWritePort(wiring.Component):
    """Writes single beats through one port.

    ``deadline``: cycles to a beat's response. ``depth``: maximum number of beats in the queue or unanswered.

    Behaviour
    ---------
    One beat a cycle. An address and its data appear on the bus in the same cycle.
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
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Queue -> base added -> port registers; beside it, the arrival times of unanswered beats."""
        m = Module()
        m.submodules.queue = queue = Fifo(self.i.payload.shape(), depth=self._depth)
        m.submodules.times = times = Fifo(range(self._deadline + 1), depth=self._depth)
        now = Signal(range(self._deadline + 1))
        taken = self.i.valid & self.i.ready
        m.d.sync += now.eq(now + 1)
        m.d.comb += [
            self.i.ready.eq(queue.i.ready & times.i.ready),
            queue.i.payload.eq(self.i.payload),
            queue.i.valid.eq(taken),
            times.i.payload.eq(now),
            times.i.valid.eq(taken),
        ]
        self._bus(m, queue)

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

    def _bus(self, m: Module, queue: Fifo) -> None:
        """Advance when both channels of the bus are free: data never precede their address."""
        aligned = exact_log2(self._lines.port_bytes)
        beat = queue.o.payload
        full = Signal()
        sent = Signal()
        given = Signal()
        address = Signal(ADDRESS_BITS - aligned, reset_less=True)
        held = Signal(8 * self._lines.port_bytes, reset_less=True)
        strobe = Signal(self._lines.port_bytes, reset_less=True)
        free = Signal()
        m.d.comb += [
            free.eq((~sent | self.axi.awready) & (~given | self.axi.wready)),
            queue.o.ready.eq(~full | free),
            self.axi.awvalid.eq(sent),
            self.axi.wvalid.eq(given),
            self.axi.wlast.eq(1),
        ]
        with m.If(queue.o.ready):
            m.d.sync += [
                full.eq(queue.o.valid),
                address.eq(self.base[aligned:] + beat.beat),
                Cat(held, strobe).eq(Cat(beat.data, beat.strobe)),
            ]
        awaddr = Signal.like(address, reset_less=True)
        wdata = Signal.like(held, reset_less=True)
        wstrb = Signal.like(strobe, reset_less=True)
        m.d.comb += [
            self.axi.awaddr[aligned:].eq(awaddr),
            self.axi.wdata.eq(wdata),
            self.axi.wstrb.eq(wstrb),
        ]
        with m.If(free):
            m.d.sync += [
                Cat(sent, given).eq(Cat(full, full)),
                awaddr.eq(address),
                Cat(wdata, wstrb).eq(Cat(held, strobe)),
            ]
        with m.Else():
            with m.If(self.axi.awready):
                m.d.sync += sent.eq(0)
            with m.If(self.axi.wready):
                m.d.sync += given.eq(0)
