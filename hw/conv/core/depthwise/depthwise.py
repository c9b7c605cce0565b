"""The depthwise unit: maps, offsets and weights in, words of results or of samples out."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.config import ConvConfig
from hw.conv.core.depthwise.cell import LaneCell
from hw.conv.core.depthwise.loader import TapLoader
from hw.conv.core.depthwise.offset_dot import OffsetDot
from hw.conv.core.depthwise.sampler import Sampler
from hw.conv.core.layouts import GatherRequest, OffsetCommand, TapCommand, offset_entry
from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.lib.place import Placer

#: Commands in the queue.
_COMMANDS = 2
#: Places for words of results, in flight or in the queue.
_RESULTS = 64
#: Words that may be in flight when another one begins: up to three more begin before the count is seen.
RESULTS_AHEAD = _RESULTS - 4


class Depthwise(wiring.Component):
    """Sampler, lane cells, and the queue of their results.

    Behaviour
    ---------
    As `Sampler`; a word of results needs a place in the queue before its first step.
    """

    def __init__(self, config: ConvConfig, placer: Placer, *, beat_bits: int) -> None:
        self._config = config
        self._placer = placer
        self._beat_bits = beat_bits
        gather: dict[str, Any] = {
            #: ``requests``, ``gathered``: see `hw.conv.core.depthwise.gather_buffer.GatherBuffer`, if the
            #: engine can gather.
            "requests": Out(stream.Signature(GatherRequest())),
            "gathered": In(stream.Signature(config.word_bits)),
        }
        super().__init__(
            {
                "command": In(stream.Signature(TapCommand(config))),
                "offset_command": In(stream.Signature(OffsetCommand(config))),
                "i": In(stream.Signature(config.word_bits)),
                "offsets": In(stream.Signature(offset_entry(config))),
                "weights": In(stream.Signature(beat_bits)),  #: See `TapLoader`.
                #: Rows that the buffer has room for, see `hw.conv.core.depthwise.fill.Fill`.
                "token": Out(stream.Signature(1)),
                "o": Out(stream.Signature(config.word_bits)),
                "busy": Out(1),  #: A layer or its results are in the unit.
                "works": Out(1),  #: A step enters the cells in this cycle.
                "waits": Out(3),  #: See `Sampler`.
                **(gather if config.gather_words else {}),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Connect the parts; control reaches every cell through a register of its own."""
        m = Module()
        config = self._config
        m.submodules.sampler = sampler = Sampler(config)
        m.submodules.loader = loader = TapLoader(config, beat_bits=self._beat_bits)
        m.submodules.commands = commands = Fifo(TapCommand(config), depth=_COMMANDS)
        m.submodules.offset_commands = offset_commands = Fifo(OffsetCommand(config), depth=_COMMANDS)
        m.submodules.results = results = Fifo(config.word_bits, depth=_RESULTS)
        connect(m, flipped(self.command), commands.i)
        connect(m, flipped(self.offset_command), offset_commands.i)
        connect(m, commands.o, sampler.command)
        connect(m, offset_commands.o, sampler.offset_command)
        if config.dot_words:
            self._compute_offsets(m, sampler, loader)
        else:
            connect(m, flipped(self.i), sampler.i)
            connect(m, flipped(self.offsets), sampler.offsets)
        connect(m, flipped(self.weights), loader.i)
        connect(m, sampler.token, flipped(self.token))
        connect(m, results.o, flipped(self.o))
        if config.gather_words:
            connect(m, sampler.requests, flipped(self.requests))
            connect(m, flipped(self.gathered), sampler.gathered)
        m.d.comb += [sampler.loaded.eq(loader.loaded), loader.release.eq(sampler.release)]

        read = delay(m, "read", sampler.read, 1, reset=False)
        control = delay(m, "control", sampler.control, 1, reset=False)
        outputs = []
        lanes = config.cell_lanes
        cells = config.lanes // lanes
        for n in range(cells):
            cell = self._placer.place(m, f"cell_{n}", "conv_lane_cell", lambda: LaneCell(config))
            m.d.comb += [
                cell.index.eq(n),
                cell.load.eq(delay(m, f"load_{n}", loader.load, 1, reset=False)),
                cell.read.eq(read),
                cell.control.eq(control),
            ]
            for t in range(config.taps):
                point = sampler.points[t][n * config.generators // cells]
                m.d.comb += cell.points[t].eq(delay(m, f"point_{n}_{t}", point, 1, reset=False))
                for bank in range(4):
                    word = sampler.words[t][bank].word_select(n, 8 * lanes)
                    m.d.comb += cell.words[t][bank].eq(delay(m, f"word_{n}_{t}_{bank}", word, 1, reset=False))
            outputs.append(cell.o)
        gone = control.valid & control.last
        m.d.comb += [
            results.i.valid.eq(delay(m, "result", gone, LaneCell.latency(config))),
            results.i.payload.eq(Cat(outputs)),
            self.works.eq(sampler.control.valid),
            self.waits.eq(sampler.waits),
        ]
        self._count(m, sampler, commands.o.valid)
        return m

    def _compute_offsets(self, m: Module, sampler: Any, loader: Any) -> None:
        """Route words through the unit that computes offsets; offsets come from it or from memory."""
        m.submodules.dot = dot = OffsetDot(self._config)
        connect(m, flipped(self.i), dot.i)
        connect(m, dot.o, sampler.i)
        computed = sampler.computed
        m.d.comb += [
            dot.start.eq(sampler.start),
            dot.job.eq(sampler.job),
            dot.half.eq(sampler.half),
            dot.open.eq(sampler.open),
            dot.loaded.eq(loader.loaded),
            dot.load.eq(loader.load),
            sampler.offsets.payload.eq(Mux(computed, dot.offsets.payload, self.offsets.payload)),
            sampler.offsets.valid.eq(Mux(computed, dot.offsets.valid, self.offsets.valid)),
            dot.offsets.ready.eq(computed & sampler.offsets.ready),
            self.offsets.ready.eq(~computed & sampler.offsets.ready),
        ]

    def _count(self, m: Module, sampler: Any, waiting: Any) -> None:
        """Let a word begin while there is a place for it: words that began and have not left are counted."""
        words = Signal(range(_RESULTS + 1))
        m.d.sync += [
            words.eq(words + sampler.begins - (self.o.valid & self.o.ready)),
            sampler.room.eq(words < RESULTS_AHEAD),
            self.busy.eq(sampler.busy | waiting | (words != 0)),
        ]
