"""Lanes of the drain: bounds, the sum with a residual, a table."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.rescaled_sum import RESCALED_SUM_LATENCY, rescaled_sum
from hw.lib.delay import delay
from hw.network.matrix.drain_command import DrainSettings
from hw.network.tables.layouts import TableWrite
from hw.network.tables.lookup import looked_up


class DrainLanes(wiring.Component):
    """Some lanes, one byte each.

    Behaviour
    ---------
    One word a cycle, `LATENCY` cycles.  ``settings`` stay from 3 cycles before the first word to the last.
    """

    #: Bounds, sum, choice, table.
    LATENCY = 1 + RESCALED_SUM_LATENCY + 2

    def __init__(self, *, lanes: int) -> None:
        self._lanes = lanes
        elements = data.ArrayLayout(signed(8), lanes)
        super().__init__(
            {
                "settings": In(DrainSettings()),
                "table": In(TableWrite()),
                "i": In(elements),
                "residual": In(elements),  #: Anything without a sum.
                "o": Out(elements),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the lanes one by one."""
        m = Module()
        settings = Signal(DrainSettings(), reset_less=True)
        table = Signal(TableWrite())
        m.d.sync += [settings.eq(self.settings), table.eq(self.table)]
        for n in range(self._lanes):
            value, low, high = self.i[n], settings.low, settings.high
            bounded = Signal(signed(8), name=f"bounded_{n}", reset_less=True)
            m.d.sync += bounded.eq(Mux(value < low, low, Mux(value > high, high, value)))
            total = rescaled_sum(
                m,
                platform,
                f"total_{n}",
                operands=(bounded, delay(m, f"residual_{n}", self.residual[n], 1, reset=False)),
                zeros=(settings.zeros[0], settings.zeros[1]),
                factors=(settings.factors[0], settings.factors[1]),
                exceptions=settings.exceptions,
                zero=settings.zero,
                low=settings.sum_low,
                high=settings.sum_high,
            )
            past = delay(m, f"past_{n}", bounded, RESCALED_SUM_LATENCY, reset=False)
            result = Signal(signed(8), name=f"result_{n}", reset_less=True)
            mapped = Signal(signed(8), name=f"mapped_{n}", reset_less=True)
            m.d.sync += [
                result.eq(Mux(settings.sums, total, past)),
                mapped.eq(Mux(settings.maps, looked_up(m, f"table_{n}", table, result), result)),
            ]
            m.d.comb += self.o[n].eq(mapped)
        return m
