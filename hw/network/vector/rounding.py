"""The end of an addition: a sum over a power of two, to even, with a zero point, clamped to int8."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed

from hw.lib.arithmetic.windows import chosen, differs
from hw.lib.delay import delay
from hw.network.vector.layouts import LEAST_SHIFT

#: Cycles from a sum to whether its rounding is inverted, and to its result.
INVERTS_AT, ROUNDING_LATENCY = 2, 4
#: Bits of the integer that decide the result: a larger one is beyond int8 with any zero point.
_INTEGER_BITS = 10


def rounded_to_int8(m: Module, name: str, total: Value, shift: Value, zero: Value, inverts: Value) -> Signal:
    """Return ``clamp(rint(total / 2^(shift + LEAST_SHIFT) + zero), -128, 127)``, ties to even.

    * ``name``: of the registers.
    * ``total``: signed. ``shift``: 4 bits; it stays. ``zero``: int8; it stays.
    * ``inverts``: `INVERTS_AT` cycles after ``total``: the rounding is inverted.

    The result, int8, is that of the ``total`` of `ROUNDING_LATENCY` cycles ago.
    """
    sign = total[-1]
    # The half, and the integer's bits above it.
    value, width = total[LEAST_SHIFT - 1 :], 1 + _INTEGER_BITS
    rest: Value = total[: LEAST_SHIFT - 1].any()
    over: Value = sign ^ sign
    for level, amount, step in (("coarse", shift[2:], 4), ("fine", shift[:2], 1)):
        kept_width = width + (3 if step == 4 else 0)
        window = Signal(kept_width, name=f"{name}_{level}", reset_less=True)
        kept_rest = Signal(name=f"{name}_{level}_rest", reset_less=True)
        kept_over = Signal(name=f"{name}_{level}_over", reset_less=True)
        kept_sign = Signal(name=f"{name}_{level}_sign", reset_less=True)
        extended = Cat(value, sign.replicate(max(0, kept_width + 3 * step - len(value))))
        firsts = [n * step for n in range(4)]
        m.d.sync += [
            window.eq(chosen(amount, [extended[first : first + kept_width] for first in firsts])),
            kept_rest.eq(rest | chosen(amount, [extended[:first].any() if first else 0 for first in firsts])),
            kept_over.eq(
                over | chosen(amount, [differs(extended[first + kept_width - 1 :], sign) for first in firsts])
            ),
            kept_sign.eq(sign),
        ]
        value, rest, over, sign = window, kept_rest, kept_over, kept_sign
    base = Signal(signed(_INTEGER_BITS + 1), name=f"{name}_base", reset_less=True)
    up = Signal(name=f"{name}_up", reset_less=True)
    odd = value[1] ^ zero[0]
    m.d.sync += [base.eq(value[1:].as_signed() + zero), up.eq(value[0] & (rest | odd) ^ inverts)]
    late_over = delay(m, f"{name}_late_over", over, 1, reset=False)
    late_sign = delay(m, f"{name}_late_sign", sign, 1, reset=False)
    whole = Signal(base.shape(), name=f"{name}_whole")
    result = Signal(signed(8), name=f"{name}_result", reset_less=True)
    negative = Mux(late_over, late_sign, whole[-1])
    clamps = late_over | differs(whole[7:-1], whole[-1])
    m.d.comb += whole.eq(base + up)
    m.d.sync += result.eq(Mux(clamps, Cat((~negative).replicate(7), negative), whole[:8]).as_signed())
    return result
