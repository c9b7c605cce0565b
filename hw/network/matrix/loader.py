"""Packets of weights: from their stream to the cells."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.layouts import Packet, packet_beats


class PacketLoader(wiring.Component):
    """Numbers the words of each packet.

    ``parameters_wait``: fewest cycles from ``adopt`` to the first word of parameters.

    Behaviour
    ---------
    A word a cycle, from the cycle after ``adopt`` on.  A packet may be adopted from the cycle after its last
    word on.
    """

    def __init__(self, config: MatrixConfig, *, parameters_wait: int) -> None:
        self._config = config
        self._wait = parameters_wait
        super().__init__(
            {
                "kind": In(stream.Signature(Packet())),  #: The packets, in order.
                "i": In(stream.Signature(config.packet_bits)),  #: Their words.
                "loaded": Out(1),  #: All words of a packet were taken.
                "adopt": In(1),  #: It is used; the next one's words are taken.  Only while ``loaded``.
                "word": Out(config.packet_bits),  #: The word taken in the previous cycle.
                #: The bit of its number is set, if there was one.
                "strobes": Out(packet_beats(config, parameters=True)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Shift one bit along the words of a packet."""
        m = Module()
        weights = self._config.weight_beats
        known = Signal()  # whether the packet has parameters is known
        parameters = Signal()
        expected = Signal(len(self.strobes), init=1)
        since = Signal(range(self._wait + 1), init=self._wait)  # cycles after ``adopt``, at most the wait
        settled = Signal(init=1)
        take = Signal()
        ends = Signal()
        loads = expected[:weights].any() | settled if self._wait > weights + 1 else 1
        word = Signal(len(self.word), reset_less=True)
        m.d.comb += [
            self.word.eq(word),
            self.kind.ready.eq(~known),
            self.i.ready.eq(known & ~self.loaded & loads),
            take.eq(self.i.valid & self.i.ready),
            ends.eq(Mux(parameters, expected[-1], expected[weights - 1])),
        ]
        m.d.sync += [
            word.eq(self.i.payload),
            self.strobes.eq(expected & take.replicate(len(expected))),
        ]
        with m.If(~known):
            m.d.sync += [known.eq(self.kind.valid), parameters.eq(self.kind.payload.parameters)]
        with m.If(take):
            m.d.sync += expected.eq(Mux(ends, 1, expected << 1))
            with m.If(ends):
                m.d.sync += [known.eq(0), self.loaded.eq(1)]
        with m.If(self.adopt):
            m.d.sync += [self.loaded.eq(0), since.eq(0), settled.eq(0)]
        with m.Elif(~settled):
            m.d.sync += [since.eq(since + 1), settled.eq(since + 1 >= self._wait - 1)]
        return m
