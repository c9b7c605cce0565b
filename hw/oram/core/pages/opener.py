"""Opens pages at the pace of the AES lanes."""

from __future__ import annotations

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
    """Return the pages as the ciphers see them."""
    return PageShape(page_bytes=config.page_bytes, lanes=config.aes_lanes, mac_bits=config.mac_bits)


class PageOpener(wiring.Component):
    """Opens pages, whose beats come ``config.page_beat_cycles`` apart."""

    def __init__(self, config: OramConfig, placer: Placer) -> None:
        self._config = config
        self._placer = placer
        shape = page_shape(config)
        super().__init__(
            {
                #: ``round_keys``, ``power``, ``request``, ``there``, ``verdict``: as of `PageOpen`.
                "round_keys": In(KEYS_LAYOUT),
                "power": In(power_layout(shape)),
                "request": In(stream.Signature(seal_layout())),
                "there": Out(1),
                #: Beats of pages whose keystream was ``there``.
                "i": In(stream.Signature(BEAT_BITS, always_ready=True)),
                "o": Out(stream.Signature(BEAT_BITS, always_ready=True)),  #: Each `latency` cycles later.
                "verdict": Out(stream.Signature(1, always_ready=True)),
                #: A beat came before its keystream, and is lost: never, if it was ``there``.
                "starved": Out(1),
            }
        )

    @staticmethod
    def latency(config: OramConfig) -> int:
        """Return the cycles from a beat to the same one opened."""
        return config.page_beat_cycles - 1 + PageOpen.LATENCY

    def elaborate(self, platform: Any) -> Module:
        """Parts of a beat go in one after the other, the first at once, and are joined again."""
        m = Module()
        shape, pace = page_shape(self._config), self._config.page_beat_cycles
        m.submodules.open = opener = PageOpen(shape, self._placer)
        connect(m, flipped(self.request), opener.request)
        connect(m, opener.verdict, flipped(self.verdict))
        m.d.comb += [
            opener.round_keys.eq(self.round_keys),
            opener.power.eq(self.power),
            self.there.eq(opener.there),
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
        left, rest = Signal(range(pace)), Signal(BEAT_BITS - shape.beat_bits, reset_less=True)
        m.d.comb += [opener.i.valid.eq(self.i.valid | (left != 0)), opener.i.payload.eq(rest)]
        with m.If(self.i.valid):
            m.d.comb += opener.i.payload.eq(self.i.payload)
            m.d.sync += [rest.eq(self.i.payload[shape.beat_bits :]), left.eq(pace - 1)]
        with m.Elif(left != 0):
            m.d.sync += [rest.eq(rest.shift_right(shape.beat_bits)), left.eq(left - 1)]
        joined, part = Signal(len(rest), reset_less=True), Signal(range(pace))
        whole = Cat(joined, opened)
        m.d.comb += [
            self.o.valid.eq(opener.o.valid & (part == pace - 1)),
            self.o.payload.eq(whole),
        ]
        with m.If(opener.o.valid):
            m.d.sync += [part.eq(part + 1), joined.eq(whole[shape.beat_bits :])]
        return m
