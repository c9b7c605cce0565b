"""Writes beats of lines over all ports, and erases them."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.place import InlinePlacer, Placer
from hw.lib.skid import Skid
from hw.oram.core.layouts import ADDRESS_BITS
from hw.oram.movers.hbm.lines import Lines, write_signature
from hw.oram.movers.hbm.write_port import LineWritePort


class LineWriter(wiring.Component):
    """Random writes of single beats of lines, with strobes; or erasure of all lines.

    ``deadline``: cycles from ``i`` to the response of a beat. ``depth``: maximum number of beats in the queue
    or unanswered at a port. ``cell``: name of the port's cell, unique in the design. ``placer``: places the
    ports; by default as ordinary submodules.

    Behaviour
    ---------
    One beat a cycle; `LATENCY` cycles from ``i`` to ``awvalid`` and ``wvalid`` at an idle port, two more if
    its queue is in block RAM. Ports erase their slices in parallel, a beat a cycle each; see `LineWritePort`.
    """

    LATENCY: ClassVar = Skid.LATENCY + LineWritePort.LATENCY

    def __init__(
        self,
        lines: Lines,
        *,
        deadline: int,
        depth: int = 32,
        cell: str = "write_port",
        placer: Placer | None = None,
    ) -> None:
        self._lines = lines
        # The port's deadline starts when the beat has left the first register.
        self._port_deadline = deadline - Skid.LATENCY
        self._depth = depth
        self._cell = cell
        self._placer = placer or InlinePlacer()
        super().__init__(
            {
                #: Address of each port's first line, a multiple of 4096.
                "base": In(ADDRESS_BITS).array(lines.ports),
                #: Beats, in any order of lines; a port writes its beats in order.
                "i": In(stream.Signature(lines.beat_write)),
                "axi": Out(write_signature(lines)).array(lines.ports),
                #: A beat is unanswered: registered, so it falls a cycle late.
                "busy": Out(1),
                "late": Out(1),  #: A beat missed its deadline, since reset.
                "error": Out(1),  #: A response other than OKAY arrived since reset.
                "erase": In(1),  #: Level: beats are dropped, and every slice is erased once.
                "erased": Out(1),  #: Every slice is erased, since ``erase`` rose.
            }
        )

    def _port(self) -> LineWritePort:
        return LineWritePort(self._lines, deadline=self._port_deadline, depth=self._depth)

    def elaborate(self, platform: Any) -> Module:
        """Send each beat to its port."""
        m = Module()
        lines = self._lines
        m.submodules.beat = beat = Skid(lines.beat_write)
        wiring.connect(m, wiring.flipped(self.i), beat.i)
        if lines.swapped:  # in front of the register: behind it the bits of the line begin a long path
            odd = self.i.payload.line[lines.port_bits]
            m.d.comb += beat.i.payload.beat.eq(self.i.payload.beat ^ odd)
        payload = beat.o.payload
        number = payload.line[: lines.port_bits]
        first = payload.line[lines.port_bits :] * lines.beats
        erase = Signal()
        m.d.sync += erase.eq(self.erase)
        ports = []
        for p in range(lines.ports):
            port = self._placer.place(m, f"port_{p}", self._cell, self._port)
            wiring.connect(m, port.axi, wiring.flipped(self.axi[p]))
            here = number == p
            m.d.comb += [
                port.base.eq(self.base[p]),
                port.i.payload.beat.eq(first + payload.beat),
                port.i.payload.data.eq(payload.data),
                port.i.payload.strobe.eq(payload.strobe),
                port.i.valid.eq(beat.o.valid & here),
                port.erase.eq(erase),
            ]
            with m.If(here):
                m.d.comb += beat.o.ready.eq(port.i.ready)
            ports.append(port)
        m.d.sync += [
            self.busy.eq(self.i.valid | beat.o.valid | Cat(port.busy for port in ports).any()),
            self.late.eq(Cat(port.late for port in ports).any()),
            self.error.eq(Cat(port.error for port in ports).any()),
            self.erased.eq(Cat(port.erased for port in ports).all()),
        ]
        return m
