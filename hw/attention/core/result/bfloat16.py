"""From an integer and a scale to bfloat16."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import OUTPUT_SHIFT_BITS
from hw.lib.fixed import leading_zeros

_EXPONENT_BIAS = 127
_EXPONENT_BITS, _SIGNIFICAND_BITS = 8, 8


class BFloat16(wiring.Component):
    """The bfloat16 nearest to ``i * 2^-shift``, ties to even.

    Parameters
    ----------
    width
        Bits of ``i``; it is never the most negative number.

    Members
    -------
    i : In(signed(width))
    shift : In(7)
        At most 126, and for 44 bits: the result is neither infinite nor subnormal.
    o : Out(16)
        Sign, exponent and fraction of the ``i`` of `LATENCY` cycles ago; 0 gives +0.

    Behaviour
    ---------
    Stages: magnitude; place of its leading one; shift to the top; round.
    """

    LATENCY = 4

    def __init__(self, width: int) -> None:
        self._width = width
        super().__init__({"i": In(signed(width)), "shift": In(OUTPUT_SHIFT_BITS), "o": Out(16)})

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        width = self._width - 1
        below = width - _SIGNIFICAND_BITS
        signs = Signal(3, reset_less=True)
        magnitude = Signal(width, reset_less=True)
        counted = Signal(width, reset_less=True)
        zeros = Signal(width.bit_length(), reset_less=True)
        highest = Signal(_EXPONENT_BITS, reset_less=True)  # the exponent if the top bit leads
        scaled = Signal(_EXPONENT_BITS, reset_less=True)
        top = Signal(width, reset_less=True)
        exponent = Signal(_EXPONENT_BITS, reset_less=True)
        m.d.sync += [
            signs.eq(Cat(self.i[-1], signs)),
            magnitude.eq(Mux(self.i[-1], -self.i, self.i)),
            highest.eq(_EXPONENT_BIAS + width - 1 - self.shift),
            counted.eq(magnitude),
            zeros.eq(leading_zeros(m, magnitude)),
            scaled.eq(highest),
            exponent.eq(scaled - zeros),
        ]
        # Bit by bit of the amount: as one shift the expression would be twice as wide.
        shifted = counted
        for n in range(len(zeros)):
            shifted = Mux(zeros[n], Cat(Const(0, 1 << n), shifted)[:width], shifted)
        m.d.sync += top.eq(shifted)
        half, rest, odd = top[below - 1], top[: below - 1].any(), top[below]
        unrounded = Cat(top[below : width - 1], exponent)
        # A fraction that rounds up to the next power of two carries into the exponent, as it should.
        rounded = (unrounded + (half & (rest | odd)))[:15]
        m.d.sync += self.o.eq(Mux(top[-1], Cat(rounded, signs[2]), 0))
        return m
