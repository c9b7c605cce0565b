"""Bursts in flight at a memory port."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Outstanding(wiring.Component):
    """Counts the unanswered bursts of a port.

    ``bits``: of the counts: fewer than 2 ** bits bursts are in flight each way.
    """

    def __init__(self, *, bits: int = 12) -> None:
        self._bits = bits
        super().__init__(
            {
                #: ``ar``, ``r``, ``aw``, ``b``: handshakes; of r, that of the last beat.
                "ar": In(1),
                "r": In(1),
                "aw": In(1),
                "b": In(1),
                "busy": Out(1),  #: A burst is in flight, as of the previous cycle.
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two counts."""
        m = Module()
        some = []
        for name, more, less in (("reads", self.ar, self.r), ("writes", self.aw, self.b)):
            count = Signal(self._bits, name=name)
            m.d.sync += count.eq(count + more - less)
            some.append(count.any() | more)
        m.d.sync += self.busy.eq(some[0] | some[1])
        return m

    def watch(self, m: Module, port: Any) -> None:
        """Connect it to an AXI port of the component being elaborated."""
        m.d.comb += [
            self.ar.eq(port.arvalid & port.arready),
            self.r.eq(port.rvalid & port.rready & port.rlast),
            self.aw.eq(port.awvalid & port.awready),
            self.b.eq(port.bvalid & port.bready),
        ]
