"""Steps through a map chunk by chunk and issues a command for each to all ports."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import ConvConfig
from hw.conv.movers.layouts import ADDRESS_BITS, MapRead, map_rows
from hw.conv.movers.port_order import port_commands
from hw.lib.delay import payload_register


class Requester(wiring.Component):
    """Turns a map into commands of the DMAs, as tokens allow.

    Behaviour
    ---------
    At most a chunk every second cycle; a port without bytes gets no command.
    """

    #: Cycles from a token to its first command, and from a command to the next.
    LATENCY: ClassVar = 2
    INTERVAL: ClassVar = 2

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(MapRead(config))),
                #: ``token``, ``row_token``: credits for ``token_chunks`` chunks, of blocks and of rows.  A
                #: map uses those of its own unit, since the other unit may already have room for the next
                #: map.
                "token": In(stream.Signature(1)),
                "row_token": In(stream.Signature(1)),
                "commands": Out(stream.Signature(port_commands(config.ports))),
                #: A command for each port, issued at the same time.
                "rows": Out(stream.Signature(map_rows(config))).array(config.ports),
                "busy": Out(1),  #: A map is active.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Count chunks, rows and addresses."""
        m = Module()
        config = self._config
        job = Signal(MapRead(config), reset_less=True)
        # after this one
        rows_left = Signal.like(job.rows)
        chunks_left = Signal.like(job.chunks)
        covered = Signal.like(job.token_chunks)  # chunks left of a token
        last = Signal()
        allowed = Signal()
        free = Signal()
        go = Signal()
        m.d.comb += [
            last.eq(chunks_left == 0),
            allowed.eq((covered != 0) | (job.token_chunks == 0)),
            self.token.ready.eq(self.busy & ~allowed & ~job.by_row),
            self.row_token.ready.eq(self.busy & ~allowed & job.by_row),
            self.i.ready.eq(~self.busy),
        ]
        commands = self.commands
        idle = Signal(config.ports + 1)
        # Commands are offered in one cycle and checked in the next: no `ready` reaches the counters.
        m.d.sync += free.eq(idle.all() & ~go & ~free)
        m.d.comb += go.eq(self.busy & allowed & free)
        with m.If((self.token.valid & self.token.ready) | (self.row_token.valid & self.row_token.ready)):
            m.d.sync += covered.eq(job.token_chunks)
        with m.If(go):
            m.d.sync += [covered.eq(covered - (covered != 0)), chunks_left.eq(chunks_left - 1)]
            with m.If(last):
                m.d.sync += [chunks_left.eq(job.chunks - 1), rows_left.eq(rows_left - 1)]
                m.d.sync += self.busy.eq(rows_left != 0)
        with m.If(self.i.valid & ~self.busy):
            new = self.i.payload
            m.d.sync += [job.eq(new), rows_left.eq(new.rows - 1), chunks_left.eq(new.chunks - 1)]
            m.d.sync += [covered.eq(0), self.busy.eq(1)]

        with m.If(commands.ready):
            m.d.sync += commands.valid.eq(0)
        with m.If(go):
            m.d.sync += commands.valid.eq(1)
        quiet = [~(commands.valid & ~commands.ready)]
        for p in range(config.ports):
            port, rows = job.ports[p], self.rows[p]
            command = payload_register(m, commands.payload[p], name=f"command_{p}")
            part = payload_register(m, rows.payload, name=f"rows_{p}")
            row, place = (
                Signal(ADDRESS_BITS, name=f"{name}_{p}", reset_less=True) for name in ("row", "place")
            )
            with m.If(rows.ready):
                m.d.sync += rows.valid.eq(0)
            with m.If(go):
                m.d.sync += [
                    rows.valid.eq(port.units != 0),
                    command.address.eq(place),
                    command.length.eq(Mux(last, port.last_bytes, port.bytes)),
                    part.rows.eq(Mux(last, job.last_pixels, job.pixels)),
                    part.units.eq(port.units),
                    place.eq(Mux(last, row + port.pitch, place + port.bytes)),
                ]
                with m.If(last):
                    m.d.sync += row.eq(row + port.pitch)
            with m.If(self.i.valid & ~self.busy):
                m.d.sync += [
                    row.eq(self.i.payload.ports[p].address),
                    place.eq(self.i.payload.ports[p].address),
                ]
            quiet.append(~(rows.valid & ~rows.ready))
        m.d.comb += idle.eq(Cat(quiet))
        return m
