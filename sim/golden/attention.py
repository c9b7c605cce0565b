"""Golden model of the fused attention engine, in integers, from the number formats of ``docs/attention.md``.

Matrix products run in float64 through BLAS: every product and partial sum is an integer below 2^53, so they
are exact, and a hundred times faster than NumPy's integer products.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError

Int = NDArray[np.int64]

SCORE_FRACTION_BITS = 12
SEGMENTS = 16
_TABLE_BITS = 18
_SEGMENT_BITS = 8  # of the 12 fraction bits of t, below the segment index
_BLOCK_SCORES = 2**22  # scores held at a time: blocks of query rows bound the memory for any number of keys


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """The launch arguments that carry the scales.

    Members
    -------
    multiplier, shift
        Raw score to log2 units: ``t = (S * multiplier) >> shift``, rounded.
    """

    multiplier: int
    shift: int


def scaling(*, softmax_scale: float, q_scale: float, k_scale: float) -> Scaling:
    """Find multiplier and shift for real scales.

    Raises
    ------
    InputError
        When the product of the scales leaves the range that multiplier and shift can express.
    """
    factor = math.log2(math.e) * softmax_scale * q_scale * k_scale * 2**SCORE_FRACTION_BITS
    low, high = 2.0**-47, 2.0**16 * (1 - 2.0**-18)
    if not low <= factor < high:
        legal = 2**SCORE_FRACTION_BITS * math.log2(math.e)
        raise InputError(
            "softmax_scale * q_scale * k_scale",
            softmax_scale * q_scale * k_scale,
            f"from {low / legal:.3g} to {high / legal:.3g}",
        )
    shift = 47
    while round(factor * 2**shift) >= 2**17:
        shift -= 1
    return Scaling(multiplier=round(factor * 2**shift), shift=shift)


def exp2_table() -> tuple[Int, Int]:
    """Give the start ``Y`` and the drop ``Z`` of each segment of 2^-x on [0, 1), in units of 2^-18."""
    width = 1 / SEGMENTS
    starts, drops = [], []
    for i in range(SEGMENTS):
        a = i * width
        left, right = 2.0**-a, 2.0 ** -(a + width)
        slope = (right - left) / width
        steepest = -math.log2(-slope / math.log(2))  # where the curve is parallel to its chord
        gap = left + slope * (steepest - a) - 2.0**-steepest
        starts.append(round(2**_TABLE_BITS * (left - gap / 2)))
        drops.append(round(2**_TABLE_BITS * (left - right)))
    return np.array(starts, np.int64), np.array(drops, np.int64)


def rounded_shift(value: Int, shift: Int) -> Int:
    """Arithmetic right shift with ties up: ``(value + 2^(shift-1)) >> shift``; shift 0 leaves the value."""
    capped = np.minimum(shift, 62)  # beyond the width of any value here, the result is 0
    half = np.where(capped > 0, np.int64(1) << np.maximum(capped - 1, 0), 0)
    return (value + half) >> capped


def _product(a: NDArray[np.integer], b: NDArray[np.integer]) -> Int:
    return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)


def scores(q: NDArray[np.int8], k: NDArray[np.int8], scale: Scaling) -> Int:
    """Give t, the logits in log2 units with 12 fraction bits: ``[Nq, Nk]``."""
    raw = _product(q, k.T)
    shifted = (raw * scale.multiplier + (1 << (scale.shift - 1))) >> scale.shift
    return np.clip(shifted, -(2**23), 2**23 - 1)


def probabilities(t: Int, maximum: Int) -> Int:
    """Give p, in units of 2^-16, of logits ``t`` [Nq, n] against whole-number maxima ``maximum`` [Nq]."""
    starts, drops = exp2_table()
    below = (maximum[:, None] << SCORE_FRACTION_BITS) - t
    whole = below >> SCORE_FRACTION_BITS
    fraction = below & (2**SCORE_FRACTION_BITS - 1)
    segment = fraction >> _SEGMENT_BITS
    within = fraction & (2**_SEGMENT_BITS - 1)
    y = starts[segment] - ((drops[segment] * within + 2 ** (_SEGMENT_BITS - 1)) >> _SEGMENT_BITS)
    guard = _TABLE_BITS - 16
    return np.where(whole >= 18, 0, rounded_shift(y, np.minimum(whole, 18) + guard))


def normalize(output: Int, total: Int, fraction: int) -> NDArray[np.int16]:
    """Give the int16 outputs from O ``[Nq, D]`` and l ``[Nq]``; a row whose l is zero gives zeros."""
    bits = np.array([int(value).bit_length() for value in total], np.int64)
    mantissa = np.maximum((total << (33 - bits)) >> 16, 1)
    reciprocal = (2**33 - 1) // mantissa
    shift = (bits - 18)[:, None]
    aligned = np.where(
        shift >= 0, rounded_shift(output, np.maximum(shift, 0)), output << np.maximum(-shift, 0)
    )
    product = aligned * reciprocal[:, None]
    quotient = (product + (1 << (33 - fraction))) >> (34 - fraction)
    visible = (total > 0)[:, None]
    return np.where(visible, np.clip(quotient, -(2**15), 2**15 - 1), 0).astype(np.int16)


def attention_tile(
    q: NDArray[np.int8],
    k: NDArray[np.int8],
    v: NDArray[np.int8],
    multiplier: int,
    shift: int,
    fraction: int,
    tile_keys: int,
) -> NDArray[np.int16]:
    """Attention of one head, bit for bit as the gateware computes it.

    Rows do not depend on each other, so all queries of a head may be given at once.

    Parameters
    ----------
    q, k, v
        ``[Nq, D]``, ``[Nk, D]``, ``[Nk, D]``, int8.
    multiplier, shift
        Launch arguments, see `scaling`.
    fraction
        Output fraction bits, 0 to 15.
    tile_keys
        Keys after which partial sums are merged; the result depends on it through rounding.

    Returns
    -------
    ndarray
        ``[Nq, D]`` int16, in units of ``v_scale * 2^-fraction``.
    """
    t = scores(q, k, Scaling(multiplier=multiplier, shift=shift))
    output = np.zeros((q.shape[0], v.shape[1]), np.int64)
    total = np.zeros(q.shape[0], np.int64)
    maximum: Int | None = None
    for first in range(0, k.shape[0], tile_keys):
        tile = t[:, first : first + tile_keys]
        tile_maximum = (tile.max(axis=1) + 2**SCORE_FRACTION_BITS - 1) >> SCORE_FRACTION_BITS
        previous = tile_maximum if maximum is None else maximum
        maximum = np.maximum(previous, tile_maximum)
        rise = maximum - previous
        p = probabilities(tile, maximum)
        output = rounded_shift(output, rise[:, None]) + _product(p, v[first : first + tile_keys])
        total = rounded_shift(total, rise) + p.sum(axis=1)
    return normalize(output, total, fraction)


def _row_blocks(queries: int, keys: int) -> Iterator[slice]:
    step = max(1, _BLOCK_SCORES // keys)
    for first in range(0, queries, step):
        yield slice(first, first + step)


def attention(
    q: NDArray[np.int8],
    k: NDArray[np.int8],
    v: NDArray[np.int8],
    *,
    scale: Scaling,
    fraction: int,
    tile_keys: int,
) -> NDArray[np.int16]:
    """Attention of every head: ``q`` [H, Nq, D], ``k`` and ``v`` [Hkv, Nk, D]; H is a multiple of Hkv."""
    group = q.shape[0] // k.shape[0]
    out = np.empty((*q.shape[:2], v.shape[2]), np.int16)
    for h in range(q.shape[0]):
        for block in _row_blocks(q.shape[1], k.shape[1]):
            out[h, block] = attention_tile(
                q[h, block], k[h // group], v[h // group], scale.multiplier, scale.shift, fraction, tile_keys
            )
    return out


def attention_float64(
    q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], *, softmax_scale: float
) -> NDArray[np.float64]:
    """Exact softmax attention in float64: the reference of every error measure. Shapes as `attention`."""
    group = q.shape[0] // k.shape[0]
    out = np.empty((*q.shape[:2], v.shape[2]), np.float64)
    for h in range(q.shape[0]):
        keys, values = k[h // group].astype(np.float64), v[h // group].astype(np.float64)
        for block in _row_blocks(q.shape[1], k.shape[1]):
            logits = (q[h, block].astype(np.float64) @ keys.T) * softmax_scale
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            out[h, block] = (weights @ values) / weights.sum(axis=1, keepdims=True)
    return out
