"""The passes of a command, and of each pass the tiles of its keys and the settings of its rows."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.core.command import TileCommand
from hw.attention.core.settings import RowSettings
from hw.lib.delay import payload_register
from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.layouts import PassRun, QueryPass, Scales


class PassWalk(wiring.Component):
    """Walks through heads, and through the query tiles of each.

    Behaviour
    ---------
    A pass a cycle, also from command to command.  The first one comes `LATENCY` cycles after its command.
    """

    LATENCY = 2

    def __init__(self, config: AttentionUnitConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(PassRun(config))),
                "o": Out(stream.Signature(QueryPass(config))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Two nested counters."""
        m = Module()
        rows = self._config.rows
        now = Signal(PassRun(self._config), reset_less=True)
        active = Signal()
        left = Signal.like(now.last_query)  # queries of the head, less 1, from this pass on
        visible = Signal.like(now.visible)
        heads_left = Signal.like(now.last_head)  # after this one
        last_head = Signal()
        last_pass = Signal()
        step = Signal()
        last = Signal()
        found = payload_register(m, self.o.payload)
        move = ~self.o.valid | self.o.ready
        ends_head = left < rows
        behind = Mux(ends_head, left, rows - 1)  # queries behind the pass's first one
        m.d.comb += [
            step.eq(active & move),
            last_pass.eq(ends_head),
            last.eq(last_pass & last_head),
            self.i.ready.eq(~active | (step & last)),
        ]
        with m.If(move):
            m.d.sync += [
                self.o.valid.eq(active),
                found.rows.eq(behind + 1),
                found.visible.eq(visible),
                found.causal.eq(now.causal),
                found.last_key.eq(visible + Mux(now.causal, behind, 0) - 1),
                found.ends_head.eq(last_pass),
                found.units.eq(now.units),
                found.scales.eq(now.scales),
            ]
        with m.If(step):
            m.d.sync += [left.eq(left - rows), visible.eq(visible + Mux(now.causal, rows, 0))]
            with m.If(last_pass):
                m.d.sync += [
                    left.eq(now.last_query),
                    visible.eq(now.visible),
                    heads_left.eq(heads_left - 1),
                    last_head.eq(heads_left == 1),
                ]
        with m.If(self.i.ready):
            given = self.i.payload
            m.d.sync += [
                active.eq(self.i.valid),
                now.eq(given),
                left.eq(given.last_query),
                visible.eq(given.visible),
                heads_left.eq(given.last_head),
                last_head.eq(given.last_head == 0),
            ]
        return m


class TileWalk(wiring.Component):
    """The tiles of each pass.

    Behaviour
    ---------
    A tile a cycle, also from pass to pass.  The first one comes `LATENCY` cycle after its pass.
    """

    LATENCY = 1

    def __init__(self, config: AttentionUnitConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(range(config.tokens))),  #: Keys of a pass, less 1.
                "o": Out(stream.Signature(TileCommand(config.core))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A counter."""
        m = Module()
        bits = self._config.core.index_bits
        left = Signal.like(self.i.payload)  # keys, less 1, from this tile on
        number = Signal(max(1, len(left) - bits))
        opens = Signal()
        closes = Signal()
        tile = self.o.payload
        m.d.comb += [
            closes.eq(~left[bits:].any()),
            tile.first.eq(number << bits),
            tile.last_index.eq(Mux(closes, left[:bits], -1)),
            tile.opens.eq(opens),
            tile.closes.eq(closes),
            self.i.ready.eq(~self.o.valid | (self.o.ready & closes)),
        ]
        with m.If(self.o.ready):
            m.d.sync += [left[bits:].eq(left[bits:] - 1), number.eq(number + 1), opens.eq(0)]
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), left.eq(self.i.payload), number.eq(0), opens.eq(1)]
        return m


class SettingsPass(data.StructLayout):
    """The rows of a pass, each field as in `QueryPass`."""

    def __init__(self, config: AttentionUnitConfig) -> None:
        fields = QueryPass(config)
        names = ("rows", "visible", "causal")
        scales = Scales(config)
        super().__init__(
            {name: fields[name].shape for name in names}
            | {name: scales[name].shape for name in ("multiplier", "shift")}
        )


class SettingsWalk(wiring.Component):
    """The settings of each row of each pass.

    Behaviour
    ---------
    A row a cycle, also from pass to pass.  The first one comes `LATENCY` cycle after its pass.
    """

    LATENCY = 1

    def __init__(self, config: AttentionUnitConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(SettingsPass(config))),
                "o": Out(stream.Signature(RowSettings(config.core))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A counter of rows, and one of visible keys."""
        m = Module()
        now = Signal(SettingsPass(self._config), reset_less=True)
        row = self.o.payload
        m.d.comb += [
            row.end.eq(now.visible),
            row.multiplier.eq(now.multiplier),
            row.shift.eq(now.shift),
            self.i.ready.eq(~self.o.valid | (self.o.ready & (now.rows == 1))),
        ]
        with m.If(self.o.ready):
            m.d.sync += [now.rows.eq(now.rows - 1), now.visible.eq(now.visible + now.causal)]
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), now.eq(self.i.payload)]
        return m
