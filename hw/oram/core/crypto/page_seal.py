"""Sealing pages: encryption, and the tag in front (SP 800-38D, section 7.1)."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import payload_register
from hw.lib.memory import RamStyle, uninitialised
from hw.lib.place import Placer
from hw.oram.core.crypto.aes_lane import BLOCK_BITS, KEYS_LAYOUT
from hw.oram.core.crypto.config import LUT_DEPTH, PageShape, beat_layout, power_layout
from hw.oram.core.crypto.ghash import Ghash
from hw.oram.core.crypto.keystream import Keystream
from hw.oram.core.layouts import seal_layout


class PageSeal(wiring.Component):
    """Encrypts pages, and sends each when its tag is known.

    Behaviour
    ---------
    A beat a cycle, page after page, without a gap.  ``request`` and ``i`` may pause at any time, also within
    a page; ``request`` waits while the keystream is `Keystream.AHEAD` beats ahead, and ``i`` until the
    keystream is there.  What comes out cannot be stalled: its user has room for the pages it sends in.
    """

    #: A register before the hash; the buffer's read is a cycle, and the tag.
    LATENCY: ClassVar = 1 + Ghash.LATENCY + 2

    def __init__(self, shape: PageShape, placer: Placer) -> None:
        self._shape = shape
        self._placer = placer
        super().__init__(
            {
                "round_keys": In(KEYS_LAYOUT),
                #: ``round_keys`` and ``power`` change with the key, between pages only.
                "power": In(power_layout(shape)),
                #: Page and version of each page, in the order of the pages and as early as one likes.  Nobody
                #: checks that no pair comes twice under a key.
                "request": In(stream.Signature(seal_layout())),
                #: Pages; what is in the place of the tag is not looked at.
                "i": In(stream.Signature(shape.beat_bits)),
                #: Pages as they are stored: the first beat `LATENCY` cycles after the last beat of the page
                #: came, the others in the cycles after it.
                "o": Out(stream.Signature(beat_layout(shape), always_ready=True)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """The buffer keeps, in the place of the tag, what the hash is masked with."""
        m = Module()
        shape = self._shape
        m.submodules.keystream = keystream = Keystream(shape, self._placer)
        m.submodules.ghash = ghash = Ghash(shape, self._placer)
        connect(m, flipped(self.request), keystream.request)
        m.d.comb += keystream.round_keys.eq(self.round_keys)
        beat = Signal(range(shape.beats))
        taken, first = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(keystream.o.valid),
            keystream.o.ready.eq(self.i.valid),
            taken.eq(self.i.valid & keystream.o.valid),
            first.eq(beat == 0),
        ]
        with m.If(taken):
            m.d.sync += beat.eq(Mux(beat == shape.beats - 1, 0, beat + 1))
        counted = Const((1 << shape.mac_bits) - 1, BLOCK_BITS)
        cipher = Signal(shape.beat_bits, reset_less=True)
        held = Signal()
        m.d.sync += [cipher.eq(self.i.payload ^ keystream.o.payload), held.eq(taken)]
        with m.If(first):
            m.d.sync += cipher[:BLOCK_BITS].eq(keystream.o.payload[:BLOCK_BITS] & counted)
        m.d.comb += [ghash.power.eq(self.power), ghash.valid.eq(held), ghash.beat.eq(cipher)]

        # A page stays from its first beat until all of it is read, which begins when its hash is there.
        depth = 1 << (shape.beats + Ghash.LATENCY - 1).bit_length()
        style: RamStyle = "distributed" if depth <= LUT_DEPTH else "block"
        m.submodules.buffer = buffer = uninitialised(width=shape.beat_bits, depth=depth, ram_style=style)
        write, read = buffer.write_port(), buffer.read_port()
        write_row, read_row = Signal(range(depth)), Signal(range(depth))
        sent = Signal(range(shape.beats))
        sends, last = Signal(), Signal()
        m.d.comb += [
            write.en.eq(held),
            write.addr.eq(write_row),
            write.data.eq(cipher),
            sends.eq(ghash.done | (sent != 0)),
            last.eq(sent == shape.beats - 1),
            read.en.eq(1),
            read.addr.eq(read_row),
        ]
        with m.If(held):
            m.d.sync += write_row.eq(write_row + 1)
        with m.If(sends):
            m.d.sync += [read_row.eq(read_row + 1), sent.eq(Mux(last, 0, sent + 1))]

        tag_hash = Signal(BLOCK_BITS, reset_less=True)
        there, there_first, there_last = Signal(), Signal(), Signal()
        m.d.sync += [
            tag_hash.eq(ghash.hash & counted),
            there.eq(sends),
            there_first.eq(ghash.done),
            there_last.eq(last),
            payload_register(m, self.o.payload.data, name="sealed").eq(
                read.data ^ Mux(there_first, tag_hash, 0)
            ),
            self.o.valid.eq(there),
            self.o.payload.last.eq(there_last),
        ]
        return m
