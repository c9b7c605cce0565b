"""Between those who use the scratchpad and its banks: a word passes when its ring allows."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.skid import Skid
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.layouts import place_layout
from hw.scheduler.core.ring import RingReader, RingWriter
from hw.scheduler.core.scratchpad import write_layout


def fill_layout(config: SchedulerConfig, rings: int) -> data.StructLayout:
    """Return a word to be written: ``data`` and its ``place``, whose tag is its ring, one-hot, or 0."""
    return data.StructLayout({"place": place_layout(config, rings), "data": config.word_bits})


def fetch_layout(config: SchedulerConfig, rings: int) -> data.StructLayout:
    """Return a word to be read: ``address``; of which ring, one-hot, to ``acquire`` and to ``release``
    one.
    """
    return data.StructLayout({"address": config.address_bits, "acquire": rings, "release": rings})


class WriteGate(wiring.Component):
    """Lets words into the scratchpad, in order, while their rings have room.

    Behaviour
    ---------
    Latency 2 cycles; 3 words fit.  ``i.ready`` comes out of a flip-flop.  A release shows two cycles later:
    a ring of three words or more passes a word a cycle.

    Why
    ---
    The grant of a bank is the end of a long path.  So what it depends on, that there is room, is compared a
    cycle before, and what depends on it ends at the skid buffer in front.
    """

    def __init__(self, config: SchedulerConfig, *, rings: int) -> None:
        self._word = fill_layout(config, rings)
        super().__init__(
            {
                "i": In(stream.Signature(self._word)),
                "write": Out(stream.Signature(write_layout(config))),  #: To the scratchpad.
                "rings": Out(RingWriter(config.size_bits)).array(rings),
                "granted": Out(1),  #: A word is granted by its bank.
                "finished": Out(1),  #: It is the ``last`` of its piece.
                "starved": Out(1),  #: The next word waits for room in its ring.
                "empty": Out(1),  #: No word is held.
            }
        )
        #: What asks the bank, when there is room.
        self.word = Signal(self._word)

    def elaborate(self, platform: object) -> Module:
        """Skid buffer -> word with its leave -> bank."""
        m = Module()
        m.submodules.ahead = ahead = Skid(self._word)
        connect(m, flipped(self.i), ahead.i)
        filled, allowed = Signal(), Signal()
        place, following = self.word.place, ahead.o.payload.place
        m.d.comb += [
            ahead.o.ready.eq(~filled | self.granted),
            self.write.valid.eq(filled & allowed),
            self.write.payload.address.eq(place.address),
            self.write.payload.data.eq(self.word.data),
            self.granted.eq(self.write.valid & self.write.ready),
            self.finished.eq(self.granted & place.last),
            self.starved.eq(filled & ~allowed),
            self.empty.eq(~filled & ~ahead.o.valid),
        ]
        for index, ring in enumerate(self.rings):
            m.d.comb += ring.written.eq(self.granted & place.tag[index])

        def fits(place: Any, written: int) -> Any:
            levels = enumerate(ring.level for ring in self.rings)
            return Cat(~place.tag[index] | (level + written < place.ring) for index, level in levels).all()

        with m.If(ahead.o.ready):
            m.d.sync += [filled.eq(ahead.o.valid), self.word.eq(ahead.o.payload)]
        # Not by `ahead.o.ready`, whose net is that of every bit of the word.
        waiting = Mux(filled, fits(place, 0), fits(following, 0))
        m.d.sync += allowed.eq(Mux(self.granted, fits(following, 1), waiting))
        return m


class ReadGate(wiring.Component):
    """Lets requests through to the scratchpad, in order, when their rings have the word.

    Behaviour
    ---------
    Latency 1 cycle; 2 requests fit.  ``i.ready`` comes out of a flip-flop.
    """

    def __init__(self, config: SchedulerConfig, *, rings: int) -> None:
        self._fetch = fetch_layout(config, rings)
        super().__init__(
            {
                "i": In(stream.Signature(self._fetch)),  #: A word is waited for when ``acquire`` is set.
                "request": Out(stream.Signature(config.address_bits)),  #: To the scratchpad.
                "rings": Out(RingReader()).array(rings),
                #: ``granted``, ``starved``: as of `WriteGate`.
                "granted": Out(1),
                "starved": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Skid buffer -> bank."""
        m = Module()
        m.submodules.ahead = ahead = Skid(self._fetch)
        connect(m, flipped(self.i), ahead.i)
        fetch = ahead.o.payload
        available = Signal()
        m.d.comb += [
            available.eq((fetch.acquire & ~Cat(ring.available for ring in self.rings)) == 0),
            self.request.valid.eq(ahead.o.valid & available),
            self.request.payload.eq(fetch.address),
            ahead.o.ready.eq(self.granted),
            self.granted.eq(self.request.valid & self.request.ready),
            self.starved.eq(ahead.o.valid & ~available),
        ]
        for index, ring in enumerate(self.rings):
            m.d.comb += [
                ring.acquired.eq(self.granted & fetch.acquire[index]),
                ring.released.eq(self.granted & fetch.release[index]),
            ]
        return m
