"""The rows of a tensor of heads: addresses of their words."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import payload_register
from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.layouts import RowPlace, RowRun


class RowWalk(wiring.Component):
    """Walks through heads, and through the rows of each; a row is a word, or several.

    ``granules``: most granules of a word.

    Behaviour
    ---------
    A word a cycle, also from run to run.  The first one comes `LATENCY` cycles after its run.
    """

    LATENCY = 2

    def __init__(self, config: AttentionUnitConfig, *, granules: int) -> None:
        self._config = config
        self._granules = granules
        super().__init__(
            {
                "i": In(stream.Signature(RowRun(config))),
                "o": Out(stream.Signature(RowPlace(config, granules))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Nested counters."""
        m = Module()
        now = Signal(RowRun(self._config), reset_less=True)
        active = Signal()
        address = Signal(self._config.shape.granule_address_bits, reset_less=True)
        row = Signal.like(address)  # of the row's first word
        head = Signal.like(address)  # of the head's first row
        rows_left = Signal.like(now.last_row)  # after this one
        heads_left = Signal.like(now.last_head)
        last_row = Signal()
        last_head = Signal()
        last_word = Signal()
        last = Signal()
        step = Signal()
        place = payload_register(m, self.o.payload)
        move = ~self.o.valid | self.o.ready
        units = self._words(m, now, step, last_word, address)
        m.d.comb += [
            step.eq(active & move),
            last.eq(last_word & last_row & last_head),
            self.i.ready.eq(~active | (step & last)),
        ]
        with m.If(move):
            m.d.sync += [
                self.o.valid.eq(active),
                place.address.eq(address),
                place.enable.eq(Cat(units > n for n in range(self._granules))),
                place.last.eq(last),
            ]
        following = row + now.rows.pitch
        with m.If(step & last_word):
            m.d.sync += [
                row.eq(following),
                address.eq(following),
                rows_left.eq(rows_left - 1),
                last_row.eq(rows_left == 1),
            ]
            with m.If(last_row):
                beyond = head + now.rows.step
                m.d.sync += [
                    head.eq(beyond),
                    row.eq(beyond),
                    address.eq(beyond),
                    rows_left.eq(now.last_row),
                    last_row.eq(now.last_row == 0),
                    heads_left.eq(heads_left - 1),
                    last_head.eq(heads_left == 1),
                ]
        with m.If(self.i.ready):
            given = self.i.payload
            m.d.sync += [
                active.eq(self.i.valid),
                now.eq(given),
                *(each.eq(given.rows.base) for each in (address, row, head)),
                rows_left.eq(given.last_row),
                last_row.eq(given.last_row == 0),
                heads_left.eq(given.last_head),
                last_head.eq(given.last_head == 0),
            ]
        return m

    def _words(self, m: Module, now: Any, step: Signal, last_word: Signal, address: Signal) -> Any:
        """Walk through the words of a row; return the granules of the row from this word on."""
        granules = self._granules
        if self._config.granules <= granules:
            m.d.comb += last_word.eq(Const(1))
            return now.units
        units = Signal.like(now.units, reset_less=True)
        m.d.comb += last_word.eq(units <= granules)
        with m.If(step):
            m.d.sync += units.eq(now.units)
            with m.If(~last_word):
                m.d.sync += [units.eq(units - granules), address.eq(address + granules)]
        with m.If(self.i.ready):
            m.d.sync += units.eq(self.i.payload.units)
        return units
