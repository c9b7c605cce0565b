"""The store of the matrix unit's tap rows, and their way to the feeds' tables, ahead of the commands."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.memory import ports, uninitialised
from hw.lib.skid import Skid
from hw.network.config import NetworkConfig
from hw.network.kernel.loader import SlotWrite
from hw.network.matrix.feed_command import TileEntry
from hw.network.matrix.unit import UnitEntry
from hw.network.program.records import TableNumber, tap_run_layout


class TapStore(wiring.Component):
    """Keeps the tap rows of a program, and sends those of each command.

    Behaviour
    ---------
    A row a cycle, and two cycles between runs.  The first row of a run is on ``entry`` `LATENCY` cycles after
    the run was taken.
    """

    #: Run, RAM, queue.
    LATENCY = 2 + Skid.LATENCY

    def __init__(self, config: NetworkConfig) -> None:
        self._config = config
        super().__init__(
            {
                "slot": In(SlotWrite()),  #: Rows of other tables are ignored.
                "run": In(stream.Signature(tap_run_layout(config))),  #: At least a row each.
                "entry": Out(stream.Signature(UnitEntry(config.shape))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Run -> counter -> RAM -> queue."""
        m = Module()
        layout = TileEntry(self._config.shape)
        m.submodules.ram = ram = uninitialised(
            width=layout.size, depth=self._config.max_taps, ram_style="block"
        )
        to_ram, from_ram = ports(ram)
        m.d.sync += [
            to_ram.en.eq(self.slot.enable & (self.slot.table == TableNumber.TAPS)),
            to_ram.addr.eq(self.slot.row),
            to_ram.data.eq(self.slot.data),
        ]
        run = self.run.payload
        row = Signal.like(run.first)
        left = Signal.like(run.count)  # rows after this one
        last = Signal()
        two = Signal()
        reading = Signal()
        fetched = Signal()  # the RAM's output is a row
        fetched_two = Signal()
        advance = Signal()
        m.submodules.queue = queue = Skid(self.entry.payload.shape())
        item = data.View(self.entry.payload.shape(), queue.i.payload.as_value())
        m.d.comb += [
            self.run.ready.eq(~reading),
            advance.eq(queue.i.ready),
            from_ram.addr.eq(row),
            from_ram.en.eq(advance),
            queue.i.valid.eq(fetched),
            Value.cast(item.entry).eq(from_ram.data),
            item.two.eq(fetched_two),
        ]
        with m.If(advance):
            m.d.sync += [fetched.eq(reading), fetched_two.eq(two)]
            with m.If(reading):
                m.d.sync += [row.eq(row + 1), left.eq(left - 1), last.eq(left == 1), reading.eq(~last)]
        with m.If(~reading):
            m.d.sync += [
                reading.eq(self.run.valid),
                row.eq(run.first),
                left.eq(run.count - 1),
                last.eq(run.count == 1),
                two.eq(run.two),
            ]
        connect(m, queue.o, flipped(self.entry))
        return m
