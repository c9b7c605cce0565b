"""The factors of means and products: a row of the scales for each window."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import delay
from hw.lib.memory import ports, uninitialised
from hw.network.tables.layouts import RowWrite
from hw.network.vector.config import VectorConfig
from hw.network.vector.lanes import EXPONENT_PORT_AT, FACTOR_PORT_AT
from hw.network.vector.layouts import ScaleRow

#: Cycles from a step to the output of the RAM: register, count, row, RAM; then registers until it is due.
_READ_AT = 4
#: Bits of the elements of a window.
_ELEMENT_BITS = 16


class Factors(wiring.Component):
    """Counts the elements of each window, and reads the factor.

    Behaviour
    ---------
    ``load``, ``multiplier`` and ``exponent`` are in time for `VectorGranule`.
    """

    def __init__(self, config: VectorConfig) -> None:
        self._config = config
        scale = ScaleRow().members
        super().__init__(
            {
                "rows": In(RowWrite(config.scales, ScaleRow())),
                "row": In(range(config.scales)),  #: Of one element, or of any number unless ``counted``.
                "counted": In(1),
                "step": In(1),
                "first": In(1),
                "last": In(1),
                "inside": In(2),
                "load": Out(1),
                "multiplier": Out(scale["multiplier"]),
                "exponent": Out(scale["exponent"]),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Count -> row -> RAM."""
        m = Module()
        m.submodules.scales = scales = uninitialised(
            width=ScaleRow().size, depth=self._config.scales, ram_style="block"
        )
        to_scales, from_scales = ports(scales)
        step, first = delay(m, "step", self.step, 1), delay(m, "first", self.first, 1, reset=False)
        last = delay(m, "last", self.step & self.last, 1)
        inside = delay(m, "inside", self.inside, 1, reset=False)
        count = Signal(_ELEMENT_BITS, reset_less=True)
        row = Signal.like(self.row, reset_less=True)
        with m.If(step):
            m.d.sync += count.eq(Mux(first, 0, count) + inside[0] + inside[1])
        # The factor of a window stays until the next one's: two cycles at least, if they differ.
        late_last = delay(m, "late_last", last, 1)
        with m.If(late_last | ~self.counted):
            m.d.sync += row.eq(self.row + Mux(self.counted, count - 1, 0))
        found = data.View(ScaleRow(), from_scales.data)
        m.d.comb += [
            to_scales.en.eq(self.rows.enable),
            to_scales.addr.eq(self.rows.row),
            to_scales.data.eq(Value.cast(self.rows.data)),
            from_scales.en.eq(1),
            from_scales.addr.eq(row),
            self.load.eq(delay(m, "load", late_last, FACTOR_PORT_AT - 2)),
            self.multiplier.eq(
                delay(m, "multiplier", found.multiplier, FACTOR_PORT_AT - _READ_AT, reset=False)
            ),
            self.exponent.eq(delay(m, "exponent", found.exponent, EXPONENT_PORT_AT - _READ_AT, reset=False)),
        ]
        return m
