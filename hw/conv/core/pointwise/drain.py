"""Order in which the results of the pointwise array leave."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import ConvConfig
from hw.conv.core.pointwise.block import QUEUE, HalvesRead
from hw.conv.core.pointwise.commands import DrainCommand
from hw.lib.fifo import Fifo


class DrainStep(data.StructLayout):
    """A word leaves (``valid``); it belongs to a ``shuffle``; its index in the part is ``odd``."""

    def __init__(self) -> None:
        super().__init__({"valid": 1, "shuffle": 1, "odd": 1})


class Drain(wiring.Component):
    """Reads the words of each block in the order of a `DrainCommand`.

    Behaviour
    ---------
    A word a cycle, without gaps between the blocks of a layer.
    """

    #: Cycles from a block's results to its first word, and from a word to `DrainStep`.
    BEGIN_LATENCY: ClassVar = 1
    LATENCY: ClassVar = 1
    #: Cycles from the last word of a layer to the first one of the next.
    LAYER_INTERVAL: ClassVar = 4

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        super().__init__(
            {
                "command": In(stream.Signature(DrainCommand(config))),
                "advance": In(1),  #: The pipeline advances.
                #: Word w of part p of pixel n is at ``(n * parts + p) * words + w``.
                "results": Out(HalvesRead(words=config.block_words, bits=config.word_bits)),
                #: The same for the map that is shuffled in; used only by layers with ``shuffle``.
                "bypass": Out(HalvesRead(words=config.bypass_words, bits=config.word_bits)),
                "step": Out(DrainStep()),  #: Of the word read in this cycle.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Count words, parts, pixels, rows and blocks."""
        m = Module()
        m.submodules.commands = commands = Fifo(DrainCommand(self._config), depth=QUEUE)
        wiring.connect(m, wiring.flipped(self.command), commands.i)
        layer = Signal(DrainCommand(self._config))  # counts of rows and columns, less one
        held = Signal()
        active = Signal()
        more = Signal.like(layer.blocks)  # blocks that have not begun
        available = Signal()
        begin = Signal()
        end = Signal()
        m.d.comb += [
            available.eq(held & (more != 0) & self.results.full & (~layer.shuffle | self.bypass.full)),
            begin.eq(available & (~active | end)),
            self.results.claim.eq(begin),
            self.bypass.claim.eq(begin & layer.shuffle),
            commands.o.ready.eq(~held),
        ]
        with m.If(begin):
            m.d.sync += [active.eq(1), more.eq(more - 1)]
        with m.Elif(end):
            m.d.sync += [active.eq(0), held.eq(more != 0)]
        given = commands.o.payload
        with m.If(~held):
            m.d.sync += [layer.eq(given), held.eq(commands.o.valid), more.eq(given.blocks)]
            for name in ("rows", "last_rows", "columns"):
                m.d.sync += layer[name].eq(given[name] - 1)
        go = active & self.advance
        word, ends_part = self._count_words(m, go, ~held, given.part_words)
        self._walk(m, layer, go, begin, end, more, word, ends_part)
        return m

    def _count_words(self, m: Module, go: Value, load: Value, words: Value) -> tuple[Signal, Signal]:
        """Count the words of parts; returns the word, and whether it is the last of its part.  The latter is
        known ahead, and the ends of pixels, rows and blocks follow from it.
        """
        word = Signal.like(words)
        before_last = Signal.like(words)
        ends = Signal(name="ends_part")
        only = Signal()
        with m.If(go):
            m.d.sync += [word.eq(Mux(ends, 0, word + 1)), ends.eq(Mux(ends, only, word == before_last))]
        with m.If(load):
            m.d.sync += [ends.eq(words == 1), only.eq(words == 1), before_last.eq(words - 2)]
        return word, ends

    def _walk(
        self,
        m: Module,
        layer: Any,
        go: Value,
        begin: Signal,
        end: Signal,
        more: Signal,
        word: Signal,
        ends_part: Signal,
    ) -> None:
        """Count rows, columns, and parts of a block."""
        config = self._config
        row, column, last_row = (Signal.like(layer.rows, name=name) for name in ("row", "column", "last_row"))
        # second part, and second copy of pixel and row
        part = Signal()
        again = Signal()
        row_again = Signal()
        pixel = Signal(range(config.block_words))
        row_start = Signal(range(config.block_words))
        two = layer.parts[1]
        ends_pixel, ends_time, ends_columns, ends_row = (
            Signal(name=name) for name in ("ends_pixel", "ends_time", "ends_columns", "ends_row")
        )
        m.d.comb += [
            ends_pixel.eq(ends_part & (layer.split | ~two | part)),
            ends_time.eq(ends_pixel & (~layer.double | again)),
            ends_columns.eq(ends_time & (column == layer.columns)),
            ends_row.eq(ends_columns & (~layer.split | ~two | part) & (~layer.double | row_again)),
            end.eq(go & ends_row & (row == last_row)),
        ]
        with m.If(begin):
            m.d.sync += last_row.eq(Mux(more == 1, layer.last_rows, layer.rows))
        following = (pixel + Mux(two, layer.words << 1, layer.words))[: len(pixel)]
        with m.If(go):
            with m.If(Mux(layer.split, ends_columns, ends_part)):
                m.d.sync += part.eq(two & ~part)
            with m.If(ends_pixel):
                m.d.sync += again.eq(layer.double & ~again)
            with m.If(ends_time):
                m.d.sync += [column.eq(column + 1), pixel.eq(following)]
            with m.If(ends_columns):
                m.d.sync += [column.eq(0), pixel.eq(row_start)]
                with m.If(~layer.split | ~two | part):
                    m.d.sync += row_again.eq(layer.double & ~row_again)
            with m.If(ends_row):
                m.d.sync += [pixel.eq(following), row_start.eq(following), row.eq(row + 1)]
            with m.If(end):
                m.d.sync += [pixel.eq(0), row_start.eq(0), row.eq(0)]

        # The addresses, a stage after the counters.
        half = Signal()
        bypass_half = Signal()
        address = (pixel + Mux(part, layer.words, 0) + Mux(layer.shuffle, word >> 1, word))[: len(pixel)]
        last = Signal()
        last_bypass = Signal()
        with m.If(end):
            m.d.sync += [half.eq(~half), bypass_half.eq(bypass_half ^ layer.shuffle)]
        with m.If(self.advance):
            m.d.sync += [
                self.step.valid.eq(go),
                self.step.shuffle.eq(layer.shuffle),
                self.step.odd.eq(word[0]),
                self.results.address.eq(Cat(address, half)),
                self.bypass.address.eq(Cat(address[: len(self.bypass.address) - 1], bypass_half)),
                last.eq(end),
                last_bypass.eq(end & layer.shuffle),
            ]
        m.d.comb += [
            self.results.en.eq(self.advance),
            self.bypass.en.eq(self.advance),
            self.results.release.eq(last & self.advance),
            self.bypass.release.eq(last_bypass & self.advance),
        ]
