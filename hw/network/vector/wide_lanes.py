"""The lanes of eight int16: LayerNorm, sums, means, and the squares of statistics."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.adder_tree import adder_tree, tree_levels
from hw.lib.arithmetic.multiply_add import MULTIPLY_ADD_LATENCY, multiply_add
from hw.lib.delay import delay
from hw.lib.memory import ports, uninitialised
from hw.network.normalization import (
    BIAS_BITS,
    BIAS_PLACES,
    COARSE_PLACES,
    LEAST_SHIFT,
    MOST_STEPS,
    SHIFT_BITS,
    SLOPE_BITS,
    STEP,
    TERM_BITS,
    VALUE_BITS,
    Z_BITS,
)
from hw.network.vector.layouts import GRANULE_CHANNELS, ChannelRow
from hw.network.vector.narrowing import NARROWING_LATENCY, narrowed

#: Values of a granule.
WIDE_LANES = GRANULE_CHANNELS
#: Bits of a square, and of sums over a granule.
SQUARE_BITS = 2 * VALUE_BITS - 1
GRANULE_SUM_BITS, GRANULE_SQUARES_BITS = VALUE_BITS + 3, SQUARE_BITS + 3

#: Stages: cycles from a step's words at the ports to each register or port.
_VALUE_AT = 2
_SLOPE_AT = _VALUE_AT + 1
_FIRST_AT = _SLOPE_AT + MULTIPLY_ADD_LATENCY
_NORMAL_AT = _FIRST_AT + 1
_SECOND_AT = _NORMAL_AT + MULTIPLY_ADD_LATENCY
#: The second operand of a sum: its product meets the first one's at the second adder.
_OTHER_AT = _SLOPE_AT
#: Ports of the slope, of the term beside its product, of the steps of its shift, and of the channels' row.
SLOPE_PORT_AT, TERM_PORT_AT, STEPS_PORT_AT = _SLOPE_AT - 1, _SLOPE_AT, _FIRST_AT - 1
ROW_PORT_AT = _NORMAL_AT - 4
#: The sums of a granule, and the results of sums and of LayerNorm.
GRANULE_SUMS_AT = _FIRST_AT + tree_levels(WIDE_LANES)
SUM_RESULT_AT = _FIRST_AT + 1 + NARROWING_LATENCY
NORM_RESULT_AT = _SECOND_AT + NARROWING_LATENCY
#: Bits of the sum before its shift.
_TOTAL_BITS = BIAS_BITS + BIAS_PLACES + 2


class WideSettings(data.StructLayout):
    """What stays for a command."""

    def __init__(self) -> None:
        super().__init__(
            {
                "squares": 1,  #: The first product is the value's square.
                "sums": 1,  #: The result is a sum of two products, ties to even.
                "factor": signed(Z_BITS),  #: Of the second operand.
                "shift": SHIFT_BITS,
                "byte": 1,  #: Results are int8.
            }
        )


class ChannelWrite(data.StructLayout):
    """A row of all lanes."""

    def __init__(self, rows: int) -> None:
        factors = data.ArrayLayout(ChannelRow(), WIDE_LANES)
        super().__init__({"enable": 1, "row": range(rows), "data": factors})


class WideGranule(wiring.Component):
    """Eight lanes, for a granule of int16.

    ``rows``: of the channels' factors. ``whole``: whether lanes have results of 16 bits, second operands and
    squares, or LayerNorm to int8 alone.

    Behaviour
    ---------
    A step a cycle, without handshakes.  Inputs and outputs have the stages of the constants above, counted
    from the step's words.
    """

    def __init__(self, rows: int, *, whole: bool) -> None:
        self._rows = rows
        self._whole = whole
        words = data.ArrayLayout(signed(VALUE_BITS), WIDE_LANES)
        result = VALUE_BITS if whole else 8
        super().__init__(
            {
                "settings": In(WideSettings()),
                "valid": In(1),  #: The values count; others are 0.
                "first": In(words),
                "slope": In(signed(SLOPE_BITS)),
                "term": In(signed(TERM_BITS)),
                "keep": In(1),  #: With ``term``: the sum before is added.
                "steps": In(range(MOST_STEPS + 1)),
                "row": In(range(rows)),
                "channels": In(ChannelWrite(rows)),
                "result": Out(data.ArrayLayout(signed(result), WIDE_LANES)),
                **(
                    {
                        "second": In(words),
                        "sum": Out(signed(GRANULE_SUM_BITS)),
                        "squares": Out(GRANULE_SQUARES_BITS),
                    }
                    if whole
                    else {}
                ),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Registers of all inputs, the channels' factors, and the lanes."""
        m = Module()
        settings = delay(m, "held_settings", self.settings, 1, reset=False)
        slope = delay(m, "slope_held", self.slope, 1, reset=False)
        term = delay(m, "term_held", self.term, 1, reset=False)
        keep = delay(m, "keep_held", self.keep, 1, reset=False)
        steps = delay(m, "steps_held", self.steps, 1, reset=False)
        factors = self._factors(m)
        values, squares = [], []
        for n in range(WIDE_LANES):
            value = Signal(signed(VALUE_BITS), name=f"value_{n}", reset_less=True)
            m.d.sync += value.eq(Mux(self.valid, self.first[n], 0))
            value = delay(m, f"value_{n}", value, _VALUE_AT - 1, reset=False)
            factor: Value = slope
            if self._whole:
                late = delay(m, f"late_value_{n}", value, 1, reset=False)
                values.append(late)
                factor = Mux(settings.squares, late, slope)
            first, cascade = multiply_add(
                m, platform, f"first_{n}", factor=factor, value=value, add=term, keep=keep
            )
            squares.append(first[:SQUARE_BITS])
            self._end(m, platform, n, settings, steps, first, cascade, factors[n])
        if self._whole:
            total = adder_tree(m, "sum", values, GRANULE_SUM_BITS)
            late_total = delay(m, "sum_held", total, _FIRST_AT - _SLOPE_AT, reset=False)
            m.d.comb += [
                self.sum.eq(late_total),
                self.squares.eq(adder_tree(m, "squares", squares, GRANULE_SQUARES_BITS).as_unsigned()),
            ]
        return m

    def _factors(self, m: Module) -> list[Any]:
        """Return the factors of all channels, in time for the second product's value."""
        row = delay(m, "row_held", self.row, 1, reset=False)
        write = delay(m, "channels_held", self.channels, 1)
        found = []
        for n in range(WIDE_LANES):
            ram: memory.Memory = uninitialised(width=ChannelRow().size, depth=self._rows, ram_style="block")
            m.submodules[f"channels_{n}"] = ram
            port, read = ports(ram)
            m.d.comb += [
                port.en.eq(write.enable),
                port.addr.eq(write.row),
                port.data.eq(Value.cast(write.data[n])),
                read.en.eq(1),
                read.addr.eq(row),
            ]
            held = Signal(ChannelRow(), name=f"factors_{n}", reset_less=True)
            m.d.sync += Value.cast(held).eq(read.data)
            found.append(held)
        return found

    def _end(
        self,
        m: Module,
        platform: Any,
        n: int,
        settings: Any,
        steps: Value,
        first: Signal,
        cascade: Signal,
        factors: Any,
    ) -> None:
        """Shift, scale and narrow a lane's product."""
        normal = Signal(signed(Z_BITS), name=f"normal_{n}", reset_less=True)
        shifts = Array(first[STEP * at : STEP * at + Z_BITS] for at in range(MOST_STEPS + 1))
        m.d.sync += normal.eq(shifts[steps])
        late = delay(m, f"late_factors_{n}", factors, 1, reset=False)
        added = Signal(signed(BIAS_BITS + 1), name=f"added_{n}", reset_less=True)
        top = normal[COARSE_PLACES:].as_signed()
        quarters = Mux(late.fine[1], Mux(late.fine[0], ~top, top << 1), Mux(late.fine[0], top, 0))
        m.d.sync += added.eq(late.bias + quarters)
        value: Value = factors.gain
        factor: Value = normal
        chained = None
        if self._whole:
            other = delay(m, f"other_{n}", self.second[n], _OTHER_AT, reset=False)
            value = Mux(settings.sums, other, value)
            factor = Mux(settings.sums, settings.factor, factor)
            chained = settings.sums
        total, _ = multiply_add(
            m,
            platform,
            f"second_{n}",
            factor=factor,
            value=value,
            add=Cat(Const(0, BIAS_PLACES), added).as_signed(),
            cascade=cascade if self._whole else None,
            chained=chained,
        )
        m.d.comb += self.result[n].eq(
            narrowed(
                m,
                f"narrowed_{n}",
                total[:_TOTAL_BITS],
                settings.shift,
                least=LEAST_SHIFT,
                bits=VALUE_BITS if self._whole else 8,
                ties=settings.sums if self._whole else None,
                byte=settings.byte if self._whole else None,
            )
        )
