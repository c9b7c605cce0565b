"""ALiBi: subtracts the distance of a key times the slope of the head from its logit."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import KEY_BITS, LOGIT_BITS, LOGIT_FRACTION_BITS, POSITION_BITS, SLOPE_BITS
from hw.lib.arithmetic.fixed import round_half_up, saturate

#: A slope is in units of 2^-24.
_SHIFT = 24 - LOGIT_FRACTION_BITS


class Alibi(wiring.Component):
    """``t = sat24(t0 - round(slope * abs(position - key), 12))``.

    Members
    -------
    key : In(17)
        Index of the key.
    position : In(signed(18)), slope : In(26)
        Of the row; ``position`` with ``key``, ``slope`` a cycle later.
    i : In(signed(24))
        Its logit, `LOGIT_LATENCY` cycles after ``key``.
    o : Out(signed(24))
        t of the ``key`` of `LATENCY` cycles ago.

    Behaviour
    ---------
    Stages: distance; product; rounding; subtraction.
    """

    LOGIT_LATENCY = 3
    LATENCY = 4

    def __init__(self) -> None:
        super().__init__(
            {
                "key": In(KEY_BITS),
                "position": In(signed(POSITION_BITS)),
                "slope": In(SLOPE_BITS),
                "i": In(signed(LOGIT_BITS)),
                "o": Out(signed(LOGIT_BITS)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        offset = Signal(signed(POSITION_BITS + 1))
        distance = Signal(KEY_BITS, reset_less=True)
        product = Signal(KEY_BITS + SLOPE_BITS, reset_less=True)
        fall = Signal(KEY_BITS + SLOPE_BITS - _SHIFT + 1, reset_less=True)
        m.d.comb += offset.eq(self.position - self.key)
        m.d.sync += [
            distance.eq(Mux(offset < 0, -offset, offset)),
            product.eq(distance * self.slope),
            fall.eq(round_half_up(product, _SHIFT)),
            self.o.eq(saturate(self.i - fall, signed(LOGIT_BITS))),
        ]
        return m
