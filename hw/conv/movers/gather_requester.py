"""Reads single pixels through all ports."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import GatherRequest
from hw.conv.movers.join import JoinCommand
from hw.conv.movers.layouts import ADDRESS_BITS, GatherRead, map_rows
from hw.conv.movers.port_order import port_commands
from hw.lib.delay import delay
from hw.lib.fifo import Fifo

#: Stages from a request to its commands; places in their queues that are kept free for requests in flight.
_STAGES = 4
_LATE = _STAGES + 4
_COMMANDS = 16


class GatherRequester(wiring.Component):
    """Turns pixels into commands of the DMAs.

    ``rows_ahead``: requests whose words may be outstanding.

    Behaviour
    ---------
    A request a cycle; a port without bytes gets no command.  The address of a pixel is ``address + row *
    pitch + column * units``: products, sums of two, sum.
    """

    def __init__(self, config: ConvConfig, *, rows_ahead: int) -> None:
        self._config = config
        self._rows_ahead = rows_ahead
        super().__init__(
            {
                #: Maps, in the order of the layers that gather.
                "i": In(stream.Signature(GatherRead(config))),
                "requests": In(stream.Signature(GatherRequest())),
                "commands": Out(stream.Signature(port_commands(config.ports))),
                #: A command for each port.
                "rows": Out(stream.Signature(map_rows(config))).array(config.ports),
                #: One for each request for pixels.
                "joins": Out(stream.Signature(JoinCommand(config))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Accept a request when all queues have room, so that nothing stalls in the stages."""
        m = Module()
        config = self._config
        job = Signal(GatherRead(config), reset_less=True)
        active = Signal()
        room = Signal()
        request = self.requests.payload
        go = Signal()
        flights = self._flights(m, go)
        m.d.comb += [
            self.requests.ready.eq(active & room),
            go.eq(self.requests.valid & self.requests.ready & ~request.ends),
            # Addresses of the last requests are still being computed when a map ends.
            self.i.ready.eq(~active & ~Cat(flights).any()),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [job.eq(self.i.payload), active.eq(1)]
        with m.If(self.requests.valid & self.requests.ready & request.ends):
            m.d.sync += active.eq(0)

        two = delay(m, "two", request.two, _STAGES, reset=False)
        m.submodules.joins = joins = Fifo(JoinCommand(config), depth=self._rows_ahead)
        connect(m, joins.o, flipped(self.joins))
        m.submodules.commands = commands = Fifo(port_commands(config.ports), depth=_COMMANDS)
        connect(m, commands.o, flipped(self.commands))
        m.d.comb += [
            commands.i.valid.eq(flights[-1]),
            joins.i.valid.eq(flights[-1]),
            joins.i.payload.words.eq(job.words),
            joins.i.payload.total.eq(Mux(two, job.words << 1, job.words)),
            *(joins.i.payload.units[p].eq(job.ports[p].units) for p in range(config.ports)),
        ]
        queues = [joins, commands]
        for p in range(config.ports):
            port = job.ports[p]
            m.submodules[f"rows_{p}"] = rows = Fifo(map_rows(config), depth=self._rows_ahead)
            connect(m, rows.o, flipped(self.rows[p]))
            queues.append(rows)
            command = commands.i.payload[p]
            m.d.comb += [
                rows.i.valid.eq(flights[-1] & (port.units != 0)),
                command.address.eq(self._address(m, p, port, request)),
                command.length.eq(Mux(two, port.units << 1, port.units)),
                rows.i.payload.rows.eq(Mux(two, 2, 1)),
                rows.i.payload.units.eq(port.units),
            ]
        m.d.sync += room.eq(Cat(queue.level <= queue.depth - _LATE for queue in queues).all())
        return m

    def _flights(self, m: Module, go: Signal) -> list[Any]:
        """Return the request of each stage."""
        flights, flight = [], go
        for n in range(_STAGES):
            flight = delay(m, f"flight_{n}", flight, 1)
            flights.append(flight)
        return flights

    def _address(self, m: Module, p: int, port: Any, request: Any) -> Signal:
        """Return the address of a request's pixel; names end in the stage of their registers."""
        half = len(port.pitch) // 2
        row, column = (delay(m, f"{name}_1_{p}", request[name], 1, reset=False) for name in ("row", "column"))

        def product(name: str, a: Any, b: Any) -> Signal:
            """Build a multiplier of half a pitch: one DSP has no more bits."""
            result = Signal(len(a) + len(b), name=f"{name}_2_{p}", reset_less=True)
            m.d.sync += result.eq(a * b)
            return result

        low, high = product("low", row, port.pitch[:half]), product("high", row, port.pitch[half:])
        across = product("across", column, port.units)
        down_3, across_3, address_4 = (
            Signal(ADDRESS_BITS, name=f"{name}_{p}", reset_less=True)
            for name in ("down_3", "across_3", "address_4")
        )
        m.d.sync += [
            down_3.eq(low + (high << half)),
            across_3.eq(port.address + across),
            address_4.eq(down_3 + across_3),
        ]
        return address_4
