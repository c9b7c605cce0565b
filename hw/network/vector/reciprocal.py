"""The factor from exponentials to results of a softmax: a quotient, a bit a cycle."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.network.vector.layouts import CHANNEL_BITS, EXPONENTIAL_BITS, STEPS_BITS

#: Bits of a sum of exponentials.
SUM_BITS = EXPONENTIAL_BITS + CHANNEL_BITS - 1
#: Places of the factor behind the point of a result; see `Quotient`.
PLACES = EXPONENTIAL_BITS + SUM_BITS + 1 + 8
#: The dividend has so many zeros behind ``steps``: results are 2^8 of them.
_ZEROS = PLACES - 8
#: Bits of the factor: at least one exponential is the largest.
FACTOR_BITS = 68
#: Cycles from ``start`` to the factor.
QUOTIENT_CYCLES = STEPS_BITS + _ZEROS + 3


class Quotient(wiring.Component):
    """``ceil(steps * 2^PLACES / (256 * total))``.

    Behaviour
    ---------
    ``factor`` is there `QUOTIENT_CYCLES` cycles after ``start``, and stays until the next start.

    Why
    ---
    A result is ``floor(term * steps / (256 * total) + 1/2)``, a fraction of denominator ``512 * total``.  A
    factor rounded up exceeds the exact one by less than ``2^-PLACES``.  Times a term, this is less than one
    part of that denominator, so the floor is the same.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),
                "steps": In(STEPS_BITS),
                "total": In(SUM_BITS),  #: Stays until the factor is there.
                "factor": Out(FACTOR_BITS),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Long division, then one more unless nothing is left."""
        m = Module()
        left = Signal(range(QUOTIENT_CYCLES))
        running = Signal()
        dividend = Signal(STEPS_BITS, reset_less=True)
        rest = Signal(SUM_BITS + 1, reset_less=True)
        quotient = Signal(FACTOR_BITS, reset_less=True)
        shifted = Cat(dividend[-1], rest[:-1])
        difference = Signal(SUM_BITS + 2)
        m.d.comb += difference.eq(shifted - self.total)
        fits = ~difference[-1]
        with m.If(self.start):
            m.d.sync += [
                dividend.eq(self.steps),
                rest.eq(0),
                quotient.eq(0),
                running.eq(1),
                left.eq(STEPS_BITS + _ZEROS - 1),
            ]
        with m.Elif(running):
            m.d.sync += [
                dividend.eq(Cat(0, dividend[:-1])),
                rest.eq(Mux(fits, difference, shifted)),
                quotient.eq(Cat(fits, quotient[:-1])),
                left.eq(left - 1),
                running.eq(left != 0),
            ]
        some_left = Signal(reset_less=True)
        m.d.sync += [some_left.eq(rest != 0), self.factor.eq(quotient + some_left)]
        return m
