"""The lanes of a granule: windows, sums, products, tables and bounds, a byte each."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.dsp import WEIGHTED_SUM_LATENCY, weighted_sum
from hw.lib.arithmetic.float_scale import (
    EXPONENT_AT,
    FACTOR_AT,
    FLOAT_SCALE_LATENCY,
    SCALE_INVERTS_AT,
    float_scale,
)
from hw.lib.arithmetic.sum_exceptions import SumExceptions, matched
from hw.lib.delay import delay
from hw.lib.loads import copies
from hw.network.tables.layouts import TableWrite
from hw.network.tables.lookup import looked_up
from hw.network.vector.config import GRANULE_LANES
from hw.network.vector.layouts import FACTOR_BITS, SHIFT_BITS, ScaleRow
from hw.network.vector.rounding import INVERTS_AT, ROUNDING_LATENCY, rounded_to_int8

#: Stages: cycles from a step's words at the ports to each register.
_WORDS_AT, _OPERANDS_AT, _WINDOW_AT = 1, 2, 3
_TOTAL_AT = _OPERANDS_AT + WEIGHTED_SUM_LATENCY
#: Stages of the results; of the port of factors, and of the one of exponents.
WINDOW_RESULT_AT = _WINDOW_AT + 1
ADD_RESULT_AT = _TOTAL_AT + ROUNDING_LATENCY + 1
SCALED_RESULT_AT = _TOTAL_AT + FLOAT_SCALE_LATENCY + 1
FACTOR_PORT_AT = _TOTAL_AT + FACTOR_AT - 1
EXPONENT_PORT_AT = _TOTAL_AT + EXPONENT_AT - 1

#: Bits of the sum of two products of an addition, and of a sum to scale: of 2^15 differences of two bytes.
_TOTAL_BITS, _SUM_BITS = FACTOR_BITS + 10, 24
#: Lanes that one copy of a flag serves.
_COPY_LANES = 4


class Pick(data.StructLayout):
    """Which result is taken: window's maximum, table's result, sum, scaled number."""

    def __init__(self) -> None:
        super().__init__({"second": 1, "last_two": 1})


class LaneSettings(data.StructLayout):
    """What stays for a command."""

    def __init__(self) -> None:
        super().__init__(
            {
                "pick": Pick(),
                "multiplies": 1,
                "adds_up": 1,  #: The steps of a window.
                "fill_first": signed(8),  #: Operands outside of the image, or none.
                "fill_second": signed(8),
                "zero_first": signed(8),
                "zero_second": signed(8),
                "zero": signed(8),
                "low": signed(8),
                "high": signed(8),
                "factor_first": FACTOR_BITS,
                "factor_second": FACTOR_BITS,
                "shift": SHIFT_BITS,
                "exceptions": SumExceptions(),
                "ties_odd": 1,
            }
        )


class LaneFlags(data.StructLayout):
    """Of a step; see `hw.network.vector.walker.Step`."""

    def __init__(self) -> None:
        names = ("valid", "first", "joins", "keeps", "keeps_first", "keeps_second")
        super().__init__(dict.fromkeys(names, 1) | {"inside": 2})


class VectorGranule(wiring.Component):
    """The lanes of a granule.

    Behaviour
    ---------
    A step a cycle, without handshakes.  ``result`` is that of the window or word whose last step was at the
    ports as many cycles ago as the constants above say, by kind.
    """

    def __init__(self) -> None:
        word = data.ArrayLayout(signed(8), GRANULE_LANES)
        super().__init__(
            {
                "settings": In(LaneSettings()),
                "flags": In(LaneFlags()),
                "first": In(word),
                "second": In(word),
                "load": In(1),  #: `FACTOR_PORT_AT` stages: ``multiplier`` is that of the window.
                "multiplier": In(ScaleRow().members["multiplier"]),
                "exponent": In(ScaleRow().members["exponent"]),  #: `EXPONENT_PORT_AT` stages.
                "table": In(TableWrite()),
                "result": Out(word),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Registers of all inputs, and the lanes."""
        m = Module()
        settings = delay(m, "held_settings", self.settings, 1, reset=False)
        table = delay(m, "table_write", self.table, 1)
        words = [
            delay(m, f"{name}_word", getattr(self, name), 1, reset=False) for name in ("first", "second")
        ]
        scale = {
            name: delay(m, f"held_{name}", getattr(self, name), 1, reset=name == "load")
            for name in ("multiplier", "load", "exponent")
        }
        parts = GRANULE_LANES // _COPY_LANES
        early = copies(Signal(len(Value.cast(self.flags)), name="flags"), parts)
        late = copies(Signal(len(Value.cast(self.flags)), name="late_flags"), parts)
        m.d.sync += [each.eq(Value.cast(self.flags)) for each in early]
        m.d.sync += [after.eq(before) for after, before in zip(late, early, strict=True)]
        for n in range(GRANULE_LANES):
            flags = [data.View(LaneFlags(), each[n // _COPY_LANES]) for each in (early, late)]
            operands = [word[n] for word in words]
            self._lane(m, platform, n, settings, flags, operands, table, scale)
        return m

    def _lane(
        self,
        m: Module,
        platform: Any,
        n: int,
        settings: Any,
        flags: list[Any],
        operands: list[Value],
        table: Any,
        scale: dict[str, Value],
    ) -> None:
        """Make one lane."""
        early, late = flags

        def register(what: str, shape: Any) -> Signal:
            return Signal(shape, name=f"{what}_{n}", reset_less=True)

        operand_first, operand_second = (register(f"operand_{at}", signed(9)) for at in range(2))
        most, second = register("most", signed(8)), register("second", signed(8))
        multiplicand = register("multiplicand", signed(9))  # of a product
        keep = register("keep", 1)
        filled = Signal(signed(8), name=f"filled_{n}")
        other = Signal(signed(8), name=f"other_{n}")
        difference = Signal(signed(9), name=f"difference_{n}")
        m.d.comb += [
            filled.eq(Mux(early.inside[0], operands[0], settings.fill_first)),
            other.eq(Mux(early.inside[1], operands[1], settings.fill_second)),
            difference.eq(other - settings.zero_second),
        ]
        m.d.sync += [
            operand_first.eq(filled - settings.zero_first),
            operand_second.eq(difference),
            multiplicand.eq(Mux(settings.multiplies, difference, 0)),
            most.eq(Mux(filled > other, filled, other)),
            second.eq(other),
            keep.eq(settings.adds_up & ~early.first),
        ]

        window = self._window(m, register, late, most, second)
        mapped = register("mapped", signed(8))
        m.d.sync += mapped.eq(looked_up(m, f"lookup_{n}", table, most))
        total = weighted_sum(
            m,
            platform,
            f"total_{n}",
            values=(operand_first, operand_second),
            factors=tuple(Cat(settings[name], 0).as_signed() for name in ("factor_first", "factor_second")),
            add=multiplicand,
            keep=keep,
        )
        sum_bits = total[:_TOTAL_BITS].as_signed()
        latency = _TOTAL_AT + INVERTS_AT - _WORDS_AT
        pair = operands[0], operands[1]
        inverts = matched(m, f"exception_{n}", pair, settings.exceptions, latency=latency)
        late_inverts = delay(m, f"inverts_{n}", inverts, SCALE_INVERTS_AT - INVERTS_AT, reset=False)
        added = rounded_to_int8(m, f"added_{n}", sum_bits, settings.shift, settings.zero, inverts)
        value = total[:_SUM_BITS].as_signed()
        scaled = float_scale(
            m,
            platform,
            f"scaled_{n}",
            value,
            zero=settings.zero,
            ties_odd=settings.ties_odd,
            inverts=late_inverts,
            **scale,
        )

        pick = settings.pick
        found = Signal(signed(8), name=f"found_{n}")
        m.d.comb += found.eq(
            Mux(pick.last_two, Mux(pick.second, scaled, added), Mux(pick.second, mapped, window))
        )
        held = register("bounded", signed(8))
        m.d.sync += held.eq(
            Mux(found < settings.low, settings.low, Mux(found > settings.high, settings.high, found))
        )
        m.d.comb += self.result[n].eq(held)

    def _window(self, m: Module, register: Any, flags: Any, most: Value, second: Value) -> Signal:
        """Return the maximum of a window up to this step, with the columns kept by the one before."""
        window, kept = register("window", signed(8)), register("kept", signed(8))
        before = Signal(signed(8), name=f"before_{window.name}")
        kept_before = Signal(signed(8), name=f"before_{kept.name}")
        keeping = Signal(signed(8), name=f"keeping_{kept.name}")
        m.d.comb += [
            before.eq(Mux(flags.first, Mux(flags.joins, kept, -128), window)),
            kept_before.eq(Mux(flags.keeps_first, -128, kept)),
            keeping.eq(Mux(flags.keeps_second, second, most)),
        ]
        with m.If(flags.valid):
            m.d.sync += window.eq(Mux(most > before, most, before))
        with m.If(flags.valid & flags.keeps):
            m.d.sync += kept.eq(Mux(keeping > kept_before, keeping, kept_before))
        return window
