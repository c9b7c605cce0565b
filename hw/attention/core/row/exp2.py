"""Exponential: ``2^(t - M)`` of a logit and the running maximum, piecewise linear."""

import math
from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import LOGIT_BITS, LOGIT_FRACTION_BITS, MAXIMUM_BITS, AttentionConfig
from hw.lib.arithmetic.fixed import round_half_up

#: y is in units of 2^-18.
_TABLE_BITS = 18
_EXPONENT_BITS = 5


def exp2_table(segments: int) -> tuple[tuple[int, int], ...]:
    """Return start Y and drop Z of each segment of 2^-x on [0, 1), in units of 2^-18.

    The line of a segment is its chord, shifted down by half its largest distance from the curve, where the
    curve's slope equals the chord's.  It has the smallest maximum error of all lines.
    """
    table = []
    for segment in range(segments):
        left = 2.0 ** (-segment / segments)
        drop = left - 2.0 ** (-(segment + 1) / segments)
        touch = drop * segments / math.log(2)  # 2^-x where d/dx 2^-x is the chord's slope
        distance = -math.log2(touch) - segment / segments
        gap = left - drop * segments * distance - touch
        table.append((round(2**_TABLE_BITS * (left - gap / 2)), round(2**_TABLE_BITS * drop)))
    return tuple(table)


class Exp2(wiring.Component):
    """Computes ``p = 2^B * 2^(t - M)``, one a cycle.

    Behaviour
    ---------
    Stages: distance below the maximum; table; slope times distance into the segment; subtraction; shift by
    the integer part; rounding.
    """

    #: Cycles from logit to probability.
    LATENCY = 6

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(signed(LOGIT_BITS)),  #: Logit t, 12 fraction bits.
                "maximum": In(signed(MAXIMUM_BITS)),  #: M of the logit's tile; never below t.
                #: A logit is present, and its key is visible; otherwise the probability is 0.
                "valid": In(1),
                #: Probability of the logit `LATENCY` cycles ago, in units of 2^-B.
                "o": Out(config.probability_width),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        table = exp2_table(self._config.exp_segments)
        drop_bits = max(drop for _, drop in table).bit_length()
        # Fraction bits of u below the segment number.
        within_bits = LOGIT_FRACTION_BITS - (len(table).bit_length() - 1)
        # y has 18 - B bits too many, or two too few; an exponent two above B rounds to 0.
        extra = _TABLE_BITS - self._config.probability_bits
        flush = self._config.probability_bits + 2

        below = Signal(LOGIT_BITS + 1, reset_less=True)  # of a visible key
        whole = below[LOGIT_FRACTION_BITS:]
        segment = below[within_bits:LOGIT_FRACTION_BITS]
        m.d.sync += below.eq((self.maximum << LOGIT_FRACTION_BITS) - self.i)

        # The exponent is delayed beside the three stages of y; larger ones than `flush` are clamped.
        valid = Signal(Exp2.LATENCY - 1)
        exponents = [Signal(_EXPONENT_BITS, name=f"exponent_{n}", reset_less=True) for n in range(3)]
        start_2 = Signal(_TABLE_BITS, reset_less=True)
        start_3 = Signal(_TABLE_BITS, reset_less=True)
        drop = Signal(drop_bits, reset_less=True)
        within = Signal(within_bits, reset_less=True)
        fall = Signal(drop_bits + within_bits, reset_less=True)
        y = Signal(_TABLE_BITS, reset_less=True)
        m.d.sync += [
            valid.eq((valid << 1) | self.valid),
            # table
            exponents[0].eq(Mux(whole >= flush, flush, whole)),
            within.eq(below[:within_bits]),
            # slope times distance
            exponents[1].eq(exponents[0]),
            start_3.eq(start_2),
            fall.eq(drop * within),
            # subtraction
            exponents[2].eq(exponents[1]),
            y.eq(start_3 - round_half_up(fall, within_bits)),
        ]
        with m.Switch(segment):
            for n, (segment_start, segment_drop) in enumerate(table):
                with m.Case(n):
                    m.d.sync += [start_2.eq(segment_start), drop.eq(segment_drop)]
        flushed = exponents[2] == flush
        # Shifted with one bit below, then rounded: shift and carry are too long for one cycle.
        scaled = Cat(Const(0, 1 + max(0, -extra)), y)
        shifted = Signal(len(scaled), reset_less=True)
        m.d.sync += shifted.eq(Mux(flushed, 0, scaled >> (exponents[2] + max(0, extra))[:_EXPONENT_BITS]))
        m.d.sync += self.o.eq(Mux(valid[-1], round_half_up(shifted, 1), 0))
        return m
