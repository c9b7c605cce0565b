# amaranth: UnusedElaboratable=no
"""Probabilities of every width and number of segments."""

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.core.row.exp2 import Exp2, exp2_table
from tests.hw.attention import reference
from tests.support.gateware.play import play


@pytest.mark.parametrize(
    ("bits", "segments"), [(8, 8), (8, 32), (12, 16), (16, 8), (16, 16), (16, 32), (20, 8), (20, 16)]
)
def test_exp2(bits, segments):
    rng = np.random.default_rng([bits, segments])
    maximum = rng.integers(-2048, 2049, 500)
    below = rng.integers(0, (bits + 4) << 12, 500)
    below[:6] = [0, 1, 4095, 4096, ((bits + 2) << 12) - 1, (bits + 2) << 12]
    t = np.clip((maximum << 12) - below, -(2**23), 2**23 - 1)
    t[6], maximum[6] = -(2**23), 2048  # farther below there is nothing
    t[7], maximum[7] = 2**23 - 1, -2048  # above: only for a key that is not seen
    maximum[8:] = np.maximum(maximum[8:], -(-t[8:] >> 12))
    valid = rng.integers(0, 2, 500)
    valid[7] = 0
    lines = [reference.exp2_line(segment, segments) for segment in range(segments)]
    expected = [
        reference.probability(int((m << 12) - a), bits, lines) if v else 0
        for a, m, v in zip(t, maximum, valid, strict=True)
    ]
    unit = Exp2(AttentionConfig(probability_bits=bits, exp_segments=segments))
    inputs = [
        [(unit.i, int(a)), (unit.maximum, int(m)), (unit.valid, int(v))]
        for a, m, v in zip(t, maximum, valid, strict=True)
    ]
    assert play(unit, inputs, unit.o, Exp2.LATENCY) == expected


@pytest.mark.parametrize(("segments", "error"), [(8, 5e-4), (16, 1.25e-4), (32, 3.5e-5)])
def test_segments_are_the_best_lines(segments, error):
    table = exp2_table(segments)
    assert list(table) == [reference.exp2_line(segment, segments) for segment in range(segments)]
    x = np.arange(4096) / 4096
    width = 4096 // segments
    start, drop = np.array(table).T[:, np.arange(4096) // width] / 2**18
    difference = start - drop * (np.arange(4096) % width) / width - 2.0**-x
    assert np.abs(difference).max() < error
    # As far above the curve as below it, in every segment.
    by_segment = difference.reshape(segments, width)
    np.testing.assert_allclose(by_segment.max(1), -by_segment.min(1), atol=1e-5)
