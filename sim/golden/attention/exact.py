"""Exact softmax attention in float64: the reference of every error measure."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.attention.driver.mask import Mask
from sim.golden.products import serial_product

_BLOCK_SCORES = 2**21  # scores held at a time: blocks of query rows bound the memory for any number of keys


def attention_float64(
    q: NDArray[Any],
    k: NDArray[Any],
    v: NDArray[Any],
    *,
    softmax_scale: float,
    mask: Mask | None = None,
    cap: float | None = None,
    slopes: Sequence[float] | None = None,
) -> NDArray[np.float64]:
    """Attention of every head in float64; it shares only `Mask` and products with the integer model.

    q, k and v are ``[H, Nq, dqk]``, ``[Hkv, Nk, dqk]``, ``[Hkv, Nk, dv]``, H a multiple of Hkv, and
    ``softmax_scale`` the factor of ``q k^T``.  With ``cap``, logits become ``cap * tanh(logit / cap)``.  With
    ``slopes``, each head's logits fall by its slope per key of distance from the query's position.

    Returns ``[H, Nq, dv]``; zeros for a query without visible keys.
    """
    mask = mask or Mask()
    (heads, queries, _), keys = q.shape, k.shape[1]
    mask.check(queries, keys)
    group = heads // k.shape[0]
    step = max(1, _BLOCK_SCORES // keys)
    columns = np.arange(keys)
    masked = mask.causal or mask.window > 0 or mask.bitmap is not None
    out = np.empty((heads, queries, v.shape[2]), np.float64)
    for h in range(heads):
        key_rows, values = k[h // group].astype(np.float64), v[h // group].astype(np.float64)
        for start in range(0, queries, step):
            rows = np.arange(start, min(start + step, queries))
            logits = serial_product(q[h, rows].astype(np.float64), key_rows.T)
            logits *= softmax_scale
            if cap is not None:
                logits = cap * np.tanh(logits / cap)
            if slopes is not None:
                logits -= slopes[h] * np.abs((rows + keys - queries)[:, None] - columns)
            if masked:
                logits[~mask.visible(rows, columns, queries, keys)] = -np.inf
            largest = logits.max(axis=1, keepdims=True)
            logits -= np.where(np.isfinite(largest), largest, 0.0)
            weights = np.exp(logits, out=logits)
            total = weights.sum(axis=1, keepdims=True)
            out[h, rows] = serial_product(weights, values) / np.where(total > 0, total, 1.0)
    return out
