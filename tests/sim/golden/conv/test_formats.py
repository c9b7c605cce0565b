"""Sums to results, against whole numbers without bounds."""

import numpy as np
import pytest

from hw.errors import InputError
from sim.golden.conv.formats import computed_offsets, raw_bytes, requantized


@pytest.mark.parametrize("largest", [2**20, 2**45, 2**47 - 1])
def test_requantization_is_that_of_whole_numbers(largest):
    """Against Python's unbounded integers, up to the widest sums and shifts."""
    rng = np.random.default_rng(3)
    sums = rng.integers(-largest, largest + 1, (6, 40))
    sums[:, :2] = -largest, largest
    multiplier = np.array([0, 1, 32768, 65535, 65535, 40000])
    shift = np.array([0, 0, 20, 63, 55, 40])
    post = np.array([0, -5, 100, -32768, 32767, 7])
    found = requantized(sums, multiplier, shift, post, low=-100, high=90)
    for channel in range(6):
        m, s, p = (int(values[channel]) for values in (multiplier, shift, post))
        exact = [((int(a) * m + ((1 << s) >> 1)) >> s) + p for a in sums[channel]]
        assert found[channel].tolist() == [max(-100, min(90, value)) for value in exact]


@pytest.mark.parametrize(("name", "values"), [("multiplier", (65536, 0, 0)), ("shift", (1, 64, 0))])
def test_scales_out_of_range_are_refused(name, values):
    with pytest.raises(InputError, match=f"{name} must be from 0"):
        requantized(np.zeros((1, 2), np.int64), *(np.array([value]) for value in values))


def test_computed_offsets_have_16_bits():
    sums = np.array([[-(2**26), 2**26, 3, -3]])
    assert computed_offsets(sums, np.array([1]), np.array([1])).tolist() == [[-(2**15), 2**15 - 1, 2, -1]]


def test_raw_bytes_make_up_the_sum():
    sums = np.array([-(2**46) - 3, 12345678])
    planes = [raw_bytes(sums, 8 * n).astype(np.int64) << 8 * n for n in range(7)]
    assert (sum(planes) - (1 << 56) * (sums < 0)).tolist() == sums.tolist()
