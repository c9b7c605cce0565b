"""A guard at a memory port: reports errors, and starts no burst after one."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib import axi
from hw.lib.delay import delay

#: Channels that are wires.
_WIRES = (
    *("araddr", "arlen", "arid", "rdata", "rresp", "rlast", "rid", "rvalid"),
    *("awaddr", "awlen", "awid", "wdata", "wstrb", "wlast", "bresp", "bid", "bvalid"),
)


class BusGuard(wiring.Component):
    """Connects an engine to a memory port, and can hold it.

    ``bits``: of the counts: fewer than 2 ** bits bursts are outstanding.

    Behaviour
    ---------
    Without ``hold`` every channel passes in the same cycle.  An address on the bus when ``hold`` rises stays
    until its transfer, as AXI requires.  ``i`` may be reset once ``idle`` is up.

    Why
    ---
    With its ports held an engine needs no gates to stop, whatever it does with corrupt data.  A gate in each
    valid and ready is an input of an existing LUT; a register would cost a cycle.

    Example
    -------
    >>> guard = BusGuard(axi.Signature(data_width=512))
    >>> guard.o.signature
    axi.Signature(data_width=512, addr_width=64, id_width=1)
    """

    ERROR_LATENCY: ClassVar = 2

    def __init__(self, signature: axi.Signature, *, bits: int = 10) -> None:
        self._bits = bits
        super().__init__(
            {
                #: The engine's port.  Its write data follow their address and wait for no other channel.
                "i": In(signature),
                "o": Out(signature),  #: The kernel's port.
                #: No further burst begins; outstanding ones end, even if the engine does not take their
                #: answers.
                "hold": In(1),
                #: A beat or a response other than OKAY, `ERROR_LATENCY` cycles ago.
                "error": Out(1),
                "idle": Out(1),  #: Held, and no burst is outstanding.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Gate the handshakes, and count outstanding bursts."""
        m = Module()
        i, o = self.i, self.o
        for name in _WIRES:
            source, target = (i, o) if o.signature.members[name].flow is Out else (o, i)
            m.d.comb += getattr(target, name).eq(getattr(source, name))
        # A register at each port, which may be far from the source of `hold`.
        hold = Signal()
        no_reads = Signal()
        no_writes = Signal()
        write_data = Signal(init=1)  # may pass
        m.d.sync += [
            hold.eq(self.hold),
            no_reads.eq(hold & (no_reads | ~o.arvalid | o.arready)),
            no_writes.eq(hold & (no_writes | ~o.awvalid | o.awready)),
        ]
        m.d.comb += [
            o.arvalid.eq(i.arvalid & ~no_reads),
            i.arready.eq(o.arready & ~no_reads),
            o.awvalid.eq(i.awvalid & ~no_writes),
            i.awready.eq(o.awready & ~no_writes),
            o.wvalid.eq(i.wvalid & write_data),
            i.wready.eq(o.wready & write_data),
            o.rready.eq(i.rready | hold),
            o.bready.eq(i.bready | hold),
        ]

        # Addressed bursts without their last data, or -1: data may be first.  When held and without a waiting
        # address, data pass until the count is 0.
        owed = Signal(self._bits)
        some_owed = Signal()
        following = Signal()
        addressed, sent = o.awvalid & o.awready, o.wvalid & o.wready & o.wlast
        m.d.comb += following.eq(some_owed)
        with m.If(addressed & ~sent):
            m.d.sync += owed.eq(owed + 1)
            m.d.comb += following.eq(~owed.all())
        with m.If(sent & ~addressed):
            m.d.sync += owed.eq(owed - 1)
            m.d.comb += following.eq(owed != 1)
        m.d.sync += [
            some_owed.eq(following),
            write_data.eq(~hold | ~(no_writes | ~o.awvalid | o.awready) | following),
        ]

        # One count for reads and writes, of registered events; `settled` delays the hold as much.
        settled = Signal(3)
        count = Signal(self._bits)
        events = {
            "read_begun": o.arvalid & o.arready,
            "write_begun": addressed,
            "read_ended": o.rvalid & o.rready & o.rlast,
            "write_ended": o.bvalid & o.bready,
        }
        begun_read, begun_write, ended_read, ended_write = (
            delay(m, name, event, 1) for name, event in events.items()
        )
        m.d.sync += [
            settled.eq((settled << 1) | (no_reads & no_writes)),
            count.eq(count + (begun_read + begun_write) - (ended_read + ended_write)),
            self.idle.eq(settled.all() & ~count.any()),
        ]

        read_error = Signal()
        write_error = Signal()
        m.d.sync += [
            read_error.eq(o.rvalid & o.rready & (o.rresp != axi.RESP_OKAY)),
            write_error.eq(o.bvalid & o.bready & (o.bresp != axi.RESP_OKAY)),
            self.error.eq(read_error | write_error),
        ]
        return m
