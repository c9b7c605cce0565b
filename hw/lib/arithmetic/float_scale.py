"""From a sum to an int8 or int16 as float32 arithmetic does it: ``clamp(rint(float32(sum) * scale) + zero)``.

float32 arithmetic rounds three times, ties to even.  The sum is rounded to a significand of 24 bits, the
product to 24 bits, and this to an integer.  The gates do the same in integers.

The scale is ``multiplier / 8^(exponent + 5)``.  With a base of 8 the shift has two levels of four choices.
The multiplier has 26 bits for it: the 24 of float32's significand, shifted by up to two.
"""

from __future__ import annotations

import math
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from hw.errors import InputError
from hw.lib.arithmetic.dsp import WIDE_PRODUCT_LATENCY, wide_product
from hw.lib.arithmetic.windows import chosen, differs
from hw.lib.delay import delay

#: Bits of a sum, signed; of the multiplier and of the exponent, both unsigned.
SUM_BITS, MULTIPLIER_BITS, EXPONENT_BITS = 32, 26, 4
#: Bits of the narrowest sum.
_LEAST_SUM_BITS = 18
#: Bits of float32's significand.
_SIGNIFICAND_BITS = 24
#: Cycles from a sum to its scale and zero point.
FACTOR_AT, EXPONENT_AT = 1, 1 + WIDE_PRODUCT_LATENCY
ZERO_AT = EXPONENT_AT + 2
#: Cycles from a sum to whether its last rounding is inverted.
SCALE_INVERTS_AT = ZERO_AT + 2
#: Cycles from a sum to its result.
FLOAT_SCALE_LATENCY = ZERO_AT + 3

#: Exponents of 8 that the exponent counts from, and binary places of one of its steps.
_LEAST_EXPONENT, _STEP = 5, 3
#: Steps of the first level of the shift.
_COARSE = 4
#: Bits of the shifted product that decide the result: those of a fraction, and how many those of an integer
#: are more than the result's.  A larger integer is beyond the result with any zero point.  A product below a
#: quarter becomes 0.  A larger one has at most 25 bits of a fraction after its rounding, which one more bit
#: decides.
_FRACTION_BITS, _MORE_BITS = 26, 1


