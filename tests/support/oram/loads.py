"""Length of lists and load of bins, by simulation of many operations."""

from dataclasses import dataclass

import numpy as np

from hw.oram.core.layouts import Code
from tests.support.oram.fast import FastMap
from tests.support.oram.workloads import keys_of

#: Maximum operations in a call: their draws take memory.
_PART = 1 << 20


@dataclass
class Loads:
    """Shares of lists and bins with at least k items, average items in the overflow; peaks."""

    lists: np.ndarray
    bins: np.ndarray
    overflow: float
    list_peak: int
    overflow_peak: int


def simulate(config, workload, operations, seed=0):
    """Fill a map, access keys, and sample it after a warm-up.

    Lists and bins are sampled four times in the time of all keys, the overflow after each part.
    """
    rng = np.random.default_rng(seed)
    fast = FastMap(config, config.keys)

    def run(code, keys):
        for start in range(0, len(keys), _PART):
            part = keys[start : start + _PART]
            draws = rng.integers(2**64, size=(len(part), config.draws, 2), dtype=np.uint64)
            fast.run(np.full(len(part), code), part, draws)
            waiting.append(fast.state.counters[2])

    waiting = []
    run(Code.LOAD, np.arange(config.keys))
    every = config.keys // 4
    scans = workload == "scan"  # whose keys follow from their number
    keys = np.empty(0, np.int64) if scans else keys_of(workload, rng, operations, config.keys)
    found, overflow = [], []
    for start in range(0, operations, every):
        waiting.clear()
        end = min(start + every, operations)
        run(Code.GET, np.arange(start, end) % config.keys if scans else keys[start:end])
        if start >= min(4 * config.keys, operations // 3):
            found.append([_counted(lengths) for lengths in fast.lengths()])
            overflow += waiting
    lists, bins = zip(*found, strict=True)
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
