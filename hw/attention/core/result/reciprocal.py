"""Reciprocal of the running sum: normalized to 17 bits, divided two bits a cycle, scaled for the results."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import MULTIPLIER_BITS, AttentionConfig
from hw.attention.core.scale import OutputScale
from hw.lib.arithmetic.fixed import leading_zeros, round_half_up

#: Bits of the normalized sum n, and of the reciprocal, with or without scale.
RECIPROCAL_BITS = 17
#: Nine steps of two quotient bits: one bit more than needed, which is always 0.
_STEPS = 9
_BITS_A_STEP = 2
#: Ones of the dividend 2^33 - 1 in the first remainder; one more is shifted in for each bit.
_FIRST_ONES = 33 - _STEPS * _BITS_A_STEP
#: Most leading zeros of l: the probability of the largest logit is at least almost a half, so B - 1 of B + 17
#: bits remain.
MOST_ZEROS = 18


def zeros_bits(config: AttentionConfig) -> int:
    """Return the bits of a count of leading zeros of l."""
    return config.sum_bits.bit_length()


class Divide(data.StructLayout):
    """Start of a division: ``valid``, and the ``scale`` of the results."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__({"valid": 1, "scale": OutputScale(config)})


class Reciprocal(wiring.Component):
    """``r = (2^33 - 1) // n`` of ``n = l * 2^(17 - b)``, truncated, where b is the bit length of l.

    Behaviour
    ---------
    Count leading zeros, normalize, restoring division, scale.
    """

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                #: l, in the cycle of ``start`` and the next: 0, or with at most `MOST_ZEROS` leading zeros.
                "i": In(config.sum_bits),
                "start": In(Divide(config)),  #: Not within `latency` cycles of the one before.
                #: Leading zeros of l, B + 17 for l = 0; from the cycle after ``start`` until the next.
                "zeros": Out(zeros_bits(config)),
                #: r, from `latency` cycles after ``start`` until `latency` cycles after the next one;
                #: undefined for l = 0. For int8 and bfloat16 results it is ``(r * multiplier + 2^16) >> 17``.
                "o": Out(RECIPROCAL_BITS),
            }
        )

    @staticmethod
    def latency(config: AttentionConfig) -> int:
        """Return the cycles from ``start`` to the result, which are also the fewest between starts."""
        return 2 + _STEPS + (0 if config.output == "int16" else 2)

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        bits = self._config.sum_bits
        divisor = Signal(RECIPROCAL_BITS, reset_less=True)
        remainder = Signal(RECIPROCAL_BITS, reset_less=True)
        quotient = Signal(RECIPROCAL_BITS, reset_less=True)
        left = Signal(range(_STEPS + 1))
        starting = Signal()
        ending = Signal()

        m.d.sync += [starting.eq(self.start.valid), ending.eq(left == 1)]
        with m.If(self.start.valid):
            m.d.sync += self.zeros.eq(leading_zeros(m, self.i))
        with m.If(starting):
            normalized = (self.i << self.zeros[: MOST_ZEROS.bit_length()])[:bits]
            m.d.sync += [
                divisor.eq(normalized[bits - RECIPROCAL_BITS :]),
                remainder.eq(2**_FIRST_ONES - 1),
                left.eq(_STEPS),
            ]

        rest: Value = remainder
        quotient_bits: list[Value] = []
        for n in range(_BITS_A_STEP):
            grown = Signal(RECIPROCAL_BITS + 1, name=f"grown_{n}")
            trial = Signal(signed(RECIPROCAL_BITS + 2), name=f"trial_{n}")
            m.d.comb += [grown.eq(Cat(Const(1, 1), rest)), trial.eq(grown - divisor)]
            rest = Mux(trial[-1], grown, trial)[:RECIPROCAL_BITS]
            quotient_bits.insert(0, ~trial[-1])
        following = Cat(*quotient_bits, quotient)[:RECIPROCAL_BITS]
        with m.If(left != 0):
            m.d.sync += [remainder.eq(rest), quotient.eq(following), left.eq(left - 1)]
        if self._config.output == "int16":
            with m.If(left == 1):
                m.d.sync += self.o.eq(following)
        else:
            self._scale(m, quotient, ending)
        return m

    def _scale(self, m: Module, quotient: Signal, ending: Signal) -> None:
        """Multiply two factors of 17 bits, and drop 17 bits of the product."""
        multiplier = Signal(MULTIPLIER_BITS, reset_less=True)
        product = Signal(RECIPROCAL_BITS + MULTIPLIER_BITS, reset_less=True)
        scaling = Signal()
        with m.If(self.start.valid):
            m.d.sync += multiplier.eq(self.start.scale.multiplier)
        m.d.sync += scaling.eq(ending)
        with m.If(ending):
            m.d.sync += product.eq(quotient * multiplier)
        with m.If(scaling):
            m.d.sync += self.o.eq(round_half_up(product, MULTIPLIER_BITS))
