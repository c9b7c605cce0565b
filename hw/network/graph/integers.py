"""The factors of operators' results, as onnxruntime's QLinear kernels compute them in float32.

The hardware reaches the same results in integers (`hw.lib.arithmetic.float_scale`).
"""

from __future__ import annotations

import numpy as np

#: Bits of an exponential, and fraction bits of the steps of a result of softmax.
EXPONENTIAL_BITS = 20
SOFTMAX_FRACTION_BITS = 8


def output_scales(input_scale: float, weight_scales: np.ndarray, scale: float) -> np.ndarray:
    """Return the float32 factors from sums to results, as onnxruntime computes them: a product of two
    float32, divided by the third.
    """
    return np.float32(input_scale) * weight_scales.astype(np.float32) / np.float32(scale)


def mean_scale(input_scale: float, counts: np.ndarray, scale: float) -> np.ndarray:
    """Return the float32 factors from sums of ``counts`` elements to results."""
    return np.float32(input_scale) / (counts.astype(np.float32) * np.float32(scale))


def rounded_shift(value: np.ndarray, shift: int) -> np.ndarray:
    """Return integers over ``2**shift``, rounded to the nearest integer, ties to even."""
    floor = value >> shift
    rest = value - (floor << shift)
    half = 1 << shift - 1
    return floor + ((rest > half) | ((rest == half) & (floor & 1 == 1)))


def exponentials(scale: float) -> np.ndarray:
    """Return ``exp(-scale * difference)`` for differences from 0 to 255, in `EXPONENTIAL_BITS` bits."""
    powers = np.exp(-np.float64(scale) * np.arange(256))
    return np.rint(powers * (2**EXPONENTIAL_BITS - 1)).astype(np.int64)


def softmax_units(scale: float) -> int:
    """Return the steps of a softmax's result between 0 and 1, in units of ``2**-SOFTMAX_FRACTION_BITS``."""
    return round(2**SOFTMAX_FRACTION_BITS / float(scale))
