"""Slots of a page or record that hold a key."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import delay
from hw.oram.core.bits import equal_words
from hw.oram.core.layouts import BEAT_BITS

#: Bits of a key and of a bitmap in memory, and words of that size in a beat.
WORD_BITS = 64
LANES = BEAT_BITS // WORD_BITS


class KeyMatch(wiring.Component):
    """Compares keys while their beats pass.

    ``slots``, ``beats``: keys, and beats of the whole page or record. ``bitmap_word``, ``keys_word``: words
    of 8 bytes before the bitmap of slots, and before the first key.
    """

    def __init__(self, *, slots: int, beats: int, bitmap_word: int, keys_word: int, key_bits: int) -> None:
        self._slots, self._beats = slots, beats
        self._bitmap_word, self._keys_word, self._key_bits = bitmap_word, keys_word, key_bits
        super().__init__(
            {
                "valid": In(1),
                "beat": In(BEAT_BITS),
                "key": In(key_bits),  #: In the cycles after the beats with keys.
                #: ``bitmap``, ``match``: three cycles after their beats: slots in use, and slots with the
                #: key, in use or not.
                "bitmap": Out(slots),
                "match": Out(slots),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Register a beat, compare its words, collect the results of all beats."""
        m = Module()
        index = Signal(range(self._beats))
        with m.If(self.valid):
            m.d.sync += index.eq(index + 1)
            with m.If(index == self._beats - 1):
                m.d.sync += index.eq(0)
        valid = delay(m, "valid", self.valid, 2)
        beat = delay(m, "beat", self.beat, 1, reset=False)
        index_2 = delay(m, "index", index, 2, reset=False)
        equal = Signal(LANES, reset_less=True)
        in_use = Signal(self._slots, reset_less=True)
        words = [beat.word_select(lane, WORD_BITS) for lane in range(LANES)]
        keys = [word[: self._key_bits] for word in words]
        m.d.sync += [
            equal.eq(equal_words(m, "equal", keys, self.key)),
            in_use.eq(words[self._bitmap_word][: self._slots]),
        ]
        bitmap = Signal(self._slots, reset_less=True)
        match = Signal(self._slots, reset_less=True)
        with m.If(valid & (index_2 == 0)):
            m.d.sync += bitmap.eq(in_use)
        for slot in range(self._slots):
            at, lane = divmod(self._keys_word + slot, LANES)
            with m.If(valid & (index_2 == at)):
                m.d.sync += match[slot].eq(equal[lane])
        m.d.comb += [self.bitmap.eq(bitmap), self.match.eq(match)]
        return m
