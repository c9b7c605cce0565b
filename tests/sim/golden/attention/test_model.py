"""The plain golden attention function against float64 softmax, and against the page in Python integers."""

import math
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw.attention.driver.formats import Scaling, scaling
from sim.engines.attention.accuracy import quantized
from sim.golden.attention.exact import attention_float64
from sim.golden.attention.formats import exp2_table
from tests.support.attention.golden import attention


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
    """One row, straight from the table of the specification, unbounded integers, one key at a time."""

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
    golden = attention(
        q[None],
        k[None],
        v[None],
        scale=Scaling(multiplier=multiplier, shift=shift),
        fraction=fraction,
        tile_keys=tile,
    )[0]
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


def test_twelve_heads_of_a_thousand_tokens_take_less_than_a_second_of_cpu():
    """The simulator's user waits for it; and no threads are started for small products."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.integers(-128, 128, (12, 1024, 64)).astype(np.int8) for _ in range(3))
    scale = scaling(softmax_scale=0.125, q_scale=0.03, k_scale=0.03)
    start = time.process_time()
    attention(q, k, v, scale=scale, fraction=8, tile_keys=64)
    assert time.process_time() - start < 1


def test_memory_does_not_grow_with_the_square_of_the_sequence():
    rng = np.random.default_rng(0)
    q, k, v = (rng.integers(-128, 128, (1, n, 16)).astype(np.int8) for n in (4096, 8192, 8192))
    scale = scaling(softmax_scale=0.25, q_scale=0.03, k_scale=0.03)
    tracemalloc.start()
    try:
        attention(q, k, v, scale=scale, fraction=8, tile_keys=64)
        attention_float64(q, k, v, softmax_scale=0.25 * 0.03**2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 96 * 2**20  # all scores would be 256 MiB
