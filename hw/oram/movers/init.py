"""Writes the empty map: all pages and records, in order; the position map clears its buckets itself."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.oram.config import OramConfig
from hw.oram.core.layouts import record_layout, seal_layout
from hw.oram.core.touch.credits import Credits


class Init(wiring.Component):
    """Counts through all pages and records once.

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
                #: From the cycle after ``start`` until all pages are written and all records are taken.
                "busy": Out(1),
                #: Each page with version 1, to the keystream.
                "request": Out(stream.Signature(seal_layout())),
                #: Each page, to its writer, when ``request`` is taken; sealed empty pages follow in the same
                #: order.
                "announce": Out(stream.Signature(config.record_index_bits, always_ready=True)),
                #: ``page_left``, ``page_written``: pulses of the writer.
                "page_left": In(1),
                "page_written": In(1),
                #: Each record; its header gets version 1 and no item.
                "record": Out(stream.Signature(record_layout(config))),
            }
        )
        self.places = Credits(config.write_pages)
        self.unwritten = Credits(config.scoreboard_pages)

    def elaborate(self, platform: Any) -> Module:
        """Two counters; pages wait for their interval and for room."""
        m = Module()
        config = self._config
        m.submodules.places, m.submodules.unwritten = places, unwritten = self.places, self.unwritten
        pages = self._count(m, "pages", config.host_pages, self.request)
        records = self._count(m, "records", config.records, self.record)
        wait = Signal(range(config.page_cycles))
        left = Signal(range(config.host_pages + 1))
        taken = self.request.valid & self.request.ready
        m.d.comb += [
            self.request.valid.eq(pages.valid & (wait == 0) & places.some & unwritten.some),
            self.request.payload.page.eq(pages.number),
            self.request.payload.version.eq(1),
            self.announce.valid.eq(taken),
            self.announce.payload.eq(pages.number),
            self.record.valid.eq(records.valid),
            self.record.payload.index.eq(records.number),
            places.take.eq(taken),
            places.give.eq(self.page_left & self.busy),
            unwritten.take.eq(taken),
            unwritten.give.eq(self.page_written & self.busy),
            self.busy.eq(records.valid | (left != 0)),
        ]
        m.d.sync += wait.eq(wait - (wait != 0))
        with m.If(taken):
            m.d.sync += wait.eq(config.page_cycles - 1)
        with m.If(self.page_written & self.busy):
            m.d.sync += left.eq(left - 1)
        with m.If(self.start):
            m.d.sync += left.eq(config.host_pages)
        return m

    def _count(self, m: Module, name: str, limit: int, given: Any) -> _Counter:
        """Count from 0 to below ``limit``, once each time ``given`` is taken."""
        counter = _Counter(name, limit)
        with m.If(given.valid & given.ready):
            m.d.sync += [
                counter.number.eq(counter.number + 1),
                counter.valid.eq(counter.number != limit - 1),
            ]
        with m.If(self.start):
            m.d.sync += [counter.number.eq(0), counter.valid.eq(1)]
        return counter


class _Counter:
    """A counter, and whether it counts."""

    def __init__(self, name: str, limit: int) -> None:
        self.number = Signal(range(max(2, limit)), name=f"{name}_number")
        self.valid = Signal(name=f"{name}_valid")
