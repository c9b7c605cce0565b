"""Commands of several users of the memory ports, in one order at all of them."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.movers.layouts import ADDRESS_BITS
from hw.lib.arbiter import Arbiter
from hw.lib.dma.burst import command_layout


def port_commands(ports: int) -> data.ArrayLayout:
    """Return what is asked of all ports at once: a command of the DMA for each, of no bytes where none is."""
    return data.ArrayLayout(command_layout(ADDRESS_BITS), ports)


class SourcedCommand(data.StructLayout):
    """A command of the DMA, and whose it is."""

    def __init__(self, sources: int) -> None:
        super().__init__({"command": command_layout(ADDRESS_BITS), "source": range(max(2, sources))})


class PortOrder(wiring.Component):
    """Takes users in turn and asks the ports.

    Behaviour
    ---------
    What one user asks of the ports is asked before anything of the next one's.

    Why
    ---
    A word has slices from all ports, and each port gives its bytes in the order of its commands.  If one port
    had the commands of two users the other way round, each user's slices would wait behind the other's.
    """

    #: Cycles from ``i`` to ``o``.
    LATENCY: ClassVar = Arbiter.LATENCY

    def __init__(self, *, sources: int, ports: int) -> None:
        self._sources = sources
        self._ports = ports
        super().__init__(
            {
                "i": In(stream.Signature(port_commands(ports))).array(sources),
                "o": Out(stream.Signature(SourcedCommand(sources))).array(ports),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        m.submodules.arbiter = arbiter = Arbiter(port_commands(self._ports), inputs=self._sources)
        for n in range(self._sources):
            connect(m, flipped(self.i[n]), arbiter.i[n])
        asked = Signal(self._ports)  # ports that have taken theirs
        done = []
        for p, port in enumerate(self.o):
            command = arbiter.o.payload[p]
            wanted = command.length != 0
            m.d.comb += [
                port.valid.eq(arbiter.o.valid & wanted & ~asked[p]),
                port.payload.command.eq(command),
                port.payload.source.eq(arbiter.source),
            ]
            done.append(~wanted | asked[p] | port.ready)
        m.d.comb += arbiter.o.ready.eq(Cat(done).all())
        with m.If(arbiter.o.valid):
            m.d.sync += asked.eq(Mux(arbiter.o.ready, 0, Cat(done)))
        return m
