"""The fixed-point operations against their definition over the rationals, in Python's exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.gateware import fixed

wide = st.integers(-(2**62) + 1, 2**62 - 1)
shifts = st.integers(0, 61)


@given(wide, shifts)
def test_half_up(x, shift):
    assert fixed.round_half_up(x, shift) == floor(Fraction(x, 2**shift) + Fraction(1, 2))


@given(wide, shifts)
def test_half_even(x, shift):
    # Python rounds fractions half to even.
    assert fixed.round_half_even(x, shift) == round(Fraction(x, 2**shift))


@given(wide, shifts)
def test_floor(x, shift):
    assert fixed.floor_shift(x, shift) == floor(Fraction(x, 2**shift))


def test_ties():
    x = np.arange(-6, 7)
    assert fixed.round_half_up(x, 2).tolist() == [-1, -1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert fixed.round_half_even(x, 2).tolist() == [-2, -1, -1, -1, 0, 0, 0, 0, 0, 1, 1, 1, 2]


@given(wide, st.integers(1, 62), st.booleans())
def test_saturate(x, width, is_signed):
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if is_signed else (0, 2**width - 1)
    assert fixed.saturate(x, width, signed=is_signed) == min(max(x, low), high)


@given(st.integers(0, 2**62 - 1))
def test_leading_zeros(x):
    assert fixed.leading_zeros(x, 62) == 62 - x.bit_length()


def test_arrays_and_shifts_broadcast():
    found = fixed.round_half_up(np.arange(8, dtype=np.int8).reshape(2, 4), np.array([[1], [2]]))
    assert found.dtype == np.int64
    assert found.tolist() == [[0, 1, 1, 2], [1, 1, 2, 2]]


def test_floats_are_refused():
    with pytest.raises(TypeError, match="must be integers, not float64"):
        fixed.round_half_up(np.array([1.0]), 1)