def float_scale_fields(scale: float) -> tuple[int, int]:
    """Return ``multiplier`` and ``exponent`` of `float_scale` for a scale, which is a float32 of at least 0.

    Every int8 is that of the scale; so is every int16 of a scale below 2^9.  A scale of 2^8 or more sends any
    sum but 0 beyond int8.  With one below 2^-32 every result is the zero point, as with a multiplier of 0.

    >>> float_scale_fields(0.5), float_scale_fields(2.0**-40)
    ((8388608, 3), (0, 0))
    """
    if not 0 <= scale < math.inf:
        raise InputError("scale", scale, "finite and at least 0")
    fraction, power = math.frexp(scale)
    multiplier, shift = int(fraction * (1 << _SIGNIFICAND_BITS)), _SIGNIFICAND_BITS - power
    if multiplier != fraction * (1 << _SIGNIFICAND_BITS):
        raise InputError("scale", scale, "a float32")
    if multiplier == 0 or shift > _SIGNIFICAND_BITS + SUM_BITS - 1:
        return 0, 0
    shift = max(shift, _STEP * _LEAST_EXPONENT)
    steps = -(-shift // _STEP)
    return multiplier << (_STEP * steps - shift), steps - _LEAST_EXPONENT


def float_scale(
    m: Module,
    platform: Any,
    name: str,
    value: Value,
    *,
    multiplier: Value,
    load: Value,
    exponent: Value,
    zero: Value,
    ties_odd: Value | None = None,
    inverts: Value | None = None,
    bits: int = 8,
) -> Signal:
    """Return ``clamp(rint(float32(value) * scale) + zero)``, the product being a float32.

    * ``m``, ``platform``: the component being elaborated, and the platform of its ``elaborate``.
    * ``name``: of the registers, which are ``name_WHAT``.
    * ``value``: a sum, signed, 18 to `SUM_BITS` wide.
    * ``multiplier``: `MULTIPLIER_BITS` wide, see `float_scale_fields`; it stays for a cycle after ``load``.
    * ``load``: the multiplier is taken for the ``value`` of `FACTOR_AT` cycles ago and later ones.
    * ``exponent``: unsigned, `EXPONENT_BITS` wide, `EXPONENT_AT` cycles after ``value``.
    * ``zero``: int8, `ZERO_AT` cycles after ``value``.
    * ``ties_odd``: like ``zero``: a tie goes to the odd integer, so that it is even with an odd zero point.
    * ``inverts``: `SCALE_INVERTS_AT` cycles after ``value``: the last rounding is inverted.
    * ``bits``: of the result, 8 or 16.

    The result, signed, is that of the ``value`` of `FLOAT_SCALE_LATENCY` cycles ago; one every cycle.
    """
    if not _LEAST_SUM_BITS <= len(value) <= SUM_BITS or len(multiplier) != MULTIPLIER_BITS:
        widths = f"{_LEAST_SUM_BITS} to {SUM_BITS} and {MULTIPLIER_BITS} bits wide"
        raise InputError("value and multiplier", (value.shape(), multiplier.shape()), widths)
    product = wide_product(
        m,
        platform,
        f"{name}_product",
        value=significand(m, name, value),
        factor=Cat(multiplier, Const(0, 1)).as_signed(),
        load=load,
    )
    shifted = _shifted(m, name, product, exponent, bits)
    return _to_integer(m, name, *shifted, zero, ties_odd=ties_odd, inverts=inverts, bits=bits)


def significand(m: Module, name: str, value: Value) -> Value:
    """Round a signed value to 24 significant bits, ties to even, for the next register: a cycle.

    The result is signed, a bit wider than ``value`` if that may lose bits.  In two's complement a negative
    power of two counts with the shorter numbers, but it is exact at any place.
    """
    held = Signal(value.shape(), name=f"{name}_value", reset_less=True)
    if len(value) <= _SIGNIFICAND_BITS + 1:
        m.d.sync += held.eq(value)
        return held
    most = len(value) - 1 - _SIGNIFICAND_BITS  # bits that the largest values lose
    # Bit n: the value loses more than n bits.
    loses = Signal(most, name=f"{name}_loses", reset_less=True)
    carry = Signal(name=f"{name}_carry", reset_less=True)
    above = value[_SIGNIFICAND_BITS:-1] ^ value[-1].replicate(most)
    odd: Value = Const(0, 1)
    for n in range(most):
        odd = Mux(above[n], value[n + 1], odd)
    m.d.sync += [held.eq(value), loses.eq(Cat(above[n:].any() for n in range(most))), carry.eq(odd)]
    # Half a unit less one, and one more if the bit that stays is odd: a tie becomes even.
    rounded = (Cat(Const(1, 1), held).as_signed() + Cat(carry, loses[1:], Const(0, 1)).as_signed()) >> 1
    rounded = rounded[: len(value) + 1]
    return Cat(rounded[:most] & ~loses, rounded[most:]).as_signed()


def _shifted(
    m: Module, name: str, product: Value, exponent: Value, bits: int
) -> tuple[Value, Value, Value, Value]:
    """Divide a product by the scale's power of 8, in two cycles.

    Returns the window of bits that decide the result, whether lower bits hold anything, whether the number
    is too large for the window, and its sign.
    """
    window = bits + _MORE_BITS + _FRACTION_BITS
    fill = _FRACTION_BITS - _STEP * _LEAST_EXPONENT
    value = Cat(Const(0, fill), product)
    rest: Value = Const(0, 1)
    over: Value = Const(0, 1)
    sign = product[-1]
    fine = delay(m, f"{name}_fine", exponent[:2], 1, reset=False)
    levels = (
        ("coarse", exponent[2:], _STEP * _COARSE, window + _STEP * (_COARSE - 1)),
        ("fine", fine, _STEP, window),
    )
    for what, amount, step, width in levels:
        kept = Signal(width, name=f"{name}_{what}_window", reset_less=True)
        kept_rest = Signal(name=f"{name}_{what}_rest", reset_less=True)
        kept_over = Signal(name=f"{name}_{what}_over", reset_less=True)
        kept_sign = Signal(name=f"{name}_{what}_sign", reset_less=True)
        extended = Cat(value, sign.replicate(max(0, width + 3 * step - len(value))))
        firsts = [n * step for n in range(4)]
        m.d.sync += [
            kept.eq(chosen(amount, [extended[first : first + width] for first in firsts])),
            kept_rest.eq(rest | chosen(amount, [extended[:first].any() for first in firsts])),
            kept_over.eq(
                over | chosen(amount, [differs(value[first + width - 1 :], sign) for first in firsts])
            ),
            kept_sign.eq(sign),
        ]
        value, rest, over, sign = kept, kept_rest, kept_over, kept_sign
    return value, rest, over, sign


def _to_integer(
    m: Module,
    name: str,
    window: Value,
    rest: Value,
    over: Value,
    sign: Value,
    zero: Value,
    *,
    ties_odd: Value | None = None,
    inverts: Value | None = None,
    bits: int = 8,
) -> Signal:
    """Round a window to 24 significant bits, then to an integer, add the zero point, and clamp.

    Two roundings differ from one where the first ends at a tie.  All bits of the significand behind the half
    are then zeros, or ones without the half.
    """

    def register(what: str, shape: Any = 1) -> Signal:
        return Signal(shape, name=f"{name}_{what}", reset_less=True)

    whole, half = window[_FRACTION_BITS:].as_signed(), window[_FRACTION_BITS - 1]
    # Fraction bits from 2^-2 on: the first always belong to the significand or decide its rounding.
    fraction = [window[_FRACTION_BITS - n] for n in range(2, _FRACTION_BITS + 1)]
    # The place of the last bit of the largest product's significand, less one.
    always = _SIGNIFICAND_BITS - (bits + _MORE_BITS - 1) - 1
    # Bit n: the number is so large that the n-th bit of the tail is behind the one that decides.
    sizes = [bit ^ sign for bit in reversed([half, *whole[:-1]])]
    behind = register("behind", len(sizes))
    tail = register("tail", len(fraction) - always)
    leads, is_half, is_odd, has_rest = (register(what) for what in ("leads", "half", "odd", "has_rest"))
    base = register("base", signed(bits + _MORE_BITS + 1))
    m.d.sync += [
        leads.eq(Cat(bit ^ half for bit in fraction[:always]).all()),
        tail.eq(Cat(fraction[always:])),
        behind.eq(Cat(Cat(sizes[: n + 1]).any() for n in range(len(sizes)))),
        is_half.eq(half),
        is_odd.eq(whole[0] if ties_odd is None else whole[0] ^ ties_odd),
        has_rest.eq(rest),
        base.eq(whole + zero),
    ]
    beyond = Cat(Const(0, 1), behind)  # the tail's first bit always counts
    decides = Cat(behind, Const(1, 1)) & ~beyond
    near = Cat(bit ^ is_half | late for bit, late in zip(tail, beyond, strict=True)).all()
    tie = is_half & ~has_rest & (tail == decides)
    up = register("up")
    total_base = register("total_base", base.shape())
    m.d.sync += [up.eq(Mux(leads & (near | tie), is_odd, is_half)), total_base.eq(base)]
    late_over = delay(m, f"{name}_late_over", over, 2, reset=False)
    late_sign = delay(m, f"{name}_late_sign", sign, 2, reset=False)
    total = Signal(base.shape(), name=f"{name}_total")
    result = register("result", signed(bits))
    negative = Mux(late_over, late_sign, total[-1])
    clamps = late_over | differs(total[bits - 1 : -1], total[-1])
    m.d.comb += total.eq(total_base + (up if inverts is None else up ^ inverts))
    m.d.sync += result.eq(
        Mux(clamps, Cat((~negative).replicate(bits - 1), negative), total[:bits]).as_signed()
    )
    return result
