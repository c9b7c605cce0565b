"""The formula of integers against NumPy's float32 arithmetic, for drawn sums and for those next to ties."""

import numpy as np
import pytest

from hw.lib.arithmetic.float_scale import float_scale_fields
from sim.golden.float_scale import float_scaled, integer_scaled
from tests.support.gateware.float_scale import random_scales, sums_next_to_ties

SUMS = 1 << 17


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 40))])
def test_integers_equal_float32(seed):
    rng = np.random.default_rng(seed)
    results, two_roundings = 0, 0
    for scale in random_scales(rng, 8):
        drawn = rng.integers(-(1 << 31), 1 << 31, SUMS) >> rng.integers(0, 31, SUMS)
        sums = np.concatenate([drawn, sums_next_to_ties(rng, scale, SUMS // 8)])
        zero = rng.integers(-128, 128, len(sums))
        multiplier, exponent = float_scale_fields(float(scale))
        wanted = float_scaled(sums, scale, zero)
        found = integer_scaled(sums, multiplier, exponent, zero)
        np.testing.assert_array_equal(found, wanted)
        exact = np.rint(np.clip(sums * np.float64(scale), -512, 512)) + zero
        two_roundings += np.count_nonzero(np.clip(exact, -128, 127) != wanted)
        results += len(sums)
    assert results >= 1_000_000
    assert two_roundings > 100  # one rounding would not do


@pytest.mark.parametrize("power", [*range(-60, 12), -149, -126, 90])
def test_every_scale_has_fields(power):
    """Scales that no gate could hold have others with the same results."""
    sums = np.array([0, 1, -1, 2, -3, 100, -(1 << 24) - 1, (1 << 31) - 1, -(1 << 31), 1 << 30])
    for fraction in (1, 1.5, 2 - 2**-23):
        scale = np.float32(fraction * 2.0**power)
        multiplier, exponent = float_scale_fields(float(scale))
        assert multiplier < 1 << 26
        assert exponent < 15
        for zero in (-128, 0, 127):
            wanted = float_scaled(sums, scale, zero)
            np.testing.assert_array_equal(integer_scaled(sums, multiplier, exponent, zero), wanted)
