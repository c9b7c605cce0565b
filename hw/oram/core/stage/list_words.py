"""Keys and short values of a list, in registers."""

from typing import Any

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import delay
from hw.oram.config import BEAT_BYTES, RECORD_HEADER_BYTES, OramConfig
from hw.oram.core.layouts import BEAT_BITS
from hw.oram.core.stage.key_match import LANES, WORD_BITS


class ListWords(wiring.Component):
    """Holds the words of one record while the next arrives.

    ``config``: values of a beat and more are not held here.
    """

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        self._words = 1 if config.value_bytes >= BEAT_BYTES else 1 + config.value_bytes * 8 // WORD_BITS
        super().__init__(
            {
                "record": In(stream.Signature(BEAT_BITS, always_ready=True)),
                "start": In(1),  #: With the last beat, or later before the next record.
                #: From two cycles after ``start`` on, for each item: its key, then the words of its value.
                "words": Out(
                    data.ArrayLayout(data.ArrayLayout(unsigned(WORD_BITS), self._words), config.record_slots)
                ),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Each word is loaded with its beat."""
        m = Module()
        config, value_words = self._config, self._words - 1
        index = Signal(range(config.record_beats))
        with m.If(self.record.valid):
            m.d.sync += index.eq(index + 1)
            with m.If(index == config.record_beats - 1):
                m.d.sync += index.eq(0)
        start = delay(m, "start", self.start, 1)
        for item in range(config.record_slots):
            for word in range(self._words):
                key = RECORD_HEADER_BYTES * 8 // WORD_BITS + item
                value = config.record_values_offset * 8 // WORD_BITS + item * value_words + word - 1
                beat, lane = divmod(value if word else key, LANES)
                coming = Signal(WORD_BITS, name=f"coming_{item}_{word}", reset_less=True)
                held = Signal(WORD_BITS, name=f"held_{item}_{word}", reset_less=True)
                with m.If(self.record.valid & (index == beat)):
                    m.d.sync += coming.eq(self.record.payload.word_select(lane, WORD_BITS))
                with m.If(start):
                    m.d.sync += held.eq(coming)
                m.d.comb += self.words[item][word].eq(held)
        return m
