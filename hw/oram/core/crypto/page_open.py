"""Opening pages: decryption and verification (SP 800-38D, section 7.2)."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import payload_register
from hw.lib.fifo import Fifo
from hw.lib.place import Placer
from hw.oram.core.crypto.aes_lane import BLOCK_BITS, KEYS_LAYOUT
from hw.oram.core.crypto.config import PageShape, beat_layout, power_layout
from hw.oram.core.crypto.ghash import Ghash
from hw.oram.core.crypto.keystream import Keystream
from hw.oram.core.layouts import seal_layout


class PageOpen(wiring.Component):
    """Decrypts pages beat by beat, and verifies each.

    Behaviour
    ---------
    One beat a cycle, page after page. ``request`` and ``i`` may pause at any time, also within a page.
    Requests wait while the keystream is `Keystream.AHEAD` beats ahead. Beats wait for the keystream,
    which is never late after an early request. The outputs cannot be stalled: the user keeps room for its
    pages.
    """

    LATENCY: ClassVar = 1
    #: A register before the hash; a cycle for its difference to the tag, and one for the comparison.
    VERDICT_LATENCY: ClassVar = 1 + Ghash.LATENCY + 2

    def __init__(self, shape: PageShape, placer: Placer) -> None:
        self._shape = shape
        self._placer = placer
        super().__init__(
            {
                "round_keys": In(KEYS_LAYOUT),
                #: ``round_keys`` and ``power`` may change between pages only.
                "power": In(power_layout(shape)),
                #: Page and version of each page, in order, any time ahead.
                "request": In(stream.Signature(seal_layout())),
                "arrived": Out(1),  #: As in `Keystream`.
                "i": In(stream.Signature(shape.beat_bits)),  #: Pages as they are stored.
                #: Each beat decrypted, `LATENCY` cycles later; zeros instead of the tag.
                "o": Out(stream.Signature(beat_layout(shape), always_ready=True)),
                #: The page is genuine to its last bit; `VERDICT_LATENCY` cycles after its last beat.
                "verdict": Out(stream.Signature(1, always_ready=True)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """The tag is decrypted like any block; the result must equal the hash."""
        m = Module()
        shape = self._shape
        m.submodules.keystream = keystream = Keystream(shape, self._placer)
        m.submodules.ghash = ghash = Ghash(shape, self._placer)
        # Pages between their first beat and their hash: at most one a beat.
        m.submodules.expected = expected = Fifo(BLOCK_BITS, depth=Ghash.LATENCY + 3)
        connect(m, flipped(self.request), keystream.request)
        m.d.comb += [keystream.round_keys.eq(self.round_keys), self.arrived.eq(keystream.arrived)]
        beat = Signal(range(shape.beats))
        taken = Signal()
        first = Signal()
        last = Signal()
        m.d.comb += [
            self.i.ready.eq(keystream.o.valid),
            keystream.o.ready.eq(self.i.valid),
            taken.eq(self.i.valid & keystream.o.valid),
            first.eq(beat == 0),
            last.eq(beat == shape.beats - 1),
        ]
        with m.If(taken):
            m.d.sync += beat.eq(Mux(last, 0, beat + 1))

        counted = Const((1 << shape.mac_bits) - 1, BLOCK_BITS)
        tag = self.i.payload[:BLOCK_BITS] ^ (keystream.o.payload[:BLOCK_BITS] & counted)
        cipher = Signal(shape.beat_bits, reset_less=True)
        plain = payload_register(m, self.o.payload.data, name="plain")
        m.d.sync += [
            cipher.eq(self.i.payload),
            plain.eq(self.i.payload ^ keystream.o.payload),
            self.o.valid.eq(taken),
            self.o.payload.last.eq(last),
            ghash.valid.eq(taken),
        ]
        with m.If(first):
            m.d.sync += plain[:BLOCK_BITS].eq(0)
        m.d.comb += [
            ghash.power.eq(self.power),
            ghash.beat.eq(cipher),
            expected.i.valid.eq(taken & first),
            expected.i.payload.eq(tag),
            expected.o.ready.eq(ghash.done),
        ]

        difference = (ghash.hash & counted) ^ expected.o.payload
        differs = Signal(BLOCK_BITS // 8, reset_less=True)
        judged = Signal()
        m.d.sync += [
            differs.eq(Cat(difference.word_select(n, 8).any() for n in range(len(differs)))),
            judged.eq(ghash.done),
            self.verdict.valid.eq(judged),
            self.verdict.payload.eq(~differs.any()),
        ]
        return m
