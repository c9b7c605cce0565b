"""Shuffle: the channels of two maps alternate in the output."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import ConvConfig
from hw.conv.core.pointwise.drain import DrainStep
from hw.lib.skid import Skid


class Shuffle(wiring.Component):
    """Interleaves the words of the result with those of the bypass."""

    #: Cycles from a step to its word on ``o``, and places for words before ``o``.
    LATENCY: ClassVar = 3 + Skid.LATENCY

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        super().__init__(
            {
                "advance": Out(1),  #: The pipeline before it advances.
                "step": In(DrainStep()),  #: Of the words that come two steps later.
                "result": In(config.word_bits),
                "bypass": In(config.word_bits),
                #: The result's word.  Of a shuffle, the even or the odd one of two words: half of the lanes
                #: of either map, the lower half in the even one, bypass first.
                "o": Out(stream.Signature(config.word_bits)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Choose the lanes, and queue the word."""
        m = Module()
        m.submodules.skid = skid = Skid(self._config.word_bits)
        wiring.connect(m, skid.o, wiring.flipped(self.o))
        m.d.comb += self.advance.eq(skid.i.ready)
        step_1 = Signal(DrainStep())
        step = Signal(DrainStep())
        valid = Signal()
        word = Signal(self._config.word_bits, reset_less=True)
        m.d.comb += [skid.i.valid.eq(valid), skid.i.payload.eq(word)]
        even, odd = (self._alternating(half) for half in range(2))
        with m.If(self.advance):
            m.d.sync += [
                step_1.eq(self.step),
                step.eq(step_1),
                valid.eq(step.valid),
                word.eq(Mux(step.shuffle, Mux(step.odd, odd, even), self.result)),
            ]
        return m

    def _alternating(self, half: int) -> Value:
        """Return the lanes of one half, alternating, bypass first."""
        lanes = range(half * self._config.lanes // 2, (half + 1) * self._config.lanes // 2)
        return Cat(*((self.bypass.word_select(n, 8), self.result.word_select(n, 8)) for n in lanes))
