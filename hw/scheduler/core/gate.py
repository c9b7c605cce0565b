"""Flow control between the scratchpad's users and its banks: a word waits for its ring, then for its bank."""

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
    """Return a word to write: ``data`` and its ``place``, with its ring (one-hot, or 0) as tag."""
    return data.StructLayout({"place": place_layout(config, rings), "data": config.word_bits})


def fetch_layout(config: SchedulerConfig, rings: int) -> data.StructLayout:
    """Return a word to read: ``address``, and its ring (one-hot) in ``acquire`` and ``release``."""
    return data.StructLayout({"address": config.address_bits, "acquire": rings, "release": rings})


class WriteGate(wiring.Component):
    """Lets words into the scratchpad, in order, while their rings have room.

    Behaviour
    ---------
    Latency 2 cycles; holds 3 words.  ``i.ready`` is registered.  A release shows two cycles later: a ring of
    three words or more passes a word a cycle.

    Why
    ---
    A bank's grant ends a long path.  So room in the ring is compared a cycle before the request, and the
    skid buffer in front registers ``ready``.
    """

    def __init__(self, config: SchedulerConfig, *, rings: int) -> None:
        self._word = fill_layout(config, rings)
        super().__init__(
            {
                "i": In(stream.Signature(self._word)),
                "write": Out(stream.Signature(write_layout(config))),  #: To the scratchpad.
                "rings": Out(RingWriter(config.size_bits)).array(rings),
                "granted": Out(1),  #: A word is granted by its bank.
                "finished": Out(1),  #: The granted word is the ``last`` of its piece.
                "starved": Out(1),  #: The next word waits for room in its ring.
                "empty": Out(1),  #: No word is held.
            }
        )
        #: The word that requests its bank, once its ring has room.
        self.word = Signal(self._word)

    def elaborate(self, platform: object) -> Module:
        """Skid buffer -> word, and whether its ring has room -> bank."""
        m = Module()
        m.submodules.ahead = ahead = Skid(self._word)
        connect(m, flipped(self.i), ahead.i)
        filled = Signal()
        allowed = Signal()
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
        # Not enabled by `ahead.o.ready`: that net already drives every bit of the word.
        waiting = Mux(filled, fits(place, 0), fits(following, 0))
        m.d.sync += allowed.eq(Mux(self.granted, fits(following, 1), waiting))
        return m


class ReadGate(wiring.Component):
    """Lets requests through to the scratchpad, in order, once their rings hold the word.

    Behaviour
    ---------
    Latency 1 cycle; holds 2 requests.  ``i.ready`` is registered.
    """

    def __init__(self, config: SchedulerConfig, *, rings: int) -> None:
        self._fetch = fetch_layout(config, rings)
        super().__init__(
            {
                #: With ``acquire`` set, a request waits until its word is written.
                "i": In(stream.Signature(self._fetch)),
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
