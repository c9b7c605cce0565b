"""Seals pages at the pace of the AES lanes."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect

from hw.lib.fifo import Fifo
from hw.lib.place import Placer
from hw.oram.config import OramConfig
from hw.oram.core.border import BORDER, at_border, stream_at_border
from hw.oram.core.crypto.aes_lane import KEYS_LAYOUT
from hw.oram.core.crypto.config import power_layout
from hw.oram.core.crypto.page_seal import PageSeal
from hw.oram.core.layouts import BEAT_BITS, seal_layout
from hw.oram.core.pages.opener import page_shape

#: Beats that wait for their keystream, whose request may be late.
_WAITING = 32
#: Requests in the queue.
_REQUESTS = 8


class PageSealer(wiring.Component):
    """Seals pages; their beats are ``config.page_beat_cycles`` apart.

    Behaviour
    ---------
    Pages and requests are at least a page's beats apart, and never wait for each other. Every port is a
    register: the sealer may lie on another die (`hw.oram.regions`).
    """

    def __init__(self, config: OramConfig, placer: Placer) -> None:
        self._config = config
        self._placer = placer
        super().__init__(
            {
                #: ``round_keys``, ``power``: as in `PageSeal`.
                "round_keys": In(KEYS_LAYOUT),
                "power": In(power_layout(page_shape(config))),
                #: Page and version of each page, up to `_REQUESTS` pages ahead, or shortly after its first
                #: beat, whose beats then wait.
                "request": In(stream.Signature(seal_layout(), always_ready=True)),
                "i": In(stream.Signature(BEAT_BITS, always_ready=True)),
                #: The last beat: `latency` cycles after the page's first beat, or `latency` +
                #: `Keystream.LATENCY` cycles after its request, whichever is later.
                "o": Out(stream.Signature(BEAT_BITS, always_ready=True)),
            }
        )

    @staticmethod
    def latency(config: OramConfig) -> int:
        """Return the cycles from a page's first beat to its last sealed beat: all in, then all out."""
        beats = page_shape(config).beats
        return BORDER + Fifo.LATENCY + (beats - 1) + PageSeal.LATENCY + (beats - 1) + BORDER

    def elaborate(self, platform: Any) -> Module:
        """Beats wait, enter in parts, and are joined again."""
        m = Module()
        shape, pace = page_shape(self._config), self._config.page_beat_cycles
        m.submodules.seal = sealer = PageSeal(shape, self._placer)
        m.submodules.beats = beats = Fifo(BEAT_BITS, depth=_WAITING)
        m.submodules.requests = requests = Fifo(seal_layout(), depth=_REQUESTS)
        request = stream_at_border(m, "request_held", self.request)
        beat = stream_at_border(m, "beat_held", self.i)
        connect(m, requests.o, sealer.request)
        part = Signal(range(max(2, pace)))
        parts = Array(beats.o.payload.word_select(n, shape.beat_bits) for n in range(pace))
        moves = Signal()
        m.d.comb += [
            sealer.round_keys.eq(at_border(m, "keys_held", self.round_keys)),
            sealer.power.eq(at_border(m, "power_held", self.power)),
            requests.i.valid.eq(request.valid),
            requests.i.payload.eq(request.payload),
            beats.i.valid.eq(beat.valid),
            beats.i.payload.eq(beat.payload),
            sealer.i.valid.eq(beats.o.valid),
            sealer.i.payload.eq(parts[part] if pace > 1 else beats.o.payload),
            moves.eq(sealer.i.valid & sealer.i.ready),
            beats.o.ready.eq(moves & (part == pace - 1)),
        ]
        whole = stream.Signature(BEAT_BITS, always_ready=True).create(path=("whole",))
        sent = stream_at_border(m, "sent", whole)
        m.d.comb += [self.o.valid.eq(sent.valid), self.o.payload.eq(sent.payload)]
        sealed = sealer.o.payload.data
        if pace == 1:
            m.d.comb += [whole.valid.eq(sealer.o.valid), whole.payload.eq(sealed)]
            return m
        with m.If(moves):
            m.d.sync += part.eq(part + 1)
        joined = Signal(BEAT_BITS - shape.beat_bits, reset_less=True)
        place = Signal(range(pace))
        m.d.comb += [
            whole.valid.eq(sealer.o.valid & (place == pace - 1)),
            whole.payload.eq(Cat(joined, sealed)),
        ]
        with m.If(sealer.o.valid):
            m.d.sync += [place.eq(place + 1), joined.eq(whole.payload[shape.beat_bits :])]
        return m
