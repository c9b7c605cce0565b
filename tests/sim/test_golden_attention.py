"""The golden attention model against float64 softmax, and against the formats page in Python integers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw.errors import InputError
from sim.golden.attention import (
    attention,
    attention_float64,
    attention_tile,
    exp2_table,
    rounded_shift,
    scaling,
)


def quantized(rng, shape, spread=1.0):
    x = rng.normal(size=shape) * spread
    step = np.abs(x).max() / 127
    return np.rint(x / step).astype(np.int8), float(step)


def relative_rms(a, b):
    return math.sqrt(((a - b) ** 2).mean() / (b**2).mean())


@pytest.mark.parametrize("head_dim", [32, 64])
@pytest.mark.parametrize("spread", [0.02, 1.0, 4.0, 8.0])
@pytest.mark.parametrize("keys", [1, 5, 64, 1000, 4096])
def test_within_two_thousandths_of_exact_softmax(head_dim, spread, keys):
    rng = np.random.default_rng(keys + head_dim)
    q, q_scale = quantized(rng, (2, 32, head_dim), spread)
    k, k_scale = quantized(rng, (1, keys, head_dim))
    v, _ = quantized(rng, (1, keys, head_dim))
    softmax_scale = head_dim**-0.5
    exact = attention_float64(q, k, v, softmax_scale=softmax_scale * q_scale * k_scale)
    fraction = min(15, int(math.log2(32766 / np.abs(exact).max())))
    scale = scaling(softmax_scale=softmax_scale, q_scale=q_scale, k_scale=k_scale)
    o = attention(q, k, v, scale=scale, fraction=fraction, tile_keys=64) * 2.0**-fraction
    assert relative_rms(o, exact) <= 2e-3
    assert np.abs(o - exact).max() <= 5e-3 * np.abs(exact).max()


def in_python_integers(q, k, v, m, s, g, tile):
    """One row, straight from the table of docs/attention.md, unbounded integers, one key at a time."""

    def rounded(a, n):
        return (a + (1 << (n - 1))) >> n if n > 0 else a

    starts, drops = (table.tolist() for table in exp2_table())
    t = [
        max(
            -(2**23),
            min(2**23 - 1, (sum(a * b for a, b in zip(q, key, strict=True)) * m + 2 ** (s - 1)) >> s),
        )
        for key in k
    ]
    maximum, total, output = None, 0, [0] * len(v[0])
    for first in range(0, len(t), tile):
        own = (max(t[first : first + tile]) + 4095) >> 12
        new = own if maximum is None else max(maximum, own)
        rise = 0 if maximum is None else new - maximum
        maximum = new
        total = rounded(total, rise)
        output = [rounded(x, rise) for x in output]
        for j in range(first, min(first + tile, len(t))):
            u = (maximum << 12) - t[j]
            e, f = u >> 12, u & 4095
            y = starts[f >> 8] - ((drops[f >> 8] * (f & 255) + 128) >> 8)
            p = 0 if e >= 18 else (y + 2 ** (e + 1)) >> (e + 2)
            assert 0 <= p <= 65536
            total += p
            output = [x + p * w for x, w in zip(output, v[j], strict=True)]
    assert 0 <= total < 2**33
    assert all(-(2**39) <= x < 2**39 for x in output)
    b = total.bit_length()
    n = (total << (33 - b)) >> 16
    r = (2**33 - 1) // n
    x = [rounded(value, b - 18) if b >= 18 else value << (18 - b) for value in output]
    assert all(-(2**26) <= value < 2**26 for value in x)
    assert r < 2**17
    return [max(-(2**15), min(2**15 - 1, (value * r + 2 ** (33 - g)) >> (34 - g))) for value in x]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    keys=st.integers(1, 70),
    multiplier=st.integers(1, 2**17 - 1),
    shift=st.integers(1, 47),
    fraction=st.integers(0, 15),
    tile=st.sampled_from([16, 32, 64]),
    corner=st.booleans(),
)
def test_equal_to_the_page_in_python_integers(seed, keys, multiplier, shift, fraction, tile, corner):
    rng = np.random.default_rng(seed)
    q, k, v = (
        (rng.choice([-128, 127, 0], size) if corner else rng.integers(-128, 128, size)).astype(np.int8)
        for size in ((3, 8), (keys, 8), (keys, 8))
    )
    golden = attention_tile(q, k, v, multiplier, shift, fraction, tile)
    for row in range(3):
        expected = in_python_integers(
            q[row].tolist(), k.tolist(), v.tolist(), multiplier, shift, fraction, tile
        )
        assert golden[row].tolist() == expected


def test_longest_sequence_of_extremes_does_not_overflow():
    keys = 65536
    q = np.full((1, 1, 32), 127, np.int8)
    k = np.full((1, keys, 32), 127, np.int8)
    v = np.full((1, keys, 32), -128, np.int8)
    scale = scaling(softmax_scale=1.0, q_scale=1e-4, k_scale=1e-4)
    o = attention(q, k, v, scale=scale, fraction=7, tile_keys=64)
    assert (np.abs(o + 128 * 2**7) <= 1).all()


def test_exponential_table_is_thirteen_bits_exact():
    starts, drops = exp2_table()
    f = np.arange(4096)
    y = starts[f >> 8] - ((drops[f >> 8] * (f & 255) + 128) >> 8)
    assert np.abs(y / (2.0**18 * 2.0 ** (-f / 4096)) - 1).max() < 1.3e-4
    assert (np.diff(y) <= 0).all()


@given(st.integers(-(2**40), 2**40), st.integers(0, 45))
def test_rounded_shift_rounds_to_nearest_with_ties_up(value, shift):
    got = int(rounded_shift(np.array([value]), np.array([shift]))[0])
    assert got == math.floor(value / 2**shift + 0.5) or abs(value) > 2**52


@pytest.mark.parametrize("factor", [0.0, 1e-20, 1e12])
def test_scales_out_of_range_are_refused(factor):
    with pytest.raises(
        InputError, match=r"softmax_scale \* q_scale \* k_scale must be from 1\.2e-18 to 11\.1"
    ):
        scaling(softmax_scale=factor, q_scale=1.0, k_scale=1.0)


@given(st.floats(-46.9, 15.9))
def test_scaling_keeps_seventeen_bits(exponent):
    factor = 2.0**exponent / (4096 * math.log2(math.e))
    scale = scaling(softmax_scale=factor, q_scale=1.0, k_scale=1.0)
    assert 1 <= scale.multiplier < 2**17
    assert 1 <= scale.shift <= 47
    if exponent > -30:
        assert abs(scale.multiplier * 2.0**-scale.shift / 2.0**exponent - 1) < 2.0**-16
