"""Sealing pages: encryption, and the tag in front (SP 800-38D, section 7.1)."""

from typing import Any, ClassVar

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import payload_register
from hw.lib.memory import RamStyle, ports, uninitialised
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
    One beat a cycle, page after page, without a gap. ``request`` and ``i`` may pause at any time, also within
    a page. Requests wait while the keystream is `Keystream.AHEAD` beats ahead, and beats wait for the
    keystream. The output cannot be stalled: the user keeps room for its pages.
    """

    #: A register before the hash; a cycle for the buffer's read, and one for the tag.
    LATENCY: ClassVar = 1 + Ghash.LATENCY + 2

    def __init__(self, shape: PageShape, placer: Placer) -> None:
        self._shape = shape
        self._placer = placer
        super().__init__(
            {
                "round_keys": In(KEYS_LAYOUT),
                #: ``round_keys`` and ``power`` may change between pages only.
                "power": In(power_layout(shape)),
                #: Page and version of each page, in order, any time ahead. The user never repeats a pair
                #: under a key.
                "request": In(stream.Signature(seal_layout())),
                #: Pages; the content of the tag's place is ignored.
                "i": In(stream.Signature(shape.beat_bits)),
                #: Sealed pages: the first beat `LATENCY` cycles after the last input beat, the others in the
                #: next cycles.
                "o": Out(stream.Signature(beat_layout(shape), always_ready=True)),
            }
        )

    @staticmethod
    def depth(shape: PageShape) -> int:
        """Return the rows of its buffer."""
        return 1 << (shape.beats + Ghash.LATENCY - 1).bit_length()

    def elaborate(self, platform: Any) -> Module:
        """The buffer stores the mask of the hash in the tag's place."""
        m = Module()
        shape = self._shape
        m.submodules.keystream = keystream = Keystream(shape, self._placer)
        m.submodules.ghash = ghash = Ghash(shape, self._placer)
        connect(m, flipped(self.request), keystream.request)
        m.d.comb += keystream.round_keys.eq(self.round_keys)
        beat = Signal(range(shape.beats))
        taken = Signal()
        first = Signal()
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

        # The buffer holds a page from its first beat to its last read; reads begin with the hash.
        depth = self.depth(shape)
        style: RamStyle = "distributed" if depth <= LUT_DEPTH else "block"
        m.submodules.buffer = buffer = uninitialised(width=shape.beat_bits, depth=depth, ram_style=style)
        write, read = ports(buffer)
        write_row = Signal(range(depth))
        read_row = Signal(range(depth))
        sent = Signal(range(shape.beats))
        sends = Signal()
        last = Signal()
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
        arrived = Signal()
        arrived_first = Signal()
        arrived_last = Signal()
        m.d.sync += [
            tag_hash.eq(ghash.hash & counted),
            arrived.eq(sends),
            arrived_first.eq(ghash.done),
            arrived_last.eq(last),
            payload_register(m, self.o.payload.data, name="sealed").eq(
                read.data ^ Mux(arrived_first, tag_hash, 0)
            ),
            self.o.valid.eq(arrived),
            self.o.payload.last.eq(arrived_last),
        ]
        return m
