"""Unpacks packets of weights and parameters into writes to the RAMs of the depthwise unit."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import ConvConfig
from hw.conv.core.packets import RECORD_BITS, PacketHeader, Record, TapLoad


class TapLoader(wiring.Component):
    """Writes packets of records into the RAMs of the lane cells, a layer ahead.

    ``beat_bits``: bits of a beat: 128, 256 or 512.

    Behaviour
    ---------
    A record a cycle, and a cycle for a header.  A layer is accepted while fewer than two are complete or in
    use.
    """

    #: Cycles from the last record to ``loaded``.
    LATENCY: ClassVar = 1

    def __init__(self, config: ConvConfig, *, beat_bits: int) -> None:
        self._config = config
        self._beat_bits = beat_bits
        super().__init__(
            {
                #: The packets of each layer, a header and records each; the last one ``ends`` the layer.
                #: `Record.TAPS`: for each word and step, a record for each cell.  `Record.STRIPS`,
                #: `Record.PARAMETERS`: for each word, a record for each lane.  `Record.DOT`: for each word
                #: and pass, a record for each cell. `Record.DOT_PARAMETERS`: for each pass, one for each of
                #: two numbers.
                "i": In(stream.Signature(beat_bits)),
                "load": Out(TapLoad(config)),
                "loaded": Out(1),  #: A layer is complete; until ``release``.
                "release": In(1),  #: One-cycle pulse: it is no longer read.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Parse a header, then its records; their places are counted."""
        m = Module()
        config, load = self._config, self.load
        per_beat = self._beat_bits // RECORD_BITS
        cells = config.lanes // config.cell_lanes
        header = Signal(PacketHeader())
        left = Signal.like(header.records)
        inside = Signal()
        half = Signal()
        layers = Signal(range(3))
        part = Signal(range(max(2, per_beat)))
        offered = data.View(PacketHeader(), self.i.payload[: PacketHeader().size])
        records = Signal(inside.shape())
        begin = Signal()
        step = Signal()
        ends = Signal()
        m.d.comb += [
            records.eq(self.i.valid & inside),
            begin.eq(self.i.valid & ~inside & (layers != 2)),
            step.eq(records),
            ends.eq(step & (left == 1)),
            self.i.ready.eq(begin | (step & ((part == per_beat - 1) | (left == 1)))),
            self.loaded.eq(layers != 0),
        ]
        with m.If(begin):
            m.d.sync += [header.eq(offered), left.eq(offered.records), inside.eq(1), part.eq(0)]
        with m.If(step):
            m.d.sync += [left.eq(left - 1), part.eq(Mux(part == per_beat - 1, 0, part + 1))]
        complete = Signal()
        m.d.comb += complete.eq(ends & header.ends)
        with m.If(ends):
            m.d.sync += inside.eq(0)
        with m.If(complete):
            m.d.sync += half.eq(~half)
        # The last record is in flight for some cycles, and so is a reader's first address.
        m.d.sync += layers.eq(layers + complete - self.release)

        cell = Signal.like(load.cell)
        lane = Signal.like(load.lane)
        address = Signal.like(load.address)
        taps = Signal()
        one = Signal()
        m.d.comb += [
            taps.eq((header.kind == Record.TAPS) | (header.kind == Record.DOT)),
            one.eq(header.kind == Record.DOT_PARAMETERS),
        ]
        last_lane = Signal()
        last_cell = Signal()
        m.d.comb += [
            last_lane.eq(taps | (lane == Mux(one, 1, config.cell_lanes - 1))),
            last_cell.eq(one | (cell == cells - 1)),
        ]
        with m.If(begin):
            m.d.sync += [cell.eq(0), lane.eq(0), address.eq(0)]
        with m.If(step):
            m.d.sync += lane.eq(Mux(last_lane, 0, lane + 1))
            with m.If(last_lane):
                m.d.sync += cell.eq(Mux(last_cell, 0, cell + 1))
            with m.If(last_lane & last_cell):
                m.d.sync += address.eq(address + 1)
        m.d.sync += [
            load.valid.eq(step),
            load.kind.eq(header.kind),
            load.cell.eq(cell),
            load.lane.eq(lane),
            load.half.eq(half),
            load.address.eq(address),
            load.record.eq(Cat(self.i.payload).word_select(part, RECORD_BITS)),
        ]
        return m
