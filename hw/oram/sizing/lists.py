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
"""

import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hw.oram.config import OramConfig

Float = NDArray[np.float64]

#: Maximum number of items counted in a list: Poisson(64) has more with a probability below 2^-160.
_MOST = 256
#: Steps of x from 0 until all keys have been accessed.
_STEPS = 512
#: With two labels: maximum load, time steps between draws of a page, and lifetimes of an item until
#: loads are steady.
_MOST_LOAD = 96
_LOAD_STEPS = 64
_LIVES = 12
_COUNTS = np.arange(_MOST)
_LOG_FACTORIALS = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, _MOST)))])


def _poisson(mean: float) -> Float:
    """Return P(k), k = 0 ... `_MOST` - 1."""
    if mean == 0:
        return (_COUNTS == 0).astype(np.float64)
    return np.asarray(np.exp(_COUNTS * math.log(mean) - mean - _LOG_FACTORIALS))


def _tail(lengths: Float) -> Float:
    """Return P(k or more)."""
    return np.asarray(np.cumsum(lengths[::-1])[::-1])


def list_tail(config: OramConfig) -> Float:
    """Return a bound on P(len >= k) of the items that wait for a page, the overflow included."""
    keys, labels = config.items_per_label, config.label_count
    most = labels * keys
    before = labels * config.window / config.labels
    edges = np.linspace(0, most, _STEPS + 1)
    weights = np.append(np.exp(-edges[:-1]) - np.exp(-edges[1:]), math.exp(-most))
    total = np.zeros(_MOST)
    for x, weight in zip(np.append((edges[:-1] + edges[1:]) / 2, most), weights, strict=True):
        found = _poisson(keys if labels == 2 else keys - x)
        left = np.concatenate([[found[: config.slots + 1].sum()], found[config.slots + 1 :]])
        total += weight * np.convolve(left, _poisson(min(x + before, most)))[:_MOST]
    return np.minimum(_tail(total), _two_choice_loads(config)[0]) if labels == 2 else _tail(total)


@functools.cache
def _two_choice_loads(config: OramConfig) -> tuple[Float, Float]:
    """Return P(load >= k) of a page with its list and of an HBM bin, with two labels."""
    in_hbm = config.hbm_labels / config.labels
    #: Of a page and of a bin: the rate of its draws, and the share of all draws.
    rates = np.array([[1.0], [1 / config.bin_split]])
    parts = np.array([1 - in_hbm, in_hbm])
    shares = np.zeros((2, _MOST_LOAD))
    shares[:, 0] = 1
    counts = np.arange(_MOST_LOAD) / config.items_per_label

    def change(shares: Float, leaving: bool) -> Float:
        drawn = parts @ shares + 1 / config.labels  # sometimes both draws are the same
        out = np.zeros_like(shares)
        out[:, 1:] = rates * (shares[:, :-1] - shares[:, 1:]) * (drawn[:-1] + drawn[1:])
        return out + leaving * np.diff(shares, axis=1, append=0) * counts

    until_full = config.items_per_label * _LOAD_STEPS
    for step in range(_LIVES * until_full):
        middle = shares + change(shares, step >= until_full) / (2 * _LOAD_STEPS)
        shares = shares + change(middle, step >= until_full) / _LOAD_STEPS
    padded = np.pad(shares, ((0, 0), (0, _MOST - _MOST_LOAD)))
    return padded[0], padded[1]


def bin_tail(config: OramConfig) -> Float:
    """Return a bound on P(load >= k) of the items of an HBM bin, the overflow included."""
    if config.label_count == 2:
        return _two_choice_loads(config)[1]
    return _tail(_poisson(config.items_per_label / config.bin_split))


def _excess(config: OramConfig) -> list[tuple[int, Float]]:
    """Return the numbers of lists and of bins, each with P(m of its items are in the overflow), m = 0, 1,
    2 ...
    """
    beyond = list_tail(config)[config.list_slots :]
    lag = _tail(beyond[1:])  # of this touch, of the previous one less one, ...
    of_lists = np.concatenate([[1.0], np.minimum(lag, 1.0), [0.0]])
    of_bins = np.append(bin_tail(config)[config.list_slots :], 0.0)
    of_bins[0] = 1.0
    return [
        (number, tail[:-1] - tail[1:])
        for number, tail in (
            (config.host_pages, of_lists),
            (config.hbm_labels * config.bin_split, of_bins),
        )
    ]


def overflow_mean(config: OramConfig) -> float:
    """Return a bound on the average number of items in the overflow."""
    return float(sum(number * (tail @ np.arange(len(tail))) for number, tail in _excess(config)))


def _bound(config: OramConfig) -> Callable[[int], float]:
    """Return log2 of Chernoff's bound on the probability of more than a number of items in the overflow."""
    excess = _excess(config)
    rates = np.geomspace(0.02, 8, 200)
    sums = []
    with np.errstate(over="ignore", invalid="ignore"):
        for rate in rates:
            parts = (number * (tail @ np.expm1(rate * np.arange(len(tail)))) for number, tail in excess)
            sums.append(sum(parts))
    moments = np.nan_to_num(np.array(sums), nan=np.inf)
    return lambda entries: min(0.0, float(np.min(moments - rates * (entries + 1)))) / math.log(2)


def overflow_failure(config: OramConfig, operations: float = 1e12) -> float:
    """Return log2 of the probability that the overflow entries do not suffice for ``operations``."""
    return min(0.0, _bound(config)(config.overflow_entries) + math.log2(operations))


def overflow_needed(config: OramConfig, *, operations: float = 1e12, failure: float = -40) -> int:
    """Return the overflow entries for which `overflow_failure` is below ``failure``."""
    bound = _bound(config)
    low, high = 0, 1 << 40
    while low < high:
        entries = (low + high) // 2
        if bound(entries) + math.log2(operations) < failure:
            high = entries
        else:
            low = entries + 1
    return low
