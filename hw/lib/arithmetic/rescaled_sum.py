"""The sum of two int8 or int16 with scales of their own, in integers: onnxruntime's QLinearAdd.

``clamp(((a - a_zero) * first + (b - b_zero) * second) / 2^24 + zero)``, rounded to even with the zero point.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from hw.lib.arithmetic.dsp import WEIGHTED_SUM_LATENCY, weighted_sum
from hw.lib.arithmetic.sum_exceptions import matched

#: Bits of a factor, unsigned, and its fraction bits.
FACTOR_BITS, FRACTION_BITS = 26, 24
#: Cycles from the operands to the result.
RESCALED_SUM_LATENCY = 1 + WEIGHTED_SUM_LATENCY + 3


def rescaled_sum(
    m: Module,
    platform: Any,
    name: str,
    *,
    operands: tuple[Value, Value],
    zeros: tuple[Value, Value],
    factors: tuple[Value, Value],
    exceptions: Any,
    zero: Value,
    low: Value,
    high: Value,
) -> Signal:
    """Return the sum of two operands of `RESCALED_SUM_LATENCY` cycles ago, as wide as they.

    * ``m``, ``platform``: the component being elaborated, and the platform of its ``elaborate``.
    * ``name``: of the registers.
    * ``operands``, ``zeros``: two int8, or two int16, and their zero points, int8.
    * ``factors``: `FACTOR_BITS` bits each.  They stay from 2 cycles before the first operands on.
    * ``exceptions``: a view of `SumExceptions`: low bytes of operands whose rounding is inverted; they stay
      like factors.
    * ``zero``, ``low``, ``high``: zero point and bounds of the result; they stay while results leave.
    """
    bits = len(operands[0])

    def register(what: str, shape: Any = 1) -> Signal:
        return Signal(shape, name=f"{name}_{what}", reset_less=True)

    centered = [register(f"centered_{n}", signed(bits + 1)) for n in range(2)]
    m.d.sync += [
        each.eq(operand - point) for each, operand, point in zip(centered, operands, zeros, strict=True)
    ]
    total = weighted_sum(
        m,
        platform,
        f"{name}_sum",
        values=(centered[0], centered[1]),
        factors=(
            Cat(factors[0], Const(0, 1)).as_signed(),
            Cat(factors[1], Const(0, 1)).as_signed(),
        ),
        add=Const(0, signed(1)),
        keep=Const(0, 1),
    )[: FACTOR_BITS + bits + 2].as_signed()
    whole = total[FRACTION_BITS:].as_signed()
    base = register("base", signed(len(whole) + 1))
    up = register("up")
    rest = total[: FRACTION_BITS - 1].any()
    odd = whole[0] ^ zero[0]
    m.d.sync += [base.eq(whole + zero), up.eq(total[FRACTION_BITS - 1] & (rest | odd))]
    # Beside ``up``: the adder's lowest bit has room for it.
    latency = 1 + WEIGHTED_SUM_LATENCY + 1
    stored = operands[0][:8].as_signed(), operands[1][:8].as_signed()
    inverts = matched(m, f"{name}_exception", stored, exceptions, latency=latency)
    rounded = register("rounded", signed(len(base) + 1))
    result = register("result", signed(bits))
    m.d.sync += [
        rounded.eq(base + (up ^ inverts)),
        result.eq(Mux(rounded < low, low, Mux(rounded > high, high, rounded[:bits].as_signed()))),
    ]
    return result
