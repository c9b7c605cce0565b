"""From an integer and a scale to bfloat16."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.errors import check_whole
from hw.lib.arithmetic.fixed import leading_zeros

#: The largest shift is 126: 2^-126 is the smallest normal number.
SHIFT_BITS = 7
_EXPONENT_BIAS = 127
_EXPONENT_BITS, _SIGNIFICAND_BITS = 8, 8


class BFloat16(wiring.Component):
    """The bfloat16 nearest to ``i * 2^-shift``, ties to even.

    ``width``: bits of ``i``, 10 to 128.

    Behaviour
    ---------
    A conversion a cycle.  Stages: magnitude; place of its leading one; shift to the top; round.

    Example
    -------
    >>> converter = BFloat16(32)
    >>> converter.o.shape(), converter.LATENCY
    (unsigned(16), 4)
    """

    LATENCY = 4

    def __init__(self, width: int) -> None:
        check_whole("width", width, 10, 128)
        self._width = width
        super().__init__(
            {
                "i": In(signed(width)),  #: Never the most negative number.
                #: At most 126, so that the result is neither infinite nor subnormal.
                "shift": In(SHIFT_BITS),
                #: Sign, exponent and fraction of the ``i`` of `LATENCY` cycles ago; 0 becomes +0.
                "o": Out(16),
            }
        )

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
