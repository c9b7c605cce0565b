"""Several readers behind one AXI port."""

from __future__ import annotations

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
    """Gives the read channels of one port to several managers, whose bursts take turns.

    ``inputs``: managers, at least 2. ``data_width``, ``addr_width``: as of `axi.Signature`. ``bursts``:
    bursts that may be outstanding.

    Behaviour
    ---------
    A burst waits for no more than one of each other manager.  An address takes 2 cycles, one passes a cycle;
    data pass in the same cycle.

    Why
    ---
    With one ID for all, bursts are answered in the order of their addresses, so a queue of whose they are
    says where each beat goes.  A beat waits if its manager is not ready, and those behind it with it: as long
    as managers that are always ready, like `hw.lib.dma.read.ReadDMA`, are joined, they do not meet but in the
    port's rate.
    """

    #: Cycles of an address from a manager to the port.
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
                "i": In(port).array(inputs),  #: From the managers.  Their bursts have ID 0.
                "o": Out(port),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Arbiter -> address register; beside it a queue of the turns, and registers that choose by them."""
        m = Module()
        managers = list(self.i)
        address = data.StructLayout({"address": self.o.araddr.shape(), "len": 8})
        m.submodules.arbiter = arbiter = Arbiter(address, inputs=len(managers))
        m.submodules.addresses = addresses = Skid(address)
        m.submodules.turns = turns = Fifo(range(len(managers)), depth=self._bursts)
        # An answer comes at the earliest when its turn is through both.
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
