"""Load of the position map's buckets: two tables, the emptier bucket, the first of equals.

With B buckets in a table, l_i and r_i are the shares of buckets with at least i entries in the first and
second table. An insertion reaches a bucket of the first with i - 1 entries at the rate (l_(i-1) - l_i)
r_(i-1), and one of the second at (r_(i-1) - r_i) l_i. This is the fluid limit of d-left hashing (Mitzenmacher
and Vöcking, 1999). It is run until the map is full, then on with a random removal for each insertion. In the
limit both buckets of a key are full with probability l_e r_e. Maps of few buckets differ by keys with the
same pair of buckets: k others exist with probability (N / B^2)^k / k! at most, and take k / 2 entries of
either.
"""

import functools
import math

import numpy as np
from numpy.typing import NDArray

from hw.oram.config import OramConfig

Float = NDArray[np.float64]

#: Time steps for one key a bucket, until the map is full and from then on. After `_TURNOVER` keys a bucket,
#: removed and inserted, shares are steady.
_STEPS = 32
_STEADY_STEPS = 4
_TURNOVER = 128


def _inserted(shares: Float) -> Float:
    """Return the rate of change of the shares [2, i] by insertions."""
    left, right = shares
    change = np.zeros_like(shares)
    change[0, 1:] = (left[:-1] - left[1:]) * right[:-1]
    change[1, 1:] = (right[:-1] - right[1:]) * left[1:]
    return change


def _removed(shares: Float) -> Float:
    """Return the rate of change of the shares by removals of random keys."""
    with_entries = np.diff(shares, axis=1, append=0) * np.arange(shares.shape[1])
    return np.asarray(with_entries / shares[:, 1:].sum())


@functools.cache
def bucket_shares(entries: int, keys: int, *, turnover: bool) -> Float:
    """Return the shares [2, i] of buckets with at least i = 0 ... ``entries`` entries.

    ``entries``: of a bucket. ``keys``: a bucket, on average, when the map is full. ``turnover``: keys were
    removed and inserted for long, not only inserted until the map was full.
    """
    shares = np.zeros((2, entries + 1))
    shares[:, 0] = 1

    def change(shares: Float, full: bool) -> Float:
        return _inserted(shares) + (_removed(shares) if full else 0)

    for full, steps, a_key in ((False, 2 * keys, _STEPS), (True, _TURNOVER * turnover, _STEADY_STEPS)):
        for _ in range(steps * a_key):
            middle = shares + change(shares, full) / (2 * a_key)
            shares = shares + change(middle, full) / a_key
    return shares


def insertion_failure(config: OramConfig) -> float:
    """Return log2 of the probability that a key finds both of its buckets full in a map of N keys."""
    entries = config.bucket_entries
    left, right = bucket_shares(entries, config.bucket_keys, turnover=True)
    pairs = config.keys / config.buckets**2
    total = 0.0
    for k in range(2 * entries + 1):
        chance = pairs**k / math.factorial(k)
        total += chance * left[entries - (k + 1) // 2] * right[entries - k // 2]
    return math.log2(total)
