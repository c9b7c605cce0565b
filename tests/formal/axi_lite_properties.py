"""The rules of AXI-Lite as an Amaranth component that watches a port."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Elaboratable, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hw.lib import axi
from tests.formal.channel import RULES, Role, channel, difference, inputs, patience, transfers
from tests.support.proofs.formal import reach


class AxiLiteProperties(wiring.Component):
    """Rules of both sides of an AXI-Lite port.

    A register file is proved with ``manager="suppose", subordinate="check"``::

        m.submodules.rules = rules = AxiLiteProperties(
            dut.bus.signature, manager="suppose", subordinate="check", limit=1
        )
        attach(m, rules, dut.bus)
        free(m, dut.bus.awvalid, dut.bus.awaddr, ...)

    Parameters
    ----------
    signature
        Of the port.
    manager, subordinate
        ``"check"`` for the side under test, ``"suppose"`` for its environment.
    limit
        Transactions of a direction that the subordinate takes before it answers the first: its capacity.
    patience_cycles
        Cycles for which the subordinate may leave a manager waiting that does all it can: an address (of a
        write: with its data there, too) not taken while no response is held up, or a response not given.
        None: for ever, as the protocol allows.

    Members
    -------
    every member of the port : In
    addressed, filled : Out
        Write addresses and write data transferred and not answered yet.
    asked : Out
        Reads transferred and not answered yet.  An induction needs to know how these three relate to the
        state of the block under test; say so with `check` in the spec.

    Rules (IHI 0022H)
    -----------------
    Manager: aw, w and ar are low after reset (A3.1.2) and stable until the transfer (A3.2.1).
    Subordinate: b and r likewise; a write response only after its address and its data (A3.3.1), a read
    response only after its address; never EXOKAY (B1.1.1).
    """

    def __init__(
        self,
        signature: axi.LiteSignature,
        *,
        manager: Role,
        subordinate: Role,
        limit: int = 1,
        patience_cycles: int | None = None,
    ) -> None:
        self._manager = RULES[manager]
        self._subordinate = RULES[subordinate]
        self._limit = limit
        self._patience_cycles = patience_cycles
        count = Out(range(limit + 2))
        super().__init__(inputs(signature) | {"addressed": count, "filled": count, "asked": count})

    def elaborate(self, platform: Any) -> Elaboratable:
        """State the rules."""
        m = Module()
        manager, subordinate, limit = self._manager, self._subordinate, self._limit
        channel(m, manager, "aw", self.awvalid, self.awready, self.awaddr)
        channel(m, manager, "w", self.wvalid, self.wready, self.wdata, self.wstrb)
        channel(m, manager, "ar", self.arvalid, self.arready, self.araddr)
        channel(m, subordinate, "b", self.bvalid, self.bready, self.bresp)
        channel(m, subordinate, "r", self.rvalid, self.rready, self.rdata, self.rresp)

        moved = {
            name: transfers(m, name, getattr(self, f"{name}valid"), getattr(self, f"{name}ready"))
            for name in ("aw", "w", "b", "ar", "r")
        }
        addressed = difference(m, "aw_open", limit=limit, up=moved["aw"], down=moved["b"])
        filled = difference(m, "w_open", limit=limit, up=moved["w"], down=moved["b"])
        asked = difference(m, "ar_open", limit=limit, up=moved["ar"], down=moved["r"])
        m.d.comb += [self.addressed.eq(addressed), self.filled.eq(filled), self.asked.eq(asked)]
        for name, count in (("write address", addressed), ("write data", filled), ("read", asked)):
            subordinate(m, count <= limit, f"no {name} beyond the capacity is taken")

        with m.If(self.bvalid):
            subordinate(m, addressed != 0, "a write response follows its address")
            subordinate(m, filled != 0, "a write response follows its data")
            subordinate(m, self.bresp != 1, "a write response is not EXOKAY")
        with m.If(self.rvalid):
            subordinate(m, asked != 0, "a read response follows its address")
            subordinate(m, self.rresp != 1, "a read response is not EXOKAY")

        if self._patience_cycles is not None:
            held_b, held_r = self.bvalid & ~self.bready, self.rvalid & ~self.rready
            has_address = self.awvalid | (addressed > filled)
            has_data = self.wvalid | (filled > addressed)
            for held, message in (
                (self.awvalid & ~self.awready & has_data & ~held_b, "a write address is taken in time"),
                (self.wvalid & ~self.wready & has_address & ~held_b, "write data are taken in time"),
                (self.arvalid & ~self.arready & ~held_r, "a read address is taken in time"),
                ((addressed != 0) & (filled != 0) & ~self.bvalid, "a write response comes in time"),
                ((asked != 0) & ~self.rvalid, "a read response comes in time"),
            ):
                patience(m, subordinate, self._patience_cycles, held, message)

        reach(m, moved["b"], "a write is done")
        reach(m, moved["r"], "a read is done")
        reach(m, moved["b"] & moved["r"], "a write and a read end together")
        return m
