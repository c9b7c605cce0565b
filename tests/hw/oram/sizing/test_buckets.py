"""Buckets fill as the fluid limit predicts."""

import numpy as np
import pytest

from hw.oram.config import OramConfig
from hw.oram.sizing.buckets import bucket_shares, insertion_failure
from tests.support.oram.fast import fill_buckets


def simulate(buckets, keys, entries, turnover, seed=0):
    """Fill tables to ``keys`` a bucket; then ``turnover`` times each, remove a random key and insert
    another.
    """
    rng = np.random.default_rng(seed)
    most = 2 * buckets * keys
    count = most * (1 + turnover)
    homes = rng.integers(buckets, size=(count, 2))
    removed = np.full(count, -1)
    alive = np.arange(most)
    for n, gone in enumerate(rng.integers(most, size=count - most).tolist(), most):
        removed[n], alive[gone] = alive[gone], n
    fill, failed = fill_buckets(homes, entries, removed)
    shares = [[(table >= i).mean() for i in range(entries + 1)] for table in fill]
    return np.array(shares), failed / (count if not turnover else count - most)


@pytest.mark.parametrize(("keys", "entries"), [(8, 14), (4, 10)])
@pytest.mark.parametrize("turnover", [0, 6])
def test_shares(keys, entries, turnover):
    found, failed = simulate(1 << 13, keys, entries, turnover)
    expected = bucket_shares(entries, keys, turnover=bool(turnover))
    large = expected > 0.003
    np.testing.assert_allclose(found[large], expected[large], rtol=0.05, atol=0.003)
    assert (found[expected < 1e-8] == 0).all()
    assert failed == 0


def test_failures_of_buckets_that_are_too_small():
    """With few entries keys fail as often as predicted, which supports predictions for more."""
    _, failed = simulate(1 << 13, 8, 11, 16)
    left, right = bucket_shares(11, 8, turnover=True)
    assert failed == pytest.approx(left[11] * right[11], rel=0.4)  # about fifty


@pytest.mark.parametrize("touch", ["one", "both"])
def test_engine_never_finds_both_full(touch):
    """Over 10^12 insertions with a probability below 2^-40, from N = 2^20 on."""
    for log_n in (20, 24, 28):
        assert insertion_failure(OramConfig(log_n=log_n, touch=touch)) < -80
    small = insertion_failure(OramConfig(log_n=10, touch=touch))
    assert insertion_failure(OramConfig(touch=touch)) < small < -20
