"""The reciprocal root of a pixel's spread, and from it slope and term of its values."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.adder_tree import adder_tree, tree_levels
from hw.lib.arithmetic.dsp import WIDE_PRODUCT_LATENCY, wide_product
from hw.lib.delay import delay
from hw.network.normalization import (
    LEAST_EXPONENT,
    MOST_DROPPED,
    MOST_STEPS,
    ODD_BITS,
    REST_BITS,
    ROOT_BITS,
    ROOT_PLACES,
    ROOT_ROWS,
    ROOT_SLOPE_BITS,
    ROOT_VALUE_BITS,
    SLOPE_BITS,
    SPREAD_BITS,
    STEP,
    TERM_BITS,
    root_table,
)
from hw.network.vector.layouts import DIVISOR_BITS, TWOS_BITS, PixelSettings
from hw.network.vector.row_statistics import RowSums

#: Bits of an exponent.
_EXPONENT_BITS = 5
#: Bits of the spread that the table looks at: which half, row, place in the row.
_ROW_BITS = ROOT_ROWS.bit_length() - 1
_USED_BITS = 2 + _ROW_BITS + REST_BITS
#: Most places that slope and term are shifted up, and that the slope is shifted down.
_UP, _DOWN = -LEAST_EXPONENT, 2
#: Stages of the parts.
_HELD_AT = 1
_SPREAD_AT = _HELD_AT + max(WIDE_PRODUCT_LATENCY, tree_levels(DIVISOR_BITS) + 1) + 1
_NORMAL_AT = _SPREAD_AT + 3
_ROOT_AT = _NORMAL_AT + 5
_PRODUCT_AT = _ROOT_AT + WIDE_PRODUCT_LATENCY
#: Cycles from a pixel's sums to its factors.
ROOT_LATENCY = _PRODUCT_AT + 3


class PixelFactors(data.StructLayout):
    """What normalizes the values of a pixel: the slope R, ``h - T``, and j."""

    def __init__(self) -> None:
        super().__init__({"slope": SLOPE_BITS - 1, "term": signed(TERM_BITS), "steps": range(MOST_STEPS + 1)})


class ReciprocalRoot(wiring.Component):
    """Factors of pixels from their sums.

    Behaviour
    ---------
    A pixel each second cycle, without handshakes.  ``o`` belongs to the sums of `ROOT_LATENCY` cycles ago.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "settings": In(PixelSettings()),
                "i_valid": In(1),
                "i": In(RowSums()),
                "o": Out(PixelFactors()),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Spread -> leading digit -> table -> products -> shifts."""
        m = Module()
        # Sums stay for two cycles, as products of two slices need.
        sums = Signal(RowSums(), reset_less=True)
        with m.If(self.i_valid):
            m.d.sync += Value.cast(sums).eq(Value.cast(self.i))
        spread = self._spread(m, platform, sums)
        normal, exponent = self._leading(m, spread)
        root = self._root(m, normal)
        steps, lift = self._exponents(m, exponent)
        self._factors(m, platform, sums.sum, root, steps, lift)
        return m

    def _spread(self, m: Module, platform: Any, sums: Any) -> Signal:
        """Return ``n Q - S^2 + E``."""
        settings = self.settings
        square = wide_product(m, platform, "square", value=sums.sum, factor=sums.sum, load=Const(1, 1))
        parts = [
            Mux(settings.channels[n], Cat(Const(0, n), sums.squares), Const(0, 1))
            for n in range(DIVISOR_BITS)
        ]
        product = adder_tree(m, "product", parts, SPREAD_BITS).as_unsigned()
        lifted = Signal(SPREAD_BITS, reset_less=True)
        spread = Signal(SPREAD_BITS, reset_less=True)
        m.d.sync += lifted.eq(product + settings.epsilon)
        due = _SPREAD_AT - _HELD_AT - 1
        early = due - tree_levels(DIVISOR_BITS) - 1
        late = delay(m, "late_square", square, due - WIDE_PRODUCT_LATENCY, reset=False)
        m.d.sync += spread.eq(delay(m, "late_lifted", lifted, early, reset=False) - late)
        return spread

    def _leading(self, m: Module, spread: Signal) -> tuple[Signal, Signal]:
        """Shift the leading digit of base 4 to the front; return the upper bits, and the digit's place."""
        value, place = spread, Signal(_EXPONENT_BITS, init=SPREAD_BITS // 2 - 1, name="last_place")
        # Bits that later levels may shift to the front.
        kept = _USED_BITS + 2 * (3 * 8 + 3 * 2 + 1)
        for number, (step, choices) in enumerate(((8, 4), (2, 4), (1, 2))):
            bits = 2 * step
            kept -= bits * (choices - 1)
            amount = Signal(range(choices), name=f"digits_{number}")
            empty = [~value[len(value) - bits * (n + 1) :].any() for n in range(choices - 1)]
            m.d.comb += amount.eq(sum(empty[1:], empty[0]))
            front = Cat(Const(0, bits * (choices - 1)), value)
            shifted = Array(
                front[len(front) - bits * n - kept : len(front) - bits * n] for n in range(choices)
            )
            held = Signal(kept, name=f"normal_{number}", reset_less=True)
            held_place = Signal(_EXPONENT_BITS, name=f"place_{number}", reset_less=True)
            m.d.sync += [held.eq(shifted[amount]), held_place.eq(place - step * amount)]
            value, place = held, held_place
        return value, place

    def _root(self, m: Module, normal: Signal) -> Signal:
        """Look the root up, on a line between two rows."""
        upper = normal[-1]
        fields = Mux(upper, normal[1:-1], normal[:-2])
        address = Cat(fields[REST_BITS:], upper)
        rest = delay(m, "rest", fields[:REST_BITS], 1, reset=False)
        rows = [value << ROOT_SLOPE_BITS | slope for value, slope in root_table()]
        m.submodules.table = table = memory.Memory(
            shape=ROOT_VALUE_BITS + ROOT_SLOPE_BITS, depth=len(rows), init=rows, attrs={"ram_style": "block"}
        )
        read = table.read_port()
        m.d.comb += [read.en.eq(1), read.addr.eq(address)]
        row = delay(m, "row", read.data, 1, reset=False)
        rest = delay(m, "late_rest", rest, 1, reset=False)
        product = Signal(ROOT_SLOPE_BITS + REST_BITS, name="chord", reset_less=True)
        m.d.sync += product.eq(row[:ROOT_SLOPE_BITS] * rest)
        value = delay(m, "value", row[ROOT_SLOPE_BITS:], 1, reset=False)
        # The half below the last bit.
        cut = REST_BITS + ROOT_PLACES
        halves = Array(Const(1 << cut + n - 1, cut + MOST_DROPPED) for n in range(MOST_DROPPED + 1))
        half = Signal(cut + MOST_DROPPED, reset_less=True)
        line = Signal(ROOT_VALUE_BITS + REST_BITS + 1, reset_less=True)
        root = Signal(ROOT_BITS, reset_less=True)
        shifts = Array(line[cut + n :] for n in range(MOST_DROPPED + 1))
        m.d.sync += [
            half.eq(halves[self.settings.dropped]),
            line.eq(Cat(Const(0, REST_BITS), value) + half - product),
        ]
        # It stays for two cycles, too; the square was right for one.
        with m.If(delay(m, "arrives", self.i_valid, _ROOT_AT - 1)):
            m.d.sync += root.eq(shifts[self.settings.dropped])
        return root

    def _exponents(self, m: Module, place: Signal) -> tuple[Value, Value]:
        """Return j, and how many places slope and term are shifted up, `_DOWN` added; with the products."""
        settings = self.settings
        exponent = Signal(signed(_EXPONENT_BITS + 2), reset_less=True)
        steps = Signal(range(MOST_STEPS + 1), reset_less=True)
        lift = Signal(range(_UP + _DOWN + 1), reset_less=True)
        bounded = Signal(signed(_EXPONENT_BITS + 2))
        m.d.comb += bounded.eq(Mux(exponent < LEAST_EXPONENT, LEAST_EXPONENT, exponent))
        base = Signal(signed(_EXPONENT_BITS), reset_less=True)
        m.d.sync += [base.eq(settings.twos + settings.dropped), exponent.eq(place - base)]
        with m.If(bounded <= 0):
            m.d.sync += [steps.eq(0), lift.eq(_DOWN - bounded)]
        for n in range(1, MOST_STEPS + 1):
            with m.Elif((bounded <= STEP * n) if n < MOST_STEPS else Const(1, 1)):
                m.d.sync += [steps.eq(n), lift.eq(_DOWN + STEP * n - bounded)]
        later = _PRODUCT_AT - _NORMAL_AT - 2
        return delay(m, "late_steps", steps, later, reset=False), delay(
            m, "late_lift", lift, later, reset=False
        )

    def _factors(
        self, m: Module, platform: Any, total: Value, root: Signal, steps: Value, lift: Value
    ) -> None:
        """Multiply the root by the odd factor and by the sum, shift both, and add the rounding."""
        settings = self.settings
        late = delay(m, "late_sum", total, _ROOT_AT - _HELD_AT, reset=False)
        term = wide_product(
            m, platform, "term", value=late, factor=Cat(root, Const(0, 1)).as_signed(), load=Const(1, 1)
        )
        parts = [Mux(settings.odd[n], Cat(Const(0, n), root), Const(0, 1)) for n in range(ODD_BITS)]
        slope = adder_tree(m, "slope", parts, ODD_BITS + ROOT_BITS).as_unsigned()
        slope = delay(m, "late_slope", slope, _PRODUCT_AT - _ROOT_AT - tree_levels(ODD_BITS), reset=False)
        # Two levels: by twos and by one for the slope, by fours and by one for the term.
        coarse_slope = Signal(SLOPE_BITS - 1 + _DOWN + 1, reset_less=True)
        fine_slope = Signal(SLOPE_BITS - 1, reset_less=True)
        fine = delay(m, "lift_0", lift[0], 1, reset=False)
        m.d.sync += [
            coarse_slope.eq(Array(slope << 2 * n for n in range(4))[lift[1:]]),
            fine_slope.eq(Mux(fine, coarse_slope << 1, coarse_slope) >> _DOWN),
        ]
        # Shifted up by the rest of the lift, then down.
        down = Signal(TWOS_BITS + 1, reset_less=True)
        coarse_term = Signal(signed(len(term) + _UP), reset_less=True)
        fine_term = Signal(signed(TERM_BITS), reset_less=True)
        amount = settings.twos + (_UP + _DOWN) - lift
        m.d.sync += [
            coarse_term.eq(Array((term << _UP) >> 4 * n for n in range(4))[amount[2:4]]),
            down.eq(amount),
            fine_term.eq(Array(coarse_term >> n for n in range(4))[down[:2]]),
        ]
        late_steps = delay(m, "steps_held", steps, 2, reset=False)
        halves = Array([Const(0, 1), *(Const(1 << STEP * n - 1) for n in range(1, MOST_STEPS + 1))])
        o = Signal(PixelFactors(), name="factors", reset_less=True)
        m.d.sync += [
            o.slope.eq(fine_slope),
            o.term.eq(halves[late_steps] - fine_term),
            o.steps.eq(late_steps),
        ]
        m.d.comb += Value.cast(self.o).eq(Value.cast(o))
