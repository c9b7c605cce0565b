"""The project's fixed-point operations on NumPy integers.

All values are integers; a fixed-point number of F fraction bits is its value times 2**F.  With x the value
and s >= 0 the shift, over the rationals:

* ``floor_shift``: the largest integer not above x / 2**s.
* ``round_half_up``: the integer nearest to x / 2**s; of two, the larger: floor(x / 2**s + 1/2).
* ``round_half_even``: the integer nearest to x / 2**s; of two, the even one (IEEE 754's default).
* ``saturate``: the integer nearest to x in the range of ``width`` bits: [-2**(width-1), 2**(width-1) - 1]
  signed, [0, 2**width - 1] unsigned.
* ``leading_zeros``: of x in [0, 2**width), the number of zero bits above its highest one bit; ``width`` for
  0.

Computed in int64: rounding takes |x| < 2**62 and s <= 61.  `hw/lib/arithmetic/fixed.py` has the same
functions in gates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


def floor_shift(x: npt.ArrayLike, shift: npt.ArrayLike) -> Integers:
    """Divide by 2**shift, towards -infinity."""
    values, shifts = _integers(x), _integers(shift)
    return np.floor_divide(values, np.left_shift(np.int64(1), shifts))


def round_half_up(x: npt.ArrayLike, shift: npt.ArrayLike) -> Integers:
    """Divide by 2**shift, nearest, ties towards +infinity."""
    values = _integers(x)
    quotient = floor_shift(values, shift)
    unit = np.left_shift(np.int64(1), _integers(shift))
    return quotient + (2 * (values - quotient * unit) >= unit)


def round_half_even(x: npt.ArrayLike, shift: npt.ArrayLike) -> Integers:
    """Divide by 2**shift, nearest, ties to the even quotient."""
    values = _integers(x)
    quotient = floor_shift(values, shift)
    unit = np.left_shift(np.int64(1), _integers(shift))
    twice = 2 * (values - quotient * unit)
    return quotient + ((twice > unit) | ((twice == unit) & (quotient % 2 == 1)))


def saturate(x: npt.ArrayLike, width: int, *, signed: bool = True) -> Integers:
    """Clamp to ``width`` bits."""
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    return np.clip(_integers(x), low, high)


def leading_zeros(x: npt.ArrayLike, width: int) -> Integers:
    """Count the zero bits above the highest one bit of a ``width``-bit value."""
    powers = np.left_shift(np.int64(1), np.arange(width, dtype=np.int64))
    return np.sum(_integers(x)[..., np.newaxis] < powers, axis=-1, dtype=np.int64)


def _integers(x: npt.ArrayLike) -> Integers:
    array: npt.NDArray[Any] = np.asarray(x)
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"fixed-point values must be integers, not {array.dtype}")
    return array.astype(np.int64)
