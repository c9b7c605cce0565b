# amaranth: UnusedElaboratable=no
"""Requantization against the golden fixed point, for edges and random values of every size."""

import numpy as np
import pytest
from amaranth.hdl import Module, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError
from hw.lib.arithmetic.requantize import REQUANTIZE_LATENCY, requantize
from tests.support.gateware import fixed
from tests.support.gateware.play import play
from tests.support.gateware.streams import seeds


class Requantizer(wiring.Component):
    def __init__(self, *, bits, multiplier, shift, shape, least):
        self.shape, self.least = shape, least
        super().__init__(
            {"i": In(signed(bits)), "multiplier": In(multiplier), "shift": In(shift), "o": Out(shape)}
        )

    def elaborate(self, platform):
        m = Module()
        names = ("product", "halves", "result")
        m.d.comb += self.o.eq(
            requantize(
                m, self.i, self.multiplier, self.shift, self.shape, names=names, least_shift=self.least
            )
        )
        return m


@pytest.mark.parametrize("seed", seeds(1, 6))
@pytest.mark.parametrize("least", [0, 1, 9])
@pytest.mark.parametrize(
    ("bits", "multiplier", "shift", "shape"),
    [(6, 4, 3, signed(4)), (23, 17, 6, signed(24)), (32, 24, 5, signed(8)), (20, 9, 5, unsigned(8))],
)
def test_against_the_golden_model(bits, multiplier, shift, shape, least, seed):
    rng = np.random.default_rng(seed)
    low, count = -(1 << bits - 1), 120
    values = rng.integers(low, -low, count) >> rng.integers(0, bits, count)
    values[:4] = [low, -low - 1, 0, -1]
    factors = rng.integers(0, 1 << multiplier, count) >> rng.integers(0, multiplier, count)
    factors[:3] = (1 << multiplier) - 1
    shifts = rng.integers(0, 1 << shift, count)
    # Ties of both signs: an odd multiple of half a unit.
    ties = slice(10, 40)
    values[ties] = 2 * rng.integers(-(1 << bits - 3), 1 << bits - 3, 30) + 1
    factors[ties] = 1 << np.maximum(0, np.minimum(multiplier - 1, shifts[ties] + least - 1))
    unit = Requantizer(bits=bits, multiplier=multiplier, shift=shift, shape=shape, least=least)
    cycles = [[(unit.i, int(v)), (unit.multiplier, int(f))] for v, f in zip(values, factors, strict=True)]
    cycles.append([])
    for n, amount in enumerate(shifts):
        cycles[n + 1].append((unit.shift, int(amount)))
    got = play(unit, cycles, unit.o, REQUANTIZE_LATENCY)[:count]
    exact = fixed.round_half_up(values * factors, np.minimum(shifts + least, 61))
    assert got == fixed.saturate(exact, shape.width, signed=shape.signed).tolist()


def test_a_negative_least_shift_is_refused():
    with pytest.raises(InputError, match=r"^least_shift must be at least 0, not -1$"):
        requantize(
            Module(),
            Requantizer(bits=8, multiplier=4, shift=2, shape=signed(4), least=0).i,
            unsigned(4),
            unsigned(2),
            signed(4),
            names=("a", "b", "c"),
            least_shift=-1,
        )
