"""Length of lists, load of HBM bins, and items whose list is full: bounds on probabilities.

The bounds hold for every sequence of operations that does not depend on unrevealed labels: these are uniform
and independent of it. Let x be the operations since a page's last touch, in units of M / L operations, the
average between its touches (L labels a key). P(x > y) = e^-y. Keys accessed meanwhile, and the W before,
which that touch did not see, had other labels and have new ones. So with one label A ~ Poisson(min(x + L W /
M, C)) of them are in the list. The touch found L0 ~ Poisson(C - min(x, C)) others; all but Z of them remain:
len = (L0 - Z)^+ + A. A scan over all keys reaches this; any other sequence accesses fewer different keys. An
HBM bin holds Poisson(C / S) items.

With two labels, items with the page as one of both are counted: A ~ Poisson(min(x + L W / M, 2 C)), L0 ~
Poisson(C). This exceeds the true number. The load bounds a list and a bin as well, and its tail falls much
faster. Its fluid limit follows from the balance of arrivals and departures, for uniform accesses. With c_k
the share of draws that find a load of at least k, an item arrives at a label of load k - 1 at the rate
c_(k-1) + c_k (the first of equals), and each leaves at 1 / C. The fluid limit is no bound: simulation
confirms it.

A touch takes one item from the overflow: an excess of j items falls to j - 1, then to j - 2. Loads of
different records are negatively associated (balls into bins), so Chernoff's bound holds for their sum as if
they were independent (Dubhashi and Ranjan, 1998).

An entry whose item moved into its list stays taken for W operations. A page has at most L W / H touches on
average in that time (H pages), and each may leave entries behind. So a list counts 1 + L W / H times: its
excesses between different touches count as if they were independent. It matters for maps of few labels only.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

#: Operations of a map's life, and log2 of the probability that it stops within them: at most.
LIFE_OPERATIONS = 1e12
LIFE_FAILURE = -40.0

#: Maximum number of items counted in a list: Poisson(64) has more with a probability below 2^-160.
_MOST = 256
#: Steps of x from 0 until all keys have been accessed.
_STEPS = 512
#: With two labels: maximum load, time steps between draws of a page, and lifetimes of an item until
#: loads are steady.
_MOST_LOAD = 96
_LOAD_STEPS = 16
_LIVES = 12
_COUNTS = np.arange(_MOST)
_LOG_FACTORIALS = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, _MOST)))])


@dataclass(frozen=True, kw_only=True)
class ListShape:
    """Numbers on which the lists of a map depend; `hw.oram.config.OramConfig.list_shape` is made of them."""

    items_per_label: int  #: C.
    label_count: int  #: L, labels of a key.
    labels: int  #: M.
    host_pages: int  #: H.
    records: int  #: Pages, and S HBM bins for each of the K labels in HBM.
    bin_split: int  #: S.
    slots: int  #: Z.
    record_slots: int  #: E.
    overflow_entries: int  #: Items on chip whose list is full.
    window: int  #: W.


def _poisson(mean: float) -> Float:
    """Return P(k), k = 0 ... `_MOST` - 1."""
    if mean == 0:
        return (_COUNTS == 0).astype(np.float64)
    return np.asarray(np.exp(_COUNTS * math.log(mean) - mean - _LOG_FACTORIALS))


def _tail(lengths: Float) -> Float:
    """Return P(k or more)."""
    return np.asarray(np.cumsum(lengths[::-1])[::-1])


def list_tail(shape: ListShape) -> Float:
    """Return a bound on P(len >= k) of the items that wait for a page, the overflow included."""
    keys, labels = shape.items_per_label, shape.label_count
    most = labels * keys
    before = labels * shape.window / shape.labels
    edges = np.linspace(0, most, _STEPS + 1)
    weights = np.append(np.exp(-edges[:-1]) - np.exp(-edges[1:]), math.exp(-most))
    total = np.zeros(_MOST)
    for x, weight in zip(np.append((edges[:-1] + edges[1:]) / 2, most), weights, strict=True):
        found = _poisson(keys if labels == 2 else keys - x)
        left = np.concatenate([[found[: shape.slots + 1].sum()], found[shape.slots + 1 :]])
        total += weight * np.convolve(left, _poisson(min(x + before, most)))[:_MOST]
    return np.minimum(_tail(total), _two_choice_loads(shape)[0]) if labels == 2 else _tail(total)


def _two_choice_loads(shape: ListShape) -> tuple[Float, Float]:
    """Return P(load >= k) of a page with its list and of an HBM bin, with two labels."""
    return _fluid_loads(shape.items_per_label, shape.labels, shape.host_pages, shape.bin_split)


@functools.cache
def _fluid_loads(items_per_label: int, labels: int, host_pages: int, bin_split: int) -> tuple[Float, Float]:
    in_hbm = 1 - host_pages / labels
    #: Of a page and of a bin: the rate of its draws, and the share of all draws.
    rates = np.array([[1.0], [1 / bin_split]])
    parts = np.array([1 - in_hbm, in_hbm])
    shares = np.zeros((2, _MOST_LOAD))
    shares[:, 0] = 1
    counts = np.arange(_MOST_LOAD) / items_per_label

    def change(shares: Float, leaving: bool) -> Float:
        drawn = parts @ shares + 1 / labels  # sometimes both draws are the same
        out = np.zeros_like(shares)
        out[:, 1:] = rates * (shares[:, :-1] - shares[:, 1:]) * (drawn[:-1] + drawn[1:])
        return out + leaving * np.diff(shares, axis=1, append=0) * counts

    until_full = items_per_label * _LOAD_STEPS
    for step in range(_LIVES * until_full):
        middle = shares + change(shares, step >= until_full) / (2 * _LOAD_STEPS)
        shares = shares + change(middle, step >= until_full) / _LOAD_STEPS
    padded = np.pad(shares, ((0, 0), (0, _MOST - _MOST_LOAD)))
    return padded[0], padded[1]


def bin_tail(shape: ListShape) -> Float:
    """Return a bound on P(load >= k) of the items of an HBM bin, the overflow included."""
    if shape.label_count == 2:
        return _two_choice_loads(shape)[1]
    return _tail(_poisson(shape.items_per_label / shape.bin_split))


def _excess(shape: ListShape) -> list[tuple[int, Float]]:
    """Return the numbers of lists and of bins, each with P(m of its items are in the overflow), m = 0, 1,
    2 ...
    """
    beyond = list_tail(shape)[shape.record_slots :]
    lag = _tail(beyond[1:])  # of this touch, of the previous one less one, ...
    of_lists = np.concatenate([[1.0], np.minimum(lag, 1.0), [0.0]])
    of_bins = np.append(bin_tail(shape)[shape.record_slots :], 0.0)
    of_bins[0] = 1.0
    return [
        (number, tail[:-1] - tail[1:])
        for number, tail in (
            (shape.host_pages, of_lists),
            (shape.records - shape.host_pages, of_bins),
        )
    ]


def overflow_mean(shape: ListShape) -> float:
    """Return a bound on the average number of items in the overflow."""
    return float(sum(number * (tail @ np.arange(len(tail))) for number, tail in _excess(shape)))


@functools.lru_cache(maxsize=256)
def _bound(shape: ListShape) -> Callable[[int], float]:
    """Return log2 of Chernoff's bound on the probability that more than a number of entries are taken."""
    excess = _excess(shape)
    touches = 1 + shape.label_count * shape.window / shape.host_pages
    rates = np.geomspace(0.02, 8, 200)
    sums = []
    with np.errstate(over="ignore", invalid="ignore"):
        for rate in rates:
            parts = (number * (tail @ np.expm1(rate * np.arange(len(tail)))) for number, tail in excess)
            sums.append(touches * sum(parts))
    moments = np.nan_to_num(np.array(sums), nan=np.inf)
    return lambda entries: min(0.0, float(np.min(moments - rates * (entries + 1)))) / math.log(2)


def overflow_failure(shape: ListShape, operations: float = LIFE_OPERATIONS) -> float:
    """Return log2 of the probability that the overflow entries do not suffice for ``operations``."""
    return min(0.0, _bound(shape)(shape.overflow_entries) + math.log2(operations))


def overflow_needed(
    shape: ListShape, *, operations: float = LIFE_OPERATIONS, failure: float = LIFE_FAILURE
) -> int:
    """Return the overflow entries for which `overflow_failure` is below ``failure``."""
    bound = _bound(shape)
    low, high = 0, 1 << 40
    while low < high:
        entries = (low + high) // 2
        if bound(entries) + math.log2(operations) < failure:
            high = entries
        else:
            low = entries + 1
    return low
