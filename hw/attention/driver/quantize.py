"""Floating-point tensors in int8: with one step for a tensor, or equalized channel by channel."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.attention.driver.modes import Floats
from hw.launch import Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Equalized:
    """Tensors of the same attention, except for factors of its results."""

    q: Floats  #: ``[H, Nq, dqk]``.
    k: Floats  #: ``[Hkv, Nk, dqk]``.
    v: Floats  #: ``[Hkv, Nk, dv]``.
    channels: Floats  #: ``[Hkv, dv]``: results of each channel are to be multiplied by it; at most 1.
    #: ``[Hkv, 1, dqk]``: subtracted from keys, which then are divided by ``ratio``; queries are multiplied.
    centre: Floats
    ratio: Floats

    @property
    def steps(self) -> tuple[Floats, Floats, Floats]:
        """Real value of a step of each head; equal for all queries of a group, which thus remain one job."""
        group = len(self.q) // len(self.k)
        queries = np.abs(self.q).reshape(len(self.k), -1).max(1)
        return (
            np.repeat(_step(queries), group),
            _step(np.abs(self.k).max((1, 2))),
            _step(np.abs(self.v).max((1, 2))),
        )


def equalized(q: Tensor, k: Tensor, v: Tensor, *, read: NDArray[np.bool_], centre: bool) -> Equalized:
    """Make the channels of each K/V head, and of the query heads of its group, equally large.

    Keys and values count if they are ``read`` [Hkv, Nk]; the others, and queries that see no key, become
    zeros.  With ``centre`` the middle of its range is subtracted from each channel of the keys.  That shifts
    all logits of a query alike: softmax is invariant, a cap is not.  Keys are then divided, and queries
    multiplied, by the root of the ratio of their largest elements. This is SmoothQuant, section 4, with
    strength 1/2 and keys in place of weights.  Values are divided by the largest element of their channel
    over that of their head.
    """
    queries, keys, values = (tensor.astype(np.float64) for tensor in (q, k, v))
    middle = np.zeros((len(keys), 1, keys.shape[2]))
    if centre:
        counts = read[..., None]
        highest = keys.max(1, keepdims=True, where=counts, initial=-np.inf)
        lowest = keys.min(1, keepdims=True, where=counts, initial=np.inf)
        ends = np.add(highest, lowest, out=np.zeros_like(highest), where=highest >= lowest)
        middle = ends / 2
        keys = np.where(counts, keys - middle, 0)
    groups = queries.reshape(len(keys), -1, queries.shape[2])
    ratio = np.sqrt(_ratio(np.abs(keys).max(1), np.abs(groups).max(1)))[:, None]
    largest = np.abs(values).max(1)
    channels = _ratio(largest, np.broadcast_to(largest.max(1, keepdims=True), largest.shape))
    return Equalized(
        q=(groups * ratio).reshape(queries.shape),
        k=keys / ratio,
        v=values / channels[:, None],
        channels=channels,
        centre=middle,
        ratio=ratio,
    )


def common_step(tensor: Tensor) -> Floats:
    """Return the real value of a step of each head, the same for all of the tensor."""
    return _step(np.full(len(tensor), float(np.abs(tensor).max())))


def quantized(tensor: Tensor, steps: Floats) -> NDArray[np.int8]:
    """Round a floating-point tensor [heads, ...] to each head's steps, clamped to int8."""
    found = tensor.astype(np.float64) / steps[:, None, None]
    return np.clip(np.rint(found), -128, 127).astype(np.int8)


def clipped_ratio(tensors: Iterable[tuple[Tensor, Floats, NDArray[np.bool_]]]) -> float:
    """Return the share of elements that `quantized` clamps, among tokens that are read.

    Each tensor comes with the steps of its heads, and a mask of tokens [heads, tokens].
    """
    clipped = count = 0
    for tensor, steps, read in tensors:
        found = np.rint(tensor.astype(np.float64) / steps[:, None, None])
        clipped += int((((found < -128) | (found > 127)) & read[..., None]).sum())
        count += int(read.sum()) * tensor.shape[2]
    return clipped / max(1, count)


def _step(largest: Floats) -> Floats:
    return np.where(largest > 0, largest / 127, 1.0)


def _ratio(a: Floats, b: Floats) -> Floats:
    """Divide, where both are not zero; 1 elsewhere."""
    return np.divide(a, b, out=np.ones_like(a), where=(a > 0) & (b > 0))
