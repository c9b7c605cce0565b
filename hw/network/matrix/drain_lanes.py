"""Lanes of the drain: bounds, the sum with a residual, a table."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.rescaled_sum import RESCALED_SUM_LATENCY, rescaled_sum
from hw.lib.delay import delay
from hw.network.matrix.config import RESULT_BITS
from hw.network.matrix.drain_command import DrainSettings
from hw.network.tables.layouts import TableWrite
from hw.network.tables.lookup import looked_up


class DrainLanes(wiring.Component):
    """Some lanes, an even number: a byte each, or two bytes each pair.

    Behaviour
    ---------
    One word a cycle, `LATENCY` cycles.  ``settings`` stay from 3 cycles before the first word to the last.
    With ``settings.wide`` the first lane of each pair works, and the second one has its upper byte.
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
                "i": In(data.ArrayLayout(signed(RESULT_BITS), lanes)),
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
        for n in range(0, self._lanes, 2):
            low, high = self.residual[n], self.residual[n + 1]
            upper = Mux(settings.wide, high, low[-1].replicate(8).as_signed())
            first = self._result(m, platform, n, settings, Cat(low, upper).as_signed())
            second = self._result(m, platform, n + 1, settings, high)
            for lane, result, other in ((n, first, None), (n + 1, second, first[8:])):
                mapped = Signal(signed(8), name=f"mapped_{lane}", reset_less=True)
                byte = result[:8].as_signed()
                found = Mux(settings.maps, looked_up(m, f"table_{lane}", table, byte), byte)
                m.d.sync += mapped.eq(found if other is None else Mux(settings.wide, other, found))
                m.d.comb += self.o[lane].eq(mapped)
        return m

    def _result(self, m: Module, platform: Any, n: int, settings: Any, residual: Value) -> Signal:
        """Bound a result and add its residual, which is as wide as the lane."""
        bits = len(residual)
        value, low, high = self.i[n], settings.low, settings.high
        bounded = Signal(signed(bits), name=f"bounded_{n}", reset_less=True)
        m.d.sync += bounded.eq(Mux(value < low, low, Mux(value > high, high, value)))
        total = rescaled_sum(
            m,
            platform,
            f"total_{n}",
            operands=(bounded, delay(m, f"residual_{n}", residual, 1, reset=False)),
            zeros=(settings.zeros[0], settings.zeros[1]),
            factors=(settings.factors[0], settings.factors[1]),
            exceptions=settings.exceptions,
            zero=settings.zero,
            low=settings.sum_low[:bits].as_signed(),
            high=settings.sum_high[:bits].as_signed(),
        )
        past = delay(m, f"past_{n}", bounded, RESCALED_SUM_LATENCY, reset=False)
        result = Signal(signed(bits), name=f"result_{n}", reset_less=True)
        m.d.sync += result.eq(Mux(settings.sums, total, past))
        return result
