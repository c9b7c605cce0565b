"""Golden model of LayerNorm: `hw.network.normalization`'s formula in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hw.network.normalization import (
    BIAS_PLACES,
    COARSE_PLACES,
    LEAST_EXPONENT,
    MOST_STEPS,
    STEP,
    ChannelRows,
    dropped_bits,
    root,
    split_channels,
)

Integers = NDArray[np.int64]


def statistics(stored: NDArray[np.int16]) -> tuple[Integers, Integers]:
    """Return sum and sum of squares of each row."""
    values = stored.astype(np.int64)
    return values.sum(axis=1), (values * values).sum(axis=1)


def normalized(
    stored: NDArray[np.int16], sums: Integers, squares: Integers, *, channels: int, epsilon: int
) -> Integers:
    """Return z of each value; ``sums`` and ``squares`` are those of its row."""
    odd, twos = split_channels(channels)
    dropped = dropped_bits(odd)
    spread = channels * squares - sums * sums + epsilon
    roots, exponents = np.array([root(int(each), dropped) for each in spread], np.int64).T
    exponents = np.maximum(exponents - twos - dropped, LEAST_EXPONENT)
    steps = np.clip(-(-exponents // STEP), 0, MOST_STEPS)
    lift = STEP * steps - exponents
    slope = _shifted(odd * roots, lift)
    term = _shifted(sums * roots, lift - twos)
    places = (STEP * steps)[:, None]
    half = np.where(places > 0, 1 << np.maximum(places - 1, 0), 0)
    return (stored.astype(np.int64) * slope[:, None] - term[:, None] + half) >> places


def scaled(normal: Integers, rows: ChannelRows, *, bits: int) -> Integers:
    """Return the results of normalized values, of 8 or 16 bits."""
    gains, fines, biases = (np.array(each, np.int64) for each in (rows.gains, rows.fines, rows.biases))
    added = (normal >> COARSE_PLACES) * fines + biases
    found = (normal * gains + (added << BIAS_PLACES)) >> rows.shift
    return np.clip(found, -(1 << bits - 1), (1 << bits - 1) - 1)


def layer_norm(stored: NDArray[np.int16], rows: ChannelRows, *, epsilon: int, bits: int) -> Integers:
    """Return LayerNorm of rows of values."""
    sums, squares = statistics(stored)
    normal = normalized(stored, sums, squares, channels=stored.shape[1], epsilon=epsilon)
    return scaled(normal, rows, bits=bits)


def _shifted(values: Integers, places: Integers) -> Integers:
    """Shift up, or down where ``places`` are negative."""
    return values << np.maximum(places, 0) >> np.maximum(-places, 0)
