"""A table of the program: rows written once, then sent in order."""

from collections.abc import Sequence

from amaranth.hdl import Module, ResetInserter, Signal
from amaranth.lib import data, memory, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.memory import uninitialised
from hw.lib.skid import Skid
from hw.scheduler.program.image import Row


class ProgramTable(wiring.Component):
    """Sends its rows, once after every ``start``.

    ``layout``: of a row. ``depth``: most rows, at least 1. ``rows``: field values of a frozen table (a ROM),
    or None for one that is written.

    Behaviour
    ---------
    ``o`` offers the first row three cycles after ``start``, and the next row in the cycle after each
    handshake.  A row written later is offered three cycles after its write, if the rows before it are sent.

    Why
    ---
    A static schedule is read from front to back.  So no table needs an address, and each consumer runs ahead
    of the others on its own.  A consumer compares the row's step before it accepts the row.  The `Skid` keeps
    that comparison out of the RAM's read enable.
    """

    def __init__(self, layout: data.StructLayout, *, depth: int, rows: Sequence[Row] | None = None) -> None:
        self._layout = layout
        self._depth = max(2, depth)  # an address has at least one bit
        self._rows = rows
        super().__init__(
            {
                "clear": In(1),  #: Drop all rows.
                "write": In(1),  #: Append ``row``.
                "row": In(layout),
                "count": Out(range(depth + 1)),  #: Rows written.
                "start": In(1),  #: One-cycle pulse: begin again with the first row.
                "o": Out(stream.Signature(layout)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        if self._rows is None:
            m.submodules.ram = ram = uninitialised(
                width=self._layout.size, depth=self._depth, ram_style="block"
            )
            port = ram.write_port()
            m.d.comb += [port.addr.eq(self.count), port.data.eq(self.row), port.en.eq(self.write)]
            m.d.sync += self.count.eq(self.count + self.write)
            with m.If(self.clear):
                m.d.sync += self.count.eq(0)
        else:
            m.submodules.rom = ram = memory.Memory(
                shape=self._layout, depth=self._depth, init=self._rows, attrs={"ram_style": "block"}
            )
            m.d.comb += self.count.eq(len(self._rows))
        read = ram.read_port()
        position = Signal.like(self.count)
        sending = Signal()  # nothing is sent before the first start
        more = sending & (position != self.count)
        latched = Signal()  # the RAM's output holds a row; its clock-to-out is slow
        again = self.clear | self.start
        m.submodules.skid = skid = ResetInserter(again)(Skid(self._layout))
        advance = ~latched | skid.i.ready
        m.d.comb += [
            read.addr.eq(position),
            read.en.eq(advance & more),
            skid.i.valid.eq(latched),
            skid.i.payload.eq(read.data),
        ]
        connect(m, skid.o, flipped(self.o))
        with m.If(advance):
            m.d.sync += [latched.eq(more), position.eq(position + more)]
        with m.If(again):
            m.d.sync += [latched.eq(0), position.eq(0), sending.eq(self.start)]
        return m
