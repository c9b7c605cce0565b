"""How full the position map's buckets get: two tables, the emptier bucket, the first table's of equals.

With B buckets a table, let l_i and r_i be the shares of buckets of the first and of the second with i entries
or more.  An insertion reaches a bucket of the first with i - 1 at (l_(i-1) - l_i) r_(i-1), one of the second
at (r_(i-1) - r_i) l_i: the fluid limit of d-left hashing (Mitzenmacher and Vöcking, 1999), run until the map
is full, and then on with a random key removed for each that is inserted.  Both buckets of a key are full with
probability l_e r_e in the limit.  Few buckets leave that by keys that have the same pair of buckets: k others
are there with probability (N / B^2)^k / k! at most, and take k / 2 of the entries of either.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from hw.oram.config import OramConfig

Float = NDArray[np.float64]

#: Time steps for one key a bucket, and keys a bucket that come and go until shares are steady.
_STEPS = 32
_TURNOVER = 256


def _inserted(shares: Float) -> Float:
    """Return how the shares [2, i] change by insertions."""
    left, right = shares
    change = np.zeros_like(shares)
    change[0, 1:] = (left[:-1] - left[1:]) * right[:-1]
    change[1, 1:] = (right[:-1] - right[1:]) * left[1:]
    return change


def _removed(shares: Float) -> Float:
    """Return how the shares change by removals of random keys."""
    with_entries = np.diff(shares, axis=1, append=0) * np.arange(shares.shape[1])
    return np.asarray(with_entries / shares[:, 1:].sum())


@functools.cache
def bucket_shares(entries: int, keys: int, *, turnover: bool) -> Float:
    """Return the shares [2, i] of buckets with i = 0 ... ``entries`` entries or more.

    ``entries``: of a bucket. ``keys``: a bucket, on average, when the map is full. ``turnover``: whether keys
    came and went for long, instead of only until the map was full.
    """
    shares = np.zeros((2, entries + 1))
    shares[:, 0] = 1
    for step in range((2 * keys + _TURNOVER * turnover) * _STEPS):

        def change(shares: Float, steady: bool = step >= 2 * keys * _STEPS) -> Float:
            return _inserted(shares) + (_removed(shares) if steady else 0)

        middle = shares + change(shares) / (2 * _STEPS)
        shares = shares + change(middle) / _STEPS
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
