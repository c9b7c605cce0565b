"""The matrix unit: feeds, weights, array and drain behind one command.

::

    commands ---> feeds (1 or 2) --> sweep --> array --> drain --> scratchpad
    tap tiles --> (from scratchpad)    |         |         |
    weights ----> ports -> packets ----+---------+     residual
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib import axi
from hw.lib.fifo import Fifo
from hw.lib.place import Placer
from hw.network.matrix.array import MatrixArray
from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.drain import Drain
from hw.network.matrix.drain_command import DrainCommand
from hw.network.matrix.feed import PixelFeed
from hw.network.matrix.feed_command import TABLE_ENTRIES, FeedCommand, TileEntry
from hw.network.matrix.packet_kinds import PacketKinds, PacketRun
from hw.network.matrix.sweep import MatrixSweep, SweepCommand
from hw.network.matrix.weight_port import ADDRESS_BITS
from hw.network.matrix.weight_stream import WeightPass, WeightStream
from hw.network.matrix.word_gate import CORES, COUNT_BITS, FollowFields, count_words
from hw.network.scratchpad.reader import GranuleReadPort
from hw.network.scratchpad.shape import GranuleShape
from hw.network.scratchpad.writer import GranuleWritePort
from hw.network.tables.layouts import GroupWrite
from hw.network.tables.table_copy import TableCopy

#: Commands that wait for the sweep, and for the drain.
_SWEEPS_AHEAD, _RESULTS_AHEAD = 2, 4


class UnitCommand(data.StructLayout):
    """A matrix command in the unit's parts; the second feed has work only at two pixels a cycle."""

    def __init__(self, shape: GranuleShape, config: MatrixConfig) -> None:
        super().__init__(
            {
                "feeds": data.ArrayLayout(FeedCommand(shape), 2),
                "k_tiles": range(TABLE_ENTRIES + 1),
                "two": 1,
                "drain": DrainCommand(shape),
                "table": range(config.tables),  #: That results pass, if the drain's settings say so.
                "follow": FollowFields(),  #: Words that the first requests of each feed wait for.
            }
        )


class UnitEntry(data.StructLayout):
    """A row of the tap table; ``two``: for both feeds."""

    def __init__(self, shape: GranuleShape) -> None:
        super().__init__({"entry": TileEntry(shape), "two": 1})


class UnitWeights(data.StructLayout):
    """The packets of a command, as words of the ports and as packets."""

    def __init__(self) -> None:
        super().__init__({"words": WeightPass(), "run": PacketRun()})


