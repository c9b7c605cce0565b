"""One over the running sum: normalized to 17 bits, divided two bits a cycle."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import SUM_BITS
from hw.lib.fixed import leading_zeros

#: Bits of the normalized sum n, and of the reciprocal.
RECIPROCAL_BITS = 17
#: Bits of a count of leading zeros of l, 0 ... 33.
ZEROS_BITS = SUM_BITS.bit_length()
#: Nine steps of two quotient bits: one bit more than needed, which is always 0.
_STEPS = 9
_BITS_A_STEP = 2
#: The dividend 2^33 - 1 is all ones: these many are the first remainder, one more comes in with each bit.
_FIRST_ONES = 33 - _STEPS * _BITS_A_STEP


class Reciprocal(wiring.Component):
    """``r = (2^33 - 1) // n`` of ``n = (l << z) >> 16``, where z counts the leading zeros of l.

    Members
    -------
    i : In(33)
        l, in the cycle of ``start`` and the next.
    start : In(1)
        Not within `INTERVAL` cycles of the one before.
    zeros : Out(6)
        z, 33 for l = 0; from the cycle after ``start`` until the next.
    o : Out(17)
        r, from `LATENCY` cycles after ``start`` until `LATENCY` cycles after the next; meaningless for l = 0.

    Behaviour
    ---------
    Count, normalize, then restoring division.
    """

    #: Cycles from ``start`` to the result, and the fewest from one start to the next.
    LATENCY = 2 + _STEPS
    INTERVAL = LATENCY

    def __init__(self) -> None:
        super().__init__(
            {"i": In(SUM_BITS), "start": In(1), "zeros": Out(ZEROS_BITS), "o": Out(RECIPROCAL_BITS)}
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        divisor = Signal(RECIPROCAL_BITS, reset_less=True)
        remainder = Signal(RECIPROCAL_BITS, reset_less=True)
        quotient = Signal(RECIPROCAL_BITS, reset_less=True)
        left = Signal(range(_STEPS + 1))
        starting = Signal()

        m.d.sync += starting.eq(self.start)
        with m.If(self.start):
            m.d.sync += self.zeros.eq(leading_zeros(m, self.i))
        with m.If(starting):
            # A shift by 32 only brings l = 1 to the top: the shifter itself need not reach that far.
            shifted = (self.i << self.zeros[:-1])[:SUM_BITS]
            normalized = Mux(self.zeros[-1], 1 << (SUM_BITS - 1), shifted)
            m.d.sync += [
                divisor.eq(normalized[SUM_BITS - RECIPROCAL_BITS :]),
                remainder.eq(2**_FIRST_ONES - 1),
                left.eq(_STEPS),
            ]

        rest: Value = remainder
        bits: list[Value] = []
        for n in range(_BITS_A_STEP):
            grown = Signal(RECIPROCAL_BITS + 1, name=f"grown_{n}")
            trial = Signal(signed(RECIPROCAL_BITS + 2), name=f"trial_{n}")
            m.d.comb += [grown.eq(Cat(Const(1, 1), rest)), trial.eq(grown - divisor)]
            rest = Mux(trial[-1], grown, trial)[:RECIPROCAL_BITS]
            bits.insert(0, ~trial[-1])
        following = Cat(*bits, quotient)[:RECIPROCAL_BITS]
        with m.If(left != 0):
            m.d.sync += [remainder.eq(rest), quotient.eq(following), left.eq(left - 1)]
        with m.If(left == 1):
            m.d.sync += self.o.eq(following)
        return m
