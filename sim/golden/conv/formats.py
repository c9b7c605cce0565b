"""Sums to results, as the engine rounds and clamps them (``docs/conv-specification.md``)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError

Int = NDArray[np.int64]

MULTIPLIER_BITS = 16
LARGEST_SHIFT = 63


def requantized(
    sums: Int, multiplier: Int, shift: Int, post: Int, *, low: int = -128, high: int = 127
) -> NDArray[np.int8]:
    """Return ``clamp(((sum * multiplier + half) >> shift) + post, low, high)``, half of ``1 << shift``.

    ``sums``: ``[Cout, ...]``; of up to 48 bits. ``multiplier``, ``shift``, ``post``: ``[Cout]``; 0 to 65,535,
    0 to 63, and 16 bits signed. ``low``, ``high``: bounds of a result.
    """
    if post.min() < -(2**15) or post.max() > 2**15 - 1:
        raise InputError("post", post.tolist(), f"from {-(2**15)} to {2**15 - 1}")
    scaled = _scaled(sums, multiplier, shift)
    shape = (-1, *[1] * (sums.ndim - 1))
    return np.clip(scaled + post.reshape(shape), low, high).astype(np.int8)


def computed_offsets(sums: Int, multiplier: Int, shift: Int) -> NDArray[np.int16]:
    """Return the offsets of sums ``[numbers, ...]``, as `requantized` but in the range of 16 bits."""
    return np.clip(_scaled(sums, multiplier, shift), -(2**15), 2**15 - 1).astype(np.int16)


def _scaled(sums: Int, multiplier: Int, shift: Int) -> NDArray[Any]:
    """Return ``(sum * multiplier + half) >> shift`` by channels."""
    for name, values, most in (
        ("multiplier", multiplier, 2**MULTIPLIER_BITS - 1),
        ("shift", shift, LARGEST_SHIFT),
    ):
        if values.min() < 0 or values.max() > most:
            raise InputError(name, values.tolist(), f"from 0 to {most}")
    # Products of 64 bits and their rounding do not fit int64: Python's integers where they may occur.
    kind = np.int64 if np.abs(sums).max(initial=0) < 2**46 and shift.max() < 63 else object
    shape = (-1, *[1] * (sums.ndim - 1))
    multipliers, shifts = (values.astype(kind).reshape(shape) for values in (multiplier, shift))
    return (sums.astype(kind) * multipliers + ((1 << shifts) >> 1)) >> shifts


def raw_bytes(sums: Int, shift: int | Int) -> NDArray[np.uint8]:
    """Return the low 8 bits of ``sum >> shift``."""
    return ((sums >> shift) & 0xFF).astype(np.uint8)
