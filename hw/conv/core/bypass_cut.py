"""Cuts each pixel of the bypass, one part in memory, into the parts of the shuffle."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.config import SIDE_BITS, WORDS_BITS, ConvConfig
from hw.lib.fifo import SHALLOW_DEPTH, Fifo
from hw.lib.rows.command import RowsCommand
from hw.lib.rows.cutter import RowCutter
from hw.lib.skid import Skid


class BypassCommand(data.StructLayout):
    """``pixels`` of a map, each of ``parts`` parts (1 or 2) of ``channels``."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {"pixels": 2 * SIDE_BITS, "parts": 2, "channels": range((1 << WORDS_BITS) * config.lanes)}
        )


class BypassCut(wiring.Component):
    """Aligns every part to a word of its own.

    Behaviour
    ---------
    As `hw.lib.rows.cutter.RowCutter` with a pixel for a command.  It takes a word a cycle, and a cycle more
    for a pixel whose last part lies in two words.  A queue of a block's words stands before it: two parts
    take longer than their words, and would stall the pointwise unit's map, which shares the ports.
    """

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        super().__init__(
            {
                "command": In(stream.Signature(BypassCommand(config))),
                #: Pixels of the map, from lane 0 of a word on.
                "i": In(stream.Signature(config.word_bits)),
                "o": Out(stream.Signature(config.word_bits)),  #: Channels of each part.
            }
        )

    @staticmethod
    def pixel_cycles(config: ConvConfig, *, parts: int, channels: int) -> int:
        """Return the cycles of a pixel of ``parts`` parts of ``channels``."""
        words = -(-channels // config.lanes)
        rest = channels - (words - 1) * config.lanes
        begin = (parts * channels - rest) % config.lanes
        return parts * words + (begin + rest > config.lanes)

    @staticmethod
    def latency(config: ConvConfig) -> int:
        """Return the cycles from a word to its first part."""
        waiting = Fifo.LATENCY if config.bypass_words <= SHALLOW_DEPTH else Fifo.DEEP_LATENCY
        return waiting + RowCutter.latency(config.word_bits, config.word_bits) + Skid.LATENCY

    def elaborate(self, platform: Any) -> Module:
        """Feed the same two rows to the cutter for every pixel of a map."""
        m = Module()
        config = self._config
        command = BypassCommand(config)
        rows = RowsCommand(most_rows=2, most_units=(1 << WORDS_BITS) * config.lanes - 1, unit_bits=8)
        m.submodules.commands = commands = Fifo(command, depth=2)
        m.submodules.cutter = cutter = RowCutter(
            rows, part_bits=config.word_bits, data_width=config.word_bits
        )
        m.submodules.words = words = Fifo(config.word_bits, depth=config.bypass_words)
        m.submodules.out = out = Skid(config.word_bits)
        connect(m, flipped(self.command), commands.i)
        connect(m, flipped(self.i), words.i)
        connect(m, out.o, flipped(self.o))
        job = Signal(command)
        left = Signal(2 * SIDE_BITS)
        active = Signal()
        last = Signal()
        step = cutter.rows.valid & cutter.rows.ready
        m.d.comb += [
            cutter.rows.valid.eq(active),
            cutter.rows.payload.rows.eq(job.parts),
            cutter.rows.payload.units.eq(job.channels),
            cutter.i.valid.eq(words.o.valid),
            cutter.i.payload.data.eq(words.o.payload),
            words.o.ready.eq(cutter.i.ready),
            out.i.valid.eq(cutter.o.valid),
            out.i.payload.eq(cutter.o.payload.elements),
            cutter.o.ready.eq(out.i.ready),
            commands.o.ready.eq(~active | (step & last)),
        ]
        with m.If(step):
            m.d.sync += [left.eq(left - 1), last.eq(left == 1)]
        with m.If(commands.o.ready):
            m.d.sync += [active.eq(commands.o.valid), job.eq(commands.o.payload)]
            m.d.sync += [left.eq(commands.o.payload.pixels - 1), last.eq(commands.o.payload.pixels == 1)]
        return m
