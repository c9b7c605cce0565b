"""Opens pages at the pace of the AES lanes."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.place import Placer
from hw.oram.config import OramConfig
from hw.oram.core.crypto.aes_lane import KEYS_LAYOUT
from hw.oram.core.crypto.config import PageShape, power_layout
from hw.oram.core.crypto.page_open import PageOpen
from hw.oram.core.layouts import BEAT_BITS, seal_layout


def page_shape(config: OramConfig) -> PageShape:
    """Return the shape of pages for the ciphers."""
    return PageShape(page_bytes=config.page_bytes, lanes=config.aes_lanes, mac_bits=config.mac_bits)


class PageOpener(wiring.Component):
    """Opens pages; their beats are ``config.page_beat_cycles`` apart."""

    def __init__(self, config: OramConfig, placer: Placer) -> None:
        self._config = config
        self._placer = placer
        shape = page_shape(config)
        super().__init__(
            {
                #: ``round_keys``, ``power``, ``request``, ``arrived``, ``verdict``: as in `PageOpen`.
                "round_keys": In(KEYS_LAYOUT),
                "power": In(power_layout(shape)),
                "request": In(stream.Signature(seal_layout())),
                "arrived": Out(1),
                #: Beats of pages whose keystream has arrived.
                "i": In(stream.Signature(BEAT_BITS, always_ready=True)),
                "o": Out(stream.Signature(BEAT_BITS, always_ready=True)),  #: Each `latency` cycles later.
                "verdict": Out(stream.Signature(1, always_ready=True)),
                #: A beat arrived before its keystream and is lost: never after ``arrived``.
                "starved": Out(1),
            }
        )

    @staticmethod
    def latency(config: OramConfig) -> int:
        """Return the cycles from a beat to the opened beat."""
        return config.page_beat_cycles - 1 + PageOpen.LATENCY

    def elaborate(self, platform: Any) -> Module:
        """A beat enters in parts, the first at once; the opened parts are joined."""
        m = Module()
        shape, pace = page_shape(self._config), self._config.page_beat_cycles
        m.submodules.open = opener = PageOpen(shape, self._placer)
        connect(m, flipped(self.request), opener.request)
        connect(m, opener.verdict, flipped(self.verdict))
        m.d.comb += [
            opener.round_keys.eq(self.round_keys),
            opener.power.eq(self.power),
            self.arrived.eq(opener.arrived),
            self.starved.eq(opener.i.valid & ~opener.i.ready),
        ]
        opened = opener.o.payload.data
        if pace == 1:
            m.d.comb += [
                opener.i.valid.eq(self.i.valid),
                opener.i.payload.eq(self.i.payload),
                self.o.valid.eq(opener.o.valid),
                self.o.payload.eq(opened),
            ]
            return m
        left = Signal(range(pace))
        rest = Signal(BEAT_BITS - shape.beat_bits, reset_less=True)
        m.d.comb += [opener.i.valid.eq(self.i.valid | (left != 0)), opener.i.payload.eq(rest)]
        with m.If(self.i.valid):
            m.d.comb += opener.i.payload.eq(self.i.payload)
            m.d.sync += [rest.eq(self.i.payload[shape.beat_bits :]), left.eq(pace - 1)]
        with m.Elif(left != 0):
            m.d.sync += [rest.eq(rest.shift_right(shape.beat_bits)), left.eq(left - 1)]
        joined = Signal(len(rest), reset_less=True)
        part = Signal(range(pace))
        whole = Cat(joined, opened)
        m.d.comb += [
            self.o.valid.eq(opener.o.valid & (part == pace - 1)),
            self.o.payload.eq(whole),
        ]
        with m.If(opener.o.valid):
            m.d.sync += [part.eq(part + 1), joined.eq(whole[shape.beat_bits :])]
        return m
