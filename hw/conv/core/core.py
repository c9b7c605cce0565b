"""The core: both units and the streams between them; commands and streams in, one stream out."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.config import ConvConfig
from hw.conv.core.bypass_cut import BypassCommand, BypassCut
from hw.conv.core.depthwise.depthwise import Depthwise
from hw.conv.core.layouts import GatherRequest, OffsetCommand, TapCommand, offset_entry
from hw.conv.core.pointwise.commands import BlockCommand, DrainCommand, SweepCommand
from hw.conv.core.pointwise.pointwise import PointwiseUnit
from hw.conv.core.route import StreamRouter, Turn
from hw.lib.place import Placer

#: Ends of the paths: sources, and sinks.
MEMORY, DEPTHWISE, POINTWISE = 0, 1, 2
INTO_DEPTHWISE, INTO_POINTWISE, OUT = 0, 1, 2
#: (source, sink) of every path.
WAYS = [
    (MEMORY, INTO_DEPTHWISE),
    (MEMORY, INTO_POINTWISE),
    (DEPTHWISE, INTO_POINTWISE),
    (DEPTHWISE, OUT),
    (POINTWISE, INTO_DEPTHWISE),
    (POINTWISE, OUT),
]


class Activity(data.StructLayout):
    """Whether the core works in a cycle, or the cause of its stall."""

    def __init__(self) -> None:
        super().__init__({"busy": 1, "input": 1, "weight": 1, "output": 1})


class ConvCore(wiring.Component):
    """The depthwise and the pointwise unit, and the router between them."""

    def __init__(self, config: ConvConfig, placer: Placer, *, beat_bits: int) -> None:
        self._config = config
        self._depthwise = Depthwise(config, placer, beat_bits=beat_bits)
        self._pointwise = PointwiseUnit(config, beat_bits=beat_bits, placer=placer)
        words, beats, token = (stream.Signature(shape) for shape in (config.word_bits, beat_bits, 1))
        #: If the engine can gather.
        gather = {
            "requests": Out(stream.Signature(GatherRequest())),  #: Pixels of the map to be read one by one.
            "gathered": In(words),  #: All words of these pixels, in the order of the requests.
        }
        super().__init__(
            {
                # Commands: a job of the depthwise unit has ``tap``, and ``offset`` if it has offsets; one of
                # the pointwise unit ``block``, ``sweep`` and ``drain``, and with a bypass both of it.
                "tap": In(stream.Signature(TapCommand(config))),  #: A layer of the depthwise unit.
                "offset": In(stream.Signature(OffsetCommand(config))),  #: Offsets of such a layer.
                "block": In(stream.Signature(BlockCommand(config))),  #: Blocks of the pointwise unit's map.
                "sweep": In(stream.Signature(SweepCommand(config))),  #: A layer of the pointwise unit.
                "drain": In(stream.Signature(DrainCommand(config))),  #: The order in which its results leave.
                "bypass_block": In(stream.Signature(BlockCommand(config))),  #: Blocks of the bypass's map.
                "bypass_cut": In(stream.Signature(BypassCommand(config))),  #: Parts of the bypass's pixels.
                #: Where words of a job go, for memory (0), the depthwise unit (1) and the pointwise unit (2).
                #: ``other`` of memory: 0 to the depthwise unit, 1 to the pointwise; of a unit: 0 to the other
                #: unit, 1 to ``o``.
                "source_turns": In(stream.Signature(Turn())).array(3),
                #: Where words of a job come from, for the depthwise unit (0), the pointwise unit (1) and
                #: ``o`` (2).  ``other`` of a unit: 0 from ``i``, 1 from the other unit; of ``o``: 0 from the
                #: depthwise unit, 1 from the pointwise.
                "sink_turns": In(stream.Signature(Turn())).array(3),
                #: Words of the maps, L int8 each: row by row, pixel by pixel, first channels first.
                "i": In(words),
                "bypass": In(words),  #: Words of the map that is shuffled into the results.
                "offsets": In(stream.Signature(offset_entry(config))),  #: ``entries`` for each pixel.
                #: Packets of records for the depthwise unit, a header beat and records.
                "tap_weights": In(beats),
                #: Tiles of weights for the pointwise unit: for each block all tiles of its layer.
                "tile_weights": In(beats),
                #: Credits, if the command asked: for a row of the depthwise unit's map.
                "row_token": Out(token),
                #: Credits, if the command asked: for a block of the pointwise unit's map.
                "block_token": Out(token),
                #: Credits, if the command asked: for a block of the bypass.
                "bypass_token": Out(token),
                #: Words of results, L int8 each: pixel by pixel in the order of the job.
                "o": Out(words),
                #: Whether the core works in this cycle, or the cause of its stall, for counters.
                "activity": Out(Activity()),
                **(gather if config.gather_words else {}),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Connect the units, and report their activity."""
        m = Module()
        m.submodules.depthwise = depthwise = self._depthwise
        m.submodules.pointwise = pointwise = self._pointwise
        m.submodules.route = route = StreamRouter(self._config, ways=WAYS, sources=3, sinks=3)
        m.submodules.cut = cut = BypassCut(self._config)
        for inner, outer in (
            (depthwise.command, self.tap),
            (depthwise.offset_command, self.offset),
            (depthwise.offsets, self.offsets),
            (depthwise.weights, self.tap_weights),
            (pointwise.block, self.block),
            (pointwise.sweep, self.sweep),
            (pointwise.drain, self.drain),
            (pointwise.bypass_block, self.bypass_block),
            (pointwise.weights, self.tile_weights),
            (cut.command, self.bypass_cut),
            (cut.i, self.bypass),
            (depthwise.token, self.row_token),
            (pointwise.token, self.block_token),
            (pointwise.bypass_token, self.bypass_token),
            (route.i[MEMORY], self.i),
            (route.o[OUT], self.o),
        ):
            connect(m, inner, flipped(outer))
        if self._config.gather_words:
            connect(m, depthwise.requests, flipped(self.requests))
            connect(m, flipped(self.gathered), depthwise.gathered)
        for n in range(3):
            connect(m, flipped(self.source_turns[n]), route.source_turns[n])
            connect(m, flipped(self.sink_turns[n]), route.sink_turns[n])
        connect(m, depthwise.o, route.i[DEPTHWISE])
        connect(m, pointwise.o, route.i[POINTWISE])
        connect(m, route.o[INTO_DEPTHWISE], depthwise.i)
        connect(m, route.o[INTO_POINTWISE], pointwise.i)
        connect(m, cut.o, pointwise.bypass)
        m.d.sync += [
            self.activity.busy.eq(depthwise.works | pointwise.busy),
            self.activity.input.eq(depthwise.waits[0] | pointwise.wait_input),
            self.activity.weight.eq(depthwise.waits[2] | pointwise.wait_weight),
            self.activity.output.eq(depthwise.waits[1] | pointwise.wait_output),
        ]
        return m
