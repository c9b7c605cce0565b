"""ALiBi: subtracts the distance of a key times the slope of the head from its logit."""

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

    Behaviour
    ---------
    Stages: distance; product; rounding; subtraction.
    """

    LOGIT_LATENCY = 3
    LATENCY = 4

    def __init__(self) -> None:
        super().__init__(
            {
                "key": In(KEY_BITS),  #: Index of the key.
                #: ``position``, ``slope``: of the row; ``position`` with ``key``, ``slope`` a cycle later.
                "position": In(signed(POSITION_BITS)),
                "slope": In(SLOPE_BITS),
                "i": In(signed(LOGIT_BITS)),  #: Its logit, `LOGIT_LATENCY` cycles after ``key``.
                "o": Out(signed(LOGIT_BITS)),  #: t of the ``key`` `LATENCY` cycles ago.
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
