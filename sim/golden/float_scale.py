"""Golden model of requantization: float32 arithmetic, and the formula of integers that equals it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.signedinteger[Any]]


def float_scaled(sums: Integers, scale: Any, zero: Any, *, bits: int = 8) -> Integers:
    """Return ``clamp(rint(float32(sums) * scale) + zero)`` in float32 arithmetic; ``scale`` is a float32.

    ``bits``: of the results, 8 or 16.
    """
    product = sums.astype(np.float32) * np.asarray(scale, np.float32)
    # Beyond twice the range any zero point leaves the result at a bound.
    whole = np.rint(np.clip(product, -(2 << bits), 2 << bits)).astype(np.int64)
    return _clamped(whole + zero, bits)


def integer_scaled(sums: Integers, multiplier: Any, exponent: Any, zero: Any, *, bits: int = 8) -> Integers:
    """Return the same in integers, with the scale ``multiplier / 8^(exponent + 5)``."""
    product = significand(significand(sums.astype(np.int64)) * multiplier)
    whole = _divided(product, 3 * (np.asarray(exponent, np.int64) + 5))
    return _clamped(whole + zero, bits)


def _clamped(values: Integers, bits: int) -> Integers:
    most = (1 << bits - 1) - 1
    return np.clip(values, -1 - most, most).astype(f"i{bits // 8}")


def significand(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Round integers below 2^62 to 24 significant bits, ties to even, as float32 does."""
    lengths = sum((np.abs(values) >> n != 0).astype(np.int64) for n in range(62))
    dropped = np.maximum(lengths - 24, 0)
    return _divided(values, dropped) << dropped


def _divided(values: NDArray[np.int64], places: Any) -> NDArray[np.int64]:
    """Divide by 2^places, nearest, ties to even."""
    whole = values >> places
    twice = (values - (whole << places)) * 2
    half = np.int64(1) << places
    up = (twice > half) | ((twice == half) & (whole % 2 == 1))
    return whole + up
