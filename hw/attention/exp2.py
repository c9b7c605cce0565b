"""Powers of two of the distance below the maximum, piecewise linear: logits to probabilities."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import (
    LOGIT_BITS,
    LOGIT_FRACTION_BITS,
    MAXIMUM_BITS,
    PROBABILITY_BITS,
    exp2_table,
)
from hw.lib.fixed import round_half_up

#: Exponents from here on give probability 0.
FLUSH_EXPONENT = 18
#: Fraction bits of u below the segment number.
_WITHIN_BITS = 8
_START_BITS, _DROP_BITS, _EXPONENT_BITS = 18, 14, 5


class Exp2(wiring.Component):
    """Gives ``p = 2^16 * 2^(t - M)`` to 13 bits, one a cycle.

    Members
    -------
    i : In(signed(24))
        Logit t, 12 fraction bits.
    maximum : In(signed(13))
        M of the logit's tile; never below t.
    valid : In(1)
        There is a logit; without one the probability is 0.
    o : Out(17)
        Probability of the logit of `LATENCY` cycles ago, in units of 2^-16.

    Behaviour
    ---------
    Stages: distance below the maximum; table; slope times distance into the segment; subtraction; shift by
    the whole part.
    """

    #: Cycles from logit to probability.
    LATENCY = 5

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(signed(LOGIT_BITS)),
                "maximum": In(signed(MAXIMUM_BITS)),
                "valid": In(1),
                "o": Out(PROBABILITY_BITS),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        below = Signal(LOGIT_BITS + 2, reset_less=True)  # 0 ... 2^24 + 2^23
        whole = below[LOGIT_FRACTION_BITS:]
        segment = below[_WITHIN_BITS:LOGIT_FRACTION_BITS]
        m.d.sync += below.eq((self.maximum << LOGIT_FRACTION_BITS) - self.i)

        # The exponent travels beside the three stages of y; all flushed ones look alike.
        valid = Signal(Exp2.LATENCY - 1)
        exponents = [Signal(_EXPONENT_BITS, name=f"exponent_{n}", reset_less=True) for n in range(3)]
        start_2 = Signal(_START_BITS, reset_less=True)
        start_3 = Signal(_START_BITS, reset_less=True)
        drop = Signal(_DROP_BITS, reset_less=True)
        within = Signal(_WITHIN_BITS, reset_less=True)
        fall = Signal(_DROP_BITS + _WITHIN_BITS, reset_less=True)
        y = Signal(_START_BITS, reset_less=True)
        m.d.sync += [
            valid.eq((valid << 1) | self.valid),
            # table
            exponents[0].eq(Mux(whole >= FLUSH_EXPONENT, FLUSH_EXPONENT, whole)),
            within.eq(below[:_WITHIN_BITS]),
            # slope times distance
            exponents[1].eq(exponents[0]),
            start_3.eq(start_2),
            fall.eq(drop * within),
            # subtraction
            exponents[2].eq(exponents[1]),
            y.eq(start_3 - round_half_up(fall, _WITHIN_BITS)),
        ]
        with m.Switch(segment):
            for n, (segment_start, segment_drop) in enumerate(exp2_table()):
                with m.Case(n):
                    m.d.sync += [start_2.eq(segment_start), drop.eq(segment_drop)]
        flushed = exponents[2] == FLUSH_EXPONENT
        power = round_half_up(y, (exponents[2] + 2)[:_EXPONENT_BITS])
        m.d.sync += self.o.eq(Mux(valid[-1] & ~flushed, power, 0))
        return m
