"""The weight stream: packets of all commands from several memory ports, beat by beat in program order."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from hw.lib import axi
from hw.lib.delay import payload_register
from hw.lib.dma.burst import LENGTH_BITS
from hw.lib.place import Placer
from hw.network.matrix.weight_port import ADDRESS_BITS, WeightPort

#: Bits of a count of words of a port.
WORDS_BITS = 26


class WeightPass(data.StructLayout):
    """The packets of a command: read once for each block of pixels."""

    def __init__(self) -> None:
        super().__init__(
            {
                "first": WORDS_BITS,  #: Word of each port that the packets begin at.
                "words": WORDS_BITS,  #: Words of each port, at least 1: whole beats.
                "passes": 16,  #: At least 1.
            }
        )


class WeightStream(wiring.Component):
    """Reads the words of all ports in lockstep: a line is a word of each, a beat is some lines.

    ``ports``, ``width``, ``lines``: memory ports, bits of each, and lines of a beat, the first one lowest.

    Behaviour
    ---------
    A line a cycle where memory delivers it.  Reads run ahead of ``o`` by a DMA's FIFO, across commands.  All
    passes of a command are read before the next one's first.
    """

    def __init__(self, placer: Placer, *, ports: int, width: int, lines: int = 1) -> None:
        self._placer = placer
        self._ports, self._width, self._lines = ports, width, lines
        super().__init__(
            {
                "i": In(stream.Signature(WeightPass())),
                "bases": In(ADDRESS_BITS).array(ports),  #: Byte address of each port's words, whole words.
                "axi": Out(axi.ReadSignature(data_width=width, addr_width=ADDRESS_BITS)).array(ports),
                "o": Out(stream.Signature(lines * ports * width)),
                "bytes_moved": Out(48).array(ports),  #: Since reset.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Passes -> a command for each port; words -> lines -> beats."""
        m = Module()
        words = []
        readies = Signal(self._ports)
        go = Signal()
        low = Const(0, exact_log2(self._width // 8))
        now = self.i.payload
        for n in range(self._ports):
            port = self._placer.place(
                m, f"port_{n}", "network_weight_port", lambda: WeightPort(width=self._width)
            )
            connect(m, port.axi, flipped(self.axi[n]))
            m.d.comb += [
                readies[n].eq(port.command.ready),
                port.command.valid.eq(go),
                port.command.payload.address.eq(self.bases[n] + Cat(low, now.first)),
                port.command.payload.length.eq(Cat(low, now.words)[:LENGTH_BITS]),
                self.bytes_moved[n].eq(port.bytes_moved),
            ]
            words.append(port.o)
        self._repeat(m, go, readies)

        beat = payload_register(m, self.o.payload)
        step = Signal()
        m.d.comb += [
            step.eq(Cat(word.valid for word in words).all() & (~self.o.valid | self.o.ready)),
            *(word.ready.eq(step) for word in words),
        ]
        place = Signal(self._lines, init=1)  # the line that comes next
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.valid.eq(step & place[-1])
        with m.If(step):
            m.d.sync += place.eq(place.rotate_left(1))
        line = Cat(*(word.payload for word in words))
        for n in range(self._lines):
            with m.If(step & place[n]):
                m.d.sync += Value.cast(beat).word_select(n, len(line)).eq(line)
        return m

    def _repeat(self, m: Module, go: Signal, readies: Signal) -> None:
        """Send each pass to all ports at once; take the entry with its last pass."""
        done = Signal(16)  # passes sent
        known = Signal()  # whether the pass is the last
        last = Signal()
        m.d.sync += [last.eq(done + 1 == self.i.payload.passes), known.eq(self.i.valid & ~go)]
        m.d.comb += [go.eq(known & readies.all()), self.i.ready.eq(go & last)]
        with m.If(go):
            m.d.sync += done.eq(done + 1)
            with m.If(last):
                m.d.sync += done.eq(0)
