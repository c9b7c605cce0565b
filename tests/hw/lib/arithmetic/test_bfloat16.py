# amaranth: UnusedElaboratable=no
"""bfloat16: every value of a narrow integer, every pattern around a tie of a wide one, ends of the range."""

from fractions import Fraction

import numpy as np
import pytest

from hw.errors import InputError
from hw.lib.arithmetic.bfloat16 import BFloat16
from tests.support.gateware.play import play


def number(pattern):
    """Return what a bit pattern stands for."""
    return Fraction(float(np.array([pattern << 16], np.uint32).view(np.float32)[0]))


def nearest(value, shift):
    """Return the nearest pattern by trying those around: NumPy's float32, cut to 16 bits, is one of them."""
    exact = Fraction(value, 2**shift)
    cut = int(np.float32(float(abs(exact))).view(np.uint32)) >> 16
    candidates = [p for p in (cut - 1, cut, cut + 1) if p >= 0]
    best = min(candidates, key=lambda p: (abs(number(p) - abs(exact)), p & 1))
    return best | (value < 0) << 15


def convert(width, values, shifts):
    unit = BFloat16(width)
    inputs = [[(unit.i, int(v)), (unit.shift, int(s))] for v, s in zip(values, shifts, strict=True)]
    return play(unit, inputs, unit.o, BFloat16.LATENCY)


def test_every_narrow_value():
    values = list(range(-(2**10) + 1, 2**10))
    for shift in (0, 126):
        got = convert(11, values, [shift] * len(values))
        assert got == [nearest(v, shift) for v in values]


@pytest.mark.parametrize("width", [10, 24, 44, 128])
def test_wide_values(width):
    rng = np.random.default_rng(width)
    most = 2 ** (width - 1) - 1
    values = [0, 1, -1, most, -most, 255, 256, 257, most - 2 ** max(0, width - 11)]
    for place in range(8, width - 1):
        top = int(rng.integers(128, 256)) << (place - 7)
        half = 1 << (place - 8)
        values += [top + half + step for step in (-1, 0, 1)] + [-(top + half)]
    draw = [int(rng.integers(2**62)) * 2**66 + int(rng.integers(2**62)) for _ in range(100)]
    values += [(v % most) >> int(rng.integers(0, width - 1)) for v in draw]
    shifts = rng.choice([0, 19, 40, 60, 126], len(values))
    got = convert(width, values, shifts)
    assert got == [nearest(v, int(s)) for v, s in zip(values, shifts, strict=True)]


@pytest.mark.parametrize("width", [9, 129, 16.0])
def test_widths_are_checked(width):
    with pytest.raises(InputError, match=rf"^width must be a whole number from 10 to 128, not {width}$"):
        BFloat16(width)
