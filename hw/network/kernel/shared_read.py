"""A read port of the scratchpad for two users that are never at work at once."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.network.scratchpad.reader import GranuleReadPort
from hw.network.scratchpad.shape import GranuleShape


class SharedRead(wiring.Component):
    """Joins two users at one port.

    Behaviour
    ---------
    A user asks, and takes responses, only while the other one has neither a request nor a response to come.
    """

    def __init__(self, shape: GranuleShape) -> None:
        super().__init__(
            {
                "users": In(GranuleReadPort(shape)).array(2),
                "port": Out(GranuleReadPort(shape)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        first, second = self.users
        request, response = self.port.request, self.port.response
        m.d.comb += [
            request.valid.eq(first.request.valid | second.request.valid),
            request.payload.eq(Mux(second.request.valid, second.request.payload, first.request.payload)),
            response.ready.eq(first.response.ready | second.response.ready),
        ]
        for user in self.users:
            m.d.comb += [
                user.request.ready.eq(request.ready),
                user.response.valid.eq(response.valid),
                user.response.payload.eq(response.payload),
            ]
        return m
