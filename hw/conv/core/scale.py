"""From a sum to an int8: multiply, shift, round, add, clamp, over six cycles."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from hw.conv.config import POST_BITS
from hw.lib.arithmetic.requantize import doubled, rounded
from hw.lib.delay import delay

#: Cycles from a sum to its result.
SCALE_LATENCY = 6
#: Cycles from a sum to its shift, its ``raw`` flag, the term added after the shift, and the bounds.
SHIFT_AT, RAW_AT, POST_AT, BOUNDS_AT = 2, 3, 4, 5

#: Bits of a sum that a 27 x 18 multiplier takes, with a zero for a sign.
_LOW_BITS = 26
#: Places that the second stage of the shift leaves to the third.
_FINE_BITS = 4
#: A doubled product wider than this, before a last shift of up to 15 places, is out of bounds.  No added term
#: can change that: half of ``2^32 >> 15`` is 2^16, more than 2^15 and 2^7 together.
_KEPT_BITS = 33


def scale(
    m: Module,
    name: str,
    value: Value,
    multiplier: Value,
    *,
    shift: Value,
    raw: Value,
    post: Value,
    low: Value,
    high: Value,
) -> Signal:
    """Return ``clamp(((value * multiplier + (1 << shift >> 1)) >> shift) + post, low, high)``.

    * ``name``: of the registers: ``name_product`` and so on.
    * ``value``: a sum, signed, of at most 48 bits.
    * ``multiplier``: unsigned, 16 bits, in the same cycle as ``value``.
    * ``shift``: unsigned, 6 bits, `SHIFT_AT` cycles after ``value``.
    * ``raw``: the result is the low 8 bits of ``(value * multiplier >> shift) + post``; `RAW_AT` cycles
      after.
    * ``post``: signed, 16 bits, `POST_AT` cycles after.
    * ``low``, ``high``: bounds, int8, `BOUNDS_AT` cycles after.

    The result, int8, is that of the ``value`` of `SCALE_LATENCY` cycles ago; one every cycle.
    """

    def register(what: str, bits: int) -> Signal:
        return Signal(signed(bits), name=f"{name}_{what}", reset_less=True)

    factor = Cat(multiplier, Const(0, 1)).as_signed()
    product = register("product", len(value) + len(multiplier))
    if len(value) <= _LOW_BITS + 1:
        only = register("only", len(product))
        m.d.sync += [only.eq(value * factor), product.eq(only)]
    else:
        upper = register("upper", len(product) - _LOW_BITS)
        lower = register("lower", _LOW_BITS + len(factor))
        below = Cat(value[:_LOW_BITS], Const(0, 1)).as_signed()
        m.d.sync += [
            upper.eq(value[_LOW_BITS:].as_signed() * factor),
            lower.eq(below * factor),
            product.eq(Cat(lower[:_LOW_BITS], (upper + lower[_LOW_BITS:])[: len(upper)])),
        ]
    # The shift keeps the bit below the result (`hw.lib.arithmetic.requantize`): first multiples of 16 places.
    shifted = Signal(signed(len(product) + 1), name=f"{name}_shifted")
    m.d.comb += shifted.eq(doubled(product) >> Cat(Const(0, _FINE_BITS), shift[_FINE_BITS:]))
    halves = register("halves", min(len(shifted), _KEPT_BITS))
    coarse = register("coarse", len(halves))
    sign, over = register("sign", 1), register("over", 1)
    above = shifted[len(halves) - 1 :]
    limit = Cat((~sign).replicate(len(halves) - 1), sign).as_signed()
    kept = Mux(over & ~raw, limit, coarse)
    fine = (kept >> delay(m, f"{name}_fine", shift[:_FINE_BITS], 1, reset=False))[: len(halves)]
    total = register("total", max(len(halves), POST_BITS + 1))
    is_raw = delay(m, f"{name}_raw", raw, 2, reset=False)
    result = register("result", 8)
    m.d.sync += [
        coarse.eq(shifted[: len(halves)]),
        sign.eq(shifted[-1]),
        over.eq(above.any() & ~above.all()),
        halves.eq(Cat(fine[0] & ~raw, fine[1:])),
        total.eq(rounded(halves) + post),
        result.eq(Mux(is_raw, total[:8], Mux(total < low, low, Mux(total > high, high, total[:8])))),
    ]
    return result
