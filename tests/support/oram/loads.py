"""Length of lists and load of bins, by simulation of many operations."""

from dataclasses import dataclass

import numpy as np

from hw.oram.core.layouts import Code
from tests.support.oram.fast import FastMap
from tests.support.oram.workloads import keys_of


@dataclass
class Loads:
    """Shares of lists and bins with at least k items, average items in the overflow; peaks."""

    lists: np.ndarray
    bins: np.ndarray
    overflow: float
    list_peak: int
    overflow_peak: int


def simulate(config, workload, operations, seed=0):
    """Fill a map, access keys, and sample it four times in the time of all keys, after a warm-up."""
    rng = np.random.default_rng(seed)
    fast = FastMap(config, config.keys)

    def run(code, keys):
        draws = rng.integers(2**64, size=(len(keys), config.draws, 2), dtype=np.uint64)
        fast.run(np.full(len(keys), code), keys, draws)

    run(Code.LOAD, np.arange(config.keys))
    every = config.keys // 4
    keys = keys_of(workload, rng, operations, config.keys)
    found = []
    for start in range(0, operations, every):
        run(Code.GET, keys[start : start + every])
        if start >= min(4 * config.keys, operations // 3):
            found.append((*map(_counted, fast.lengths()), fast.state.counters[2]))
    lists, bins, overflow = zip(*found, strict=True)
    list_peak, overflow_peak = fast.state.peaks.tolist()
    return Loads(
        _tail(sum(lists)),
        _tail(sum(bins)),
        np.mean(overflow),
        list_peak,
        overflow_peak,
    )


def _counted(loads):
    return np.bincount(loads, minlength=64)


def _tail(counts):
    return np.cumsum(counts[::-1])[::-1] / max(counts.sum(), 1)