class MatrixUnit(wiring.Component):
    """Executes one command after the other.

    Behaviour
    ---------
    Weights and tap tiles run ahead of the commands.  A command is taken a cycle after it came, or when the
    feeds ask for the last pixels of the one before.  The array begins with it behind the last step of the one
    before, without a cycle between, if its weights and pixels are there.

    The drain begins with a command when the results of the one before have left its lanes, and after a copy
    (`TableCopy`) if the lanes do not have its table.  Rows of a table are written before commands with it
    come.
    """

    def __init__(self, shape: GranuleShape, config: MatrixConfig, placer: Placer) -> None:
        self._shape, self._config, self._placer = shape, config, placer
        super().__init__(
            {
                "command": In(stream.Signature(UnitCommand(shape, config))),
                "entry": In(stream.Signature(UnitEntry(shape))),  #: Of this command and those after it.
                "weights": In(stream.Signature(UnitWeights())),  #: Of all commands, in order.
                "bases": In(ADDRESS_BITS).array(config.ports),  #: Of the weights in each port's memory.
                "tables": In(GroupWrite(config.tables)),
                #: Of the feeds and the residual.
                "read": Out(GranuleReadPort(shape)).array(3),
                "write": Out(GranuleWritePort(shape)),
                "axi": Out(axi.ReadSignature(data_width=config.port_bits, addr_width=ADDRESS_BITS)).array(
                    config.ports
                ),
                "counts": In(COUNT_BITS).array(CORES),  #: Words that each core has written.
                "clear": In(1),  #: ``written`` begins again.
                "written": Out(COUNT_BITS),  #: Words that the drain has written: reads see them.
                "done": Out(1),  #: One-cycle pulse: the command's results are in the scratchpad.
                "busy": Out(1),  #: The array takes a step in this cycle.
                #: Causes of a cycle without a step, the first that holds: no pixel, no weights, no room.
                "waits": Out(data.StructLayout({"pixels": 1, "weights": 1, "room": 1})),
                "bytes_moved": Out(48).array(config.ports),  #: Of the weights, since reset.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Connect the parts."""
        m = Module()
        shape, config = self._shape, self._config
        m.submodules.sweep = sweep = MatrixSweep(config)
        m.submodules.array = array = MatrixArray(config, placer=self._placer)
        m.submodules.drain = drain = Drain(shape, self._placer, columns=config.columns)
        m.submodules.weight_stream = weights = WeightStream(
            self._placer, ports=config.ports, width=config.port_bits, lines=config.lines
        )
        m.submodules.kinds = kinds = PacketKinds()
        feeds = []
        for n in range(2):
            feed = self._placer.place(m, f"feed_{n}", "network_pixel_feed", lambda: PixelFeed(shape))
            connect(m, feed.read, flipped(self.read[n]))
            m.d.comb += [
                sweep.words[n].valid.eq(feed.o.valid),
                Value.cast(sweep.words[n].payload).eq(feed.o.payload),
                feed.o.ready.eq(sweep.words[n].ready),
                *(own.eq(count) for own, count in zip(feed.counts, self.counts, strict=True)),
                Value.cast(array.x[n]).eq(feed.o.payload),
            ]
            feeds.append(feed)
        self._commands(m, feeds, sweep, self._results(m, drain))
        self._entries(m, feeds)
        self._packets(m, weights, kinds, array)
        m.d.comb += [
            sweep.shift.eq(feeds[0].shift),
            sweep.loaded.eq(array.loaded),
            sweep.room.eq(drain.room),
            array.step.eq(sweep.step),
            drain.taken.eq(sweep.taken),
            drain.valid.eq(array.valid),
            Value.cast(drain.i).eq(array.o),
            self.done.eq(drain.done),
            self.written.eq(count_words(m, clear=self.clear, written=self.write.written)),
            self.busy.eq(sweep.busy),
            self.waits.pixels.eq(sweep.waits_pixels),
            self.waits.weights.eq(sweep.waits_weights),
            self.waits.room.eq(sweep.waits_room),
        ]
        connect(m, drain.read, flipped(self.read[2]))
        connect(m, drain.write, flipped(self.write))
        return m

    def _results(self, m: Module, drain: Drain) -> Any:
        """Send the drain its commands in order, each with its table; return the stream that takes them."""
        queued = data.StructLayout({"drain": DrainCommand(self._shape), "table": range(self._config.tables)})
        m.submodules.results = results = Fifo(queued, depth=_RESULTS_AHEAD)
        m.submodules.copy = copy = TableCopy(tables=self._config.tables)
        connect(m, flipped(self.tables), copy.rows)
        given = results.o.payload
        asked = Signal()
        wants = results.o.valid & drain.command.ready & given.drain.settings.maps
        sends = results.o.valid & drain.command.ready & (~given.drain.settings.maps | (asked & ~copy.busy))
        m.d.sync += asked.eq(wants & ~sends)
        m.d.comb += [
            copy.begin.eq(wants & ~asked),
            copy.table.eq(given.table),
            drain.table.eq(copy.write),
            drain.command.valid.eq(sends),
            drain.command.payload.eq(given.drain),
            results.o.ready.eq(sends),
        ]
        return results.i

    def _commands(self, m: Module, feeds: list[PixelFeed], sweep: MatrixSweep, results: Any) -> None:
        """Send each part its command in one cycle, when all have room."""
        given = self.command.payload
        m.submodules.sweeps = sweeps = Fifo(SweepCommand(), depth=_SWEEPS_AHEAD)
        connect(m, sweeps.o, sweep.command)
        parts = [feeds[0].command, sweeps.i, results]
        ready = Cat(part.ready for part in parts).all() & (feeds[1].command.ready | ~given.two)
        # A part that is ready remains so.
        take = Signal()
        m.d.sync += take.eq(self.command.valid & ~take & ready)
        m.d.comb += [
            self.command.ready.eq(take),
            *(part.valid.eq(take) for part in parts),
            feeds[1].command.valid.eq(take & given.two),
            *(feed.command.payload.eq(given.feeds[n]) for n, feed in enumerate(feeds)),
            *(feed.follow.eq(given.follow) for feed in feeds),
            sweeps.i.payload.order.eq(given.drain.order),
            sweeps.i.payload.k_tiles.eq(given.k_tiles),
            sweeps.i.payload.two.eq(given.two),
            results.payload.drain.eq(given.drain),
            results.payload.table.eq(given.table),
        ]

    def _entries(self, m: Module, feeds: list[PixelFeed]) -> None:
        """Send a tap tile to the first feed, or to both."""
        given = self.entry.payload
        first, second = (feed.entry for feed in feeds)
        both = first.ready & (second.ready | ~given.two)
        m.d.comb += [
            self.entry.ready.eq(both),
            first.valid.eq(self.entry.valid & both),
            second.valid.eq(self.entry.valid & both & given.two),
            first.payload.eq(given.entry),
            second.payload.eq(given.entry),
        ]

    def _packets(self, m: Module, weights: WeightStream, kinds: PacketKinds, array: MatrixArray) -> None:
        """Read the packets, and tell the array their kinds."""
        # One entry goes to two parts, each when it is ready.
        sent = Signal(2)
        parts = ((weights.i, self.weights.payload.words), (kinds.i, self.weights.payload.run))
        accepted = Cat(part.valid & part.ready for part, _ in parts) | sent
        m.d.comb += self.weights.ready.eq(accepted.all())
        for n, (part, payload) in enumerate(parts):
            m.d.comb += [part.valid.eq(self.weights.valid & ~sent[n]), part.payload.eq(payload)]
        with m.If(self.weights.valid):
            m.d.sync += sent.eq(accepted & ~accepted.all().replicate(2))
        connect(m, kinds.o, array.kind)
        connect(m, weights.o, array.packet)
        for n in range(self._config.ports):
            m.d.comb += [
                weights.bases[n].eq(self.bases[n]),
                self.bytes_moved[n].eq(weights.bytes_moved[n]),
            ]
            connect(m, weights.axi[n], flipped(self.axi[n]))
