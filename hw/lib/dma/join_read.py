"""Several readers behind one AXI port."""

from typing import ClassVar

from amaranth.hdl import Array, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect

from hw.errors import InputError
from hw.lib import axi
from hw.lib.arbiter import Arbiter
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid


class ReadJoin(wiring.Component):
    """Arbitrates several managers onto the read channels of one port, burst by burst.

    ``inputs``: managers, at least 2. ``data_width``, ``addr_width``: as of `axi.Signature`. ``bursts``:
    bursts that may be outstanding.

    Behaviour
    ---------
    A burst waits for at most one burst of each other manager.  An address has a latency of 2 cycles, at one a
    cycle; data pass in the same cycle.

    Why
    ---
    All bursts have one ID, so answers follow the order of addresses, and a queue of manager numbers routes
    each beat.  A manager that is not ready blocks the head of the line.  Managers that are always ready, like
    `hw.lib.dma.read.ReadDMA`, share only the port's rate.

    Example
    -------
    >>> join = ReadJoin(inputs=3, data_width=256)
    >>> len(join.i), ReadJoin.ADDRESS_LATENCY
    (3, 2)
    """

    #: Cycles from a manager's address to the port's.
    ADDRESS_LATENCY: ClassVar = Arbiter.LATENCY + Skid.LATENCY

    def __init__(self, *, inputs: int, data_width: int, addr_width: int = 64, bursts: int = 64) -> None:
        if not isinstance(inputs, int) or inputs < 2:
            raise InputError("inputs", inputs, "an integer of at least 2")
        if not isinstance(bursts, int) or bursts < 1:
            raise InputError("bursts", bursts, "an integer of at least 1")
        port = axi.ReadSignature(data_width=data_width, addr_width=addr_width)
        self._bursts = bursts
        super().__init__(
            {
                "i": In(port).array(inputs),  #: From the managers, with ID 0.
                "o": Out(port),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Arbiter -> address register; a queue of manager numbers selects the answers' manager."""
        m = Module()
        managers = list(self.i)
        address = data.StructLayout({"address": self.o.araddr.shape(), "len": 8})
        m.submodules.arbiter = arbiter = Arbiter(address, inputs=len(managers))
        m.submodules.addresses = addresses = Skid(address)
        m.submodules.turns = turns = Fifo(range(len(managers)), depth=self._bursts)
        # No answer is faster than its turn through both.
        m.submodules.turn = turn = Skid(range(len(managers)))
        connect(m, turns.o, turn.i)
        both = addresses.i.ready & turns.i.ready
        m.d.comb += [
            addresses.i.payload.eq(arbiter.o.payload),
            addresses.i.valid.eq(arbiter.o.valid & turns.i.ready),
            turns.i.payload.eq(arbiter.source),
            turns.i.valid.eq(arbiter.o.valid & addresses.i.ready),
            arbiter.o.ready.eq(both),
            self.o.arvalid.eq(addresses.o.valid),
            self.o.araddr.eq(addresses.o.payload.address),
            self.o.arlen.eq(addresses.o.payload.len),
            addresses.o.ready.eq(self.o.arready),
            self.o.rready.eq(Array([manager.rready for manager in managers])[turn.o.payload]),
            turn.o.ready.eq(self.o.rvalid & self.o.rready & self.o.rlast),
        ]
        for n, manager in enumerate(managers):
            m.d.comb += [
                arbiter.i[n].valid.eq(manager.arvalid),
                arbiter.i[n].payload.address.eq(manager.araddr),
                arbiter.i[n].payload.len.eq(manager.arlen),
                manager.arready.eq(arbiter.i[n].ready),
                manager.rvalid.eq(self.o.rvalid & (turn.o.payload == n)),
                *(getattr(manager, name).eq(getattr(self.o, name)) for name in ("rdata", "rresp", "rlast")),
            ]
        return m
