"""Writes all pages of the empty map, in order."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.oram.config import OramConfig
from hw.oram.core.layouts import seal_layout
from hw.oram.core.touch.credits import Credits


class Init(wiring.Component):
    """Counts through all pages once.

    Behaviour
    ---------
    Pages are at least ``page_cycles`` apart. Fewer than ``write_pages`` are unsent, and fewer than
    ``scoreboard_pages`` unwritten. Their times depend on the host alone.
    """

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),  #: Pulse.
                "busy": Out(1),  #: From the cycle after ``start`` until all pages are written.
                #: Each page with version 1, to the keystream.
                "request": Out(stream.Signature(seal_layout(), always_ready=True)),
                #: Each page, to its writer, with ``request``; sealed empty pages follow in the same order.
                "announce": Out(stream.Signature(config.record_index_bits, always_ready=True)),
                #: ``page_left``, ``page_written``: pulses of the writer.
                "page_left": In(1),
                "page_written": In(1),
            }
        )
        self.places = Credits(config.write_pages)
        self.unwritten = Credits(config.scoreboard_pages)

    def elaborate(self, platform: Any) -> Module:
        """A counter; pages wait for their interval and for room."""
        m = Module()
        config = self._config
        m.submodules.places, m.submodules.unwritten = places, unwritten = self.places, self.unwritten
        number = Signal(range(max(2, config.host_pages)))
        counts = Signal()
        wait = Signal(range(config.page_cycles))
        left = Signal(range(config.host_pages + 1))
        taken = self.request.valid
        m.d.comb += [
            taken.eq(counts & (wait == 0) & places.some & unwritten.some),
            self.request.payload.page.eq(number),
            self.request.payload.version.eq(1),
            self.announce.valid.eq(taken),
            self.announce.payload.eq(number),
            places.take.eq(taken),
            places.give.eq(self.page_left & self.busy),
            unwritten.take.eq(taken),
            unwritten.give.eq(self.page_written & self.busy),
        ]
        m.d.sync += wait.eq(wait - (wait != 0))
        with m.If(taken):
            m.d.sync += [
                wait.eq(config.page_cycles - 1),
                number.eq(number + 1),
                counts.eq(number != config.host_pages - 1),
            ]
        # A register: it selects among wide data, and ends long paths.
        with m.If(self.page_written & self.busy):
            m.d.sync += [left.eq(left - 1), self.busy.eq(left != 1)]
        with m.If(self.start):
            m.d.sync += [left.eq(config.host_pages), self.busy.eq(1), number.eq(0), counts.eq(1)]
        return m
