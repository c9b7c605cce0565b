"""Integer functions of the attention engine, written from ``docs/attention-specification.md`` alone.

Names and units are those of the page.  All functions map whole NumPy arrays.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from hw.attention.driver.formats import SCORE_FRACTION_BITS, SLOPE_FRACTION_BITS, Output

Int = NDArray[np.int64]
PROBABILITY_BITS = (8, 12, 16, 20)
EXP_SEGMENTS = (8, 16, 32)
MAXIMUM_OF_NONE = -4096  # M before the first visible key

_TABLE_BITS = 18  # of y
_MOST_GUARD_BITS = 2  # bits of p below those of y, with 20 bits of p
_TANH_RANGE_BITS = 21  # abs(x) < 8
_TANH_WITHIN_BITS = 11
_TANH_SEGMENTS = 2 ** (_TANH_RANGE_BITS - _TANH_WITHIN_BITS)
_TANH_TABLE_BITS = 19
_TANH_BITS = 17


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """The parameters of a configuration that determine the bits of a result."""

    tile_keys: int = 64  #: T, keys after which partial sums are merged.
    streams: int = 1  #: S, streams that share the tiles of a row.
    probability_bits: int = 16  #: B: probabilities are in units of 2^-B.
    exp_segments: int = 16  #: Line segments of 2^-x on [0, 1).


def rounded_shift(value: Int, shift: Int | int) -> Int:
    """Arithmetic right shift with ties up: ``(value + 2^(shift-1)) >> shift``; shift 0 leaves the value."""
    capped = np.minimum(shift, 62)  # beyond the width of any value here, the result is 0
    half = np.where(capped > 0, np.int64(1) << np.maximum(capped - 1, 0), 0)
    return (value + half) >> capped


def saturated(value: Int, bits: int) -> Int:
    """Clamp to the signed range of ``bits``."""
    return np.clip(value, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@cache
def exp2_table(segments: int = 16) -> tuple[Int, Int]:
    """Return the start ``Y`` and the drop ``Z`` of each segment of 2^-x on [0, 1), in units of 2^-18."""
    width = 1 / segments
    starts, drops = [], []
    for i in range(segments):
        a = i * width
        left, right = 2.0**-a, 2.0 ** -(a + width)
        slope = (right - left) / width
        steepest = -math.log2(-slope / math.log(2))  # where the curve is parallel to its chord
        gap = left + slope * (steepest - a) - 2.0**-steepest
        starts.append(round(2**_TABLE_BITS * (left - gap / 2)))
        drops.append(round(2**_TABLE_BITS * (left - right)))
    return _constant(starts), _constant(drops)


@cache
def probability_table(probability_bits: int, segments: int) -> NDArray[np.float64]:
    """Return p for every u = 0 ... (B + 2) * 2^12; the last entry, 0, stands for all larger u."""
    starts, drops = exp2_table(segments)
    within_bits = SCORE_FRACTION_BITS - (segments.bit_length() - 1)
    u = np.arange(((probability_bits + 2) << SCORE_FRACTION_BITS) + 1)
    whole, fraction = u >> SCORE_FRACTION_BITS, u & (2**SCORE_FRACTION_BITS - 1)
    segment, within = fraction >> within_bits, fraction & (2**within_bits - 1)
    y = starts[segment] - rounded_shift(drops[segment] * within, within_bits)
    guarded = y << _MOST_GUARD_BITS
    p = rounded_shift(guarded, whole + _TABLE_BITS + _MOST_GUARD_BITS - probability_bits)
    table = np.where(whole >= probability_bits + 2, 0, p).astype(np.float64)
    table.flags.writeable = False
    return table


@cache
def tanh_table() -> tuple[Int, Int]:
    """Return the start ``A`` and the rise ``E`` of each segment of tanh on [0, 8), in units of 2^-19."""
    starts, rises = [], []
    for i in range(_TANH_SEGMENTS):
        left, right = (math.tanh(n * 8 / _TANH_SEGMENTS) for n in (i, i + 1))
        slope = (right - left) * _TANH_SEGMENTS / 8
        touch = math.sqrt(1 - slope)  # tanh where it is parallel to its chord
        gap = touch - left - slope * (math.atanh(touch) - i * 8 / _TANH_SEGMENTS)
        starts.append(min(round(2**_TANH_TABLE_BITS * (left + gap / 2)), 2**_TANH_TABLE_BITS - 1))
        rises.append(round(2**_TANH_TABLE_BITS * (right - left)))
    return _constant(starts), _constant(rises)


def _constant(values: list[int]) -> Int:
    array = np.array(values, np.int64)
    array.flags.writeable = False
    return array


def capped(x: Int, multiplier: int) -> Int:
    """Return ``c * tanh(x)`` for scores over their cap, 18 fraction bits: logits with 12 fraction bits."""
    starts, rises = tanh_table()
    a = np.minimum(np.abs(x), 2**_TANH_RANGE_BITS - 1)
    segment, within = a >> _TANH_WITHIN_BITS, a & (2**_TANH_WITHIN_BITS - 1)
    exact = (starts[segment] << _TANH_WITHIN_BITS) + rises[segment] * within
    shift = _TANH_WITHIN_BITS + _TANH_TABLE_BITS - _TANH_BITS
    h = np.minimum(rounded_shift(exact, shift), 2**_TANH_BITS - 1)
    return rounded_shift(np.where(x >= 0, h, -h) * multiplier, _TANH_BITS)


def alibi(t: Int, slope: Int | int, distance: Int) -> Int:
    """Lower logits by ``slope`` (units of 2^-24) times the distance of their keys, clamped to 24 bits."""
    fall = rounded_shift(slope * np.abs(distance), SLOPE_FRACTION_BITS - SCORE_FRACTION_BITS)
    return saturated(t - fall, 24)


def combined(maxima: Int, outputs: Int, totals: Int) -> tuple[Int, Int]:
    """Return O [n, dv] and l [n] of all streams from their M [S, n], O [S, n, dv] and l [S, n]."""
    below = maxima.max(axis=0) - maxima
    return rounded_shift(outputs, below[..., None]).sum(axis=0), rounded_shift(totals, below).sum(axis=0)


def results(
    output: Int, total: Int, kind: Output, probability_bits: int = 16
) -> NDArray[np.int8] | NDArray[np.int16] | NDArray[np.uint16]:
    """Return the results from O ``[n, dv]`` and l ``[n]``; zeros for a row whose l is zero."""
    bits = np.frexp(total.astype(np.float64))[1].astype(np.int64)  # of 0: 0, of others their bit length
    n = np.maximum((total << (17 + probability_bits - bits)) >> probability_bits, 1)
    r = (2**33 - 1) // n
    if kind.kind != "int16":
        r = rounded_shift(r * kind.multiplier, 17)
    shift = (bits - 18)[:, None]
    z = np.where(shift >= 0, rounded_shift(output, np.maximum(shift, 0)), output << np.maximum(-shift, 0))
    product = np.where((total > 0)[:, None], z * r[:, None], 0)
    if kind.kind == "bfloat16":
        return bfloat16(product, kind.shift)
    if kind.kind == "int8":
        return saturated(rounded_shift(product, kind.shift), 8).astype(np.int8)
    return saturated(rounded_shift(product, 34 - kind.fraction), 16).astype(np.int16)


def bfloat16(value: Int, shift: int) -> NDArray[np.uint16]:
    """Return the bit pattern of the bfloat16 nearest to ``value * 2^-shift``, ties to even.

    ``abs(value)`` must be below 2^52 and ``shift`` at most 126, so that no result is subnormal.
    """
    magnitude = np.abs(value)
    top = np.frexp(magnitude.astype(np.float64))[1].astype(np.int64) - 1
    drop = np.maximum(top - 7, 0)
    significand = (magnitude << np.maximum(7 - top, 0)) >> drop
    rest = magnitude & ((np.int64(1) << drop) - 1)
    half = (np.int64(1) << drop) >> 1  # 0 where nothing is dropped: then there is no rest either
    up = (rest > half) | ((rest == half) & (half > 0) & (significand & 1 == 1))
    # A significand of 256 carries into the exponent by itself: the hidden bit 128 is added, not stored.
    pattern = ((126 + top - shift) << 7) + significand + up
    signed = pattern | np.where(value < 0, 0x8000, 0)
    return np.where(value == 0, 0, signed).astype(np.uint16)
