"""The end of a sum of int16: over a power of two, downwards, and clamped."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed

from hw.lib.arithmetic.windows import chosen, differs

#: Cycles from a sum to its result.
NARROWING_LATENCY = 3
#: Places of a shift's second level.
_FINE = 4


def narrowed(
    m: Module,
    name: str,
    total: Value,
    shift: Value,
    *,
    least: int,
    bits: int,
    ties: Value | None = None,
    byte: Value | None = None,
) -> Signal:
    """Return ``clamp(floor(total / 2^(shift + least)))`` in ``bits`` bits.

    * ``name``: of the registers.
    * ``total``: signed. ``shift``: 4 bits; it stays. ``least``: 1 at least.
    * ``ties``: a result without a rest is made even: its half was added before.
    * ``byte``: the result is clamped to int8.

    The result is that of the ``total`` of `NARROWING_LATENCY` cycles ago.
    """
    sign, width = total[-1], bits + _FINE - 1
    value = total[least:]
    zeros = Const(0, 1) if ties is None else total[:least].any()
    over: Value = Const(0, 1)
    for level, amount, step in (("coarse", shift[2:], _FINE), ("fine", shift[:2], 1)):
        window = Signal(width, name=f"{name}_{level}", reset_less=True)
        rest = Signal(name=f"{name}_{level}_rest", reset_less=True)
        beyond = Signal(name=f"{name}_{level}_over", reset_less=True)
        kept_sign = Signal(name=f"{name}_{level}_sign", reset_less=True)
        extended = Cat(value, sign.replicate(max(0, width + 3 * step - len(value))))
        firsts = [n * step for n in range(4)]
        m.d.sync += [
            window.eq(chosen(amount, [extended[first : first + width] for first in firsts])),
            beyond.eq(
                over | chosen(amount, [differs(extended[first + width - 1 :], sign) for first in firsts])
            ),
            kept_sign.eq(sign),
        ]
        if ties is not None:
            dropped = [extended[:first].any() if first else Const(0, 1) for first in firsts]
            m.d.sync += rest.eq(zeros | chosen(amount, dropped))
        value, zeros, over, sign, width = window, rest, beyond, kept_sign, bits
    result = Signal(signed(bits), name=f"{name}_result", reset_less=True)
    even = value[0] if ties is None else value[0] & ~(ties & ~zeros)
    if byte is None:
        m.d.sync += result.eq(Mux(over, Cat((~sign).replicate(bits - 1), sign), Cat(even, value[1:])))
        return result
    clamps = over | byte & differs(value[7:-1], value[-1])
    bound = Cat((~sign).replicate(7), sign ^ ~byte, (~sign).replicate(bits - 9), sign)
    m.d.sync += result.eq(Mux(clamps, bound, Cat(even, value[1:])))
    return result
