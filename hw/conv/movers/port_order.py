"""Commands of several users of the memory ports, in the same order at every port."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.movers.layouts import ADDRESS_BITS
from hw.lib.arbiter import Arbiter
from hw.lib.dma.burst import command_layout


def port_commands(ports: int) -> data.ArrayLayout:
    """Return the layout of a command for all ports at once: a DMA command for each, of no bytes for some."""
    return data.ArrayLayout(command_layout(ADDRESS_BITS), ports)


class SourcedCommand(data.StructLayout):
    """A command of the DMA, and the number of its user."""

    def __init__(self, sources: int) -> None:
        super().__init__({"command": command_layout(ADDRESS_BITS), "source": range(max(2, sources))})


class PortOrder(wiring.Component):
    """Serves users in turn, and distributes commands to the ports.

    Behaviour
    ---------
    All ports get the command of one user before that of the next user.

    Why
    ---
    A word has slices from all ports, and each port returns bytes in the order of its commands.  If one port
    had the commands of two users in the other order, each user's slices would wait behind the other's: a
    deadlock.
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
        """Arbitrate, and distribute."""
        m = Module()
        m.submodules.arbiter = arbiter = Arbiter(port_commands(self._ports), inputs=self._sources)
        for n in range(self._sources):
            connect(m, flipped(self.i[n]), arbiter.i[n])
        asked = Signal(self._ports)  # ports that have taken their command
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
