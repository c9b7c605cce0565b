"""Scales and sums for requantization: of all sizes, and with products next to a tie."""

import numpy as np


def random_scales(rng, count):
    """Draw scales as float32: most for results of 8 bits, some of any size and with few bits."""
    scales = np.exp2(rng.uniform(-26, -3, count))
    scales[::4] = np.exp2(rng.uniform(-32, 8, len(scales[::4])))
    scales[1::4] = rng.integers(1, 1 << 8, len(scales[1::4])) * np.exp2(
        rng.integers(-30, -8, len(scales[1::4]))
    )
    return scales.astype(np.float32)


def sums_next_to_ties(rng, scale, count, *, most=400):
    """Draw sums whose products lie as near to the middle of two integers, below ``most``, as any sum's."""
    halves = rng.integers(-most, most, count) + 0.5
    sums = np.rint(halves / np.float64(scale)) + rng.integers(-1, 2, count)
    return np.clip(sums, -(1 << 31), (1 << 31) - 1).astype(np.int64)
