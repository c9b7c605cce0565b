"""A read port whose requests follow words that a core writes."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.network.matrix.word_gate import CORES, COUNT_BITS, FollowFields, WordGate
from hw.network.scratchpad.reader import GranuleReadPort
from hw.network.scratchpad.shape import GranuleShape


class GatedRead(wiring.Component):
    """Holds requests of a unit that executes its commands one after the other.

    Behaviour
    ---------
    Requests pass at once, or when the gate opens (`WordGate`).  The first one of a command comes after its
    ``start``.
    """

    def __init__(self, shape: GranuleShape) -> None:
        super().__init__(
            {
                "user": In(GranuleReadPort(shape)),
                "port": Out(GranuleReadPort(shape)),
                "counts": In(COUNT_BITS).array(CORES),  #: Words that each core has written.
                "start": In(1),  #: A command begins.
                "follow": In(FollowFields()),  #: With ``start``.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        m.submodules.gate = gate = WordGate()
        user, port = self.user, self.port
        m.d.comb += [
            *(own.eq(count) for own, count in zip(gate.counts, self.counts, strict=True)),
            gate.start.eq(self.start),
            gate.follow.eq(self.follow),
            gate.taken.eq(port.request.valid & port.request.ready),
            port.request.valid.eq(user.request.valid & gate.go),
            port.request.payload.eq(user.request.payload),
            user.request.ready.eq(port.request.ready & gate.go),
            user.response.valid.eq(port.response.valid),
            user.response.payload.eq(port.response.payload),
            port.response.ready.eq(user.response.ready),
        ]
        return m
