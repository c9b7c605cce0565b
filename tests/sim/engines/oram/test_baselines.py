"""Formulas of other maps against simulations of small maps."""

import math
import random

import pytest

from hw.errors import InputError
from sim.engines.oram.baselines import (
    BOLT_SECONDS,
    bolt,
    bolt_bounds,
    bolt_cycles,
    chained_reads,
    hash_table,
    path_levels,
    path_oram,
)


def test_bolt_as_published():
    """Bounds printed by the artifact for 2^20 keys, and the slots of an operation."""
    bounds = bolt_bounds(20)
    assert bounds.load == pytest.approx(13.32, abs=0.01)
    assert bounds.queue == pytest.approx(78_977, rel=1e-3)
    # Its bound on HBM counts keys of bins and waiting keys.
    assert bounds.hbm_keys + bounds.queue == pytest.approx(296_720, rel=1e-4)
    wide = bolt_bounds(20, alpha=0.01, bin_keys=16)
    assert wide.load == pytest.approx(21.32, abs=0.01)
    assert wide.queue == pytest.approx(52_986, rel=1e-3)
    traffic = bolt(20, 8)
    assert traffic.accesses * math.ceil(bounds.load) == pytest.approx(44.8)
    assert traffic.read_bytes == traffic.write_bytes == pytest.approx(1.6 * 256)


def test_bolt_run():
    """Two choices, remapped at every access: touches, loads and queue of a small map."""
    rng = random.Random(1)
    log_n, alpha, bin_keys = 12, 0.25, 8
    keys = 1 << log_n
    bins = keys // bin_keys
    in_hbm = int(alpha * bins)
    loads, where, queues = [0] * bins, [0] * keys, [set() for _ in range(bins)]
    for key in range(keys):
        a, b = rng.randrange(bins), rng.randrange(bins)
        where[key] = a if loads[a] <= loads[b] else b
        loads[where[key]] += 1
    touches = queued = most_queued = most_hbm = 0
    count = 60_000
    for n in range(count):
        key = rng.randrange(keys)
        loads[where[key]] -= 1
        queues[where[key]].discard(key)
        a, b = rng.randrange(bins), rng.randrange(bins)
        where[key] = a if loads[a] <= loads[b] else b
        loads[where[key]] += 1
        if where[key] >= in_hbm:
            queues[where[key]].add(key)
        for touched in (rng.randrange(bins), rng.randrange(bins)):
            if touched >= in_hbm:
                touches += 1
                queues[touched].clear()
        if n % 500 == 0:
            queued = sum(map(len, queues))
            most_queued = max(most_queued, queued)
            most_hbm = max(most_hbm, sum(loads[:in_hbm]))
    bounds = bolt_bounds(log_n, alpha=alpha, bin_keys=bin_keys)
    assert touches / count == pytest.approx(bolt(log_n, 8, alpha=alpha).reads, abs=0.02)
    assert max(loads) <= bounds.load
    assert 0.8 * (1 + alpha) * (bins - in_hbm) / 2 < most_queued <= bounds.queue
    assert most_hbm <= bounds.hbm_keys


def test_bolt_cycles_pass_through_what_is_published():
    for keys, seconds in BOLT_SECONDS.items():
        assert bolt_cycles(math.log2(keys), clock_mhz=250.0) == pytest.approx(seconds * 250e6)
    assert bolt_cycles(24, clock_mhz=250.0) > bolt_cycles(20, clock_mhz=250.0) > 1100


class PathOram:
    """Path ORAM as in its figure 1, over a tree of dictionaries; counts buckets that are not cached."""

    def __init__(self, log_n, slots, cached, rng):
        self.depth, self.slots, self.cached, self.rng = path_levels(log_n) - 1, slots, cached, rng
        self.leaves = 1 << self.depth
        self.position = [rng.randrange(self.leaves) for _ in range(1 << log_n)]
        self.tree, self.stash = {}, {}
        self.reads = self.writes = self.peak = 0

    def bucket(self, leaf, level):
        return (1 << level) + (leaf >> (self.depth - level))

    def access(self, block, value=None):
        leaf, self.position[block] = self.position[block], self.rng.randrange(self.leaves)
        for level in range(self.depth + 1):
            self.reads += level >= self.cached
            self.stash |= self.tree.pop(self.bucket(leaf, level), {})
        found = self.stash.get(block)
        if value is not None:
            self.stash[block] = value
        for level in range(self.depth, -1, -1):
            self.writes += level >= self.cached
            bucket = self.bucket(leaf, level)
            fits = [b for b in self.stash if self.bucket(self.position[b], level) == bucket][: self.slots]
            self.tree[bucket] = {b: self.stash.pop(b) for b in fits}
        self.peak = max(self.peak, len(self.stash))
        return found


@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_path_oram_run(alpha):
    """Buckets of an access, and a stash below the 89 blocks of the paper's section 7."""
    rng = random.Random(2)
    log_n, slots = 8, 4
    expected = path_oram(log_n, 8, alpha=alpha)
    cached = path_levels(log_n) - expected.reads
    assert ((1 << cached) - 1) * slots <= alpha * 2**log_n < ((2 << cached) - 1) * slots
    oram, model = PathOram(log_n, slots, cached, rng), {}
    count = 3000
    for n in range(count):
        block = rng.randrange(1 << log_n)
        value = n if rng.random() < 0.5 else None
        assert oram.access(block, value) == model.get(block)
        if value is not None:
            model[block] = value
    assert (oram.reads, oram.writes) == (count * expected.reads, count * expected.writes)
    assert oram.peak <= 89
    assert expected.moved_bytes == 2 * expected.reads * 128


@pytest.mark.parametrize(("alpha", "maps"), [(0.4, 0), (0.2, 1), (0.001, 2)])
def test_path_oram_recursion(alpha, maps):
    """Position maps of a sixteenth each, until one fits beside the cached levels of the tree."""
    plain = path_oram(20, 8, alpha=alpha)
    nested = path_oram(20, 8, alpha=alpha, recursive=True)
    sizes = [20 - 4 * n for n in range(1, maps + 1)]
    assert nested.reads == plain.reads + sum(path_levels(size) for size in sizes)
    room = ((1 << path_levels(20) - plain.reads) - 1) * 128
    assert nested.hbm_bytes == room + (4 << 20 - 4 * maps)
    assert 4 << 20 - 4 * maps <= room
    assert not maps or 4 << 20 - 4 * (maps - 1) > room


def test_path_oram_recursion_without_a_level_in_hbm():
    """Maps of 2^16, 2^12, 2^8 and 2^4 labels; the last is a block and stays."""
    plain, nested = path_oram(20, 8, alpha=0.0), path_oram(20, 8, alpha=0.0, recursive=True)
    assert nested.reads == plain.reads + 17 + 13 + 9 + 5
    assert nested.hbm_bytes == 64


@pytest.mark.parametrize(("load", "slots"), [(3.0, 4), (0.75, 1), (6.0, 4)])
def test_hash_table_run(load, slots):
    rng = random.Random(3)
    buckets = 20_000
    counts = [0] * buckets
    keys, reads = int(load * buckets), 0
    for _ in range(keys):
        bucket = rng.randrange(buckets)
        reads += counts[bucket] // slots + 1
        counts[bucket] += 1
    assert reads / keys == pytest.approx(chained_reads(load, slots), rel=0.01)


@pytest.mark.parametrize("log_n", range(16, 31, 2))
def test_order_of_maps(log_n):
    """The tree grows with the keys, pages of two choices with log log N, a hash table not at all."""
    ours = 2 * 0.8 * 256
    assert hash_table(log_n, 8).moved_bytes < ours < bolt(log_n, 8).moved_bytes
    assert bolt(log_n, 8).moved_bytes < path_oram(log_n, 8).moved_bytes
    assert path_oram(log_n, 8).moved_bytes <= path_oram(log_n, 8, alpha=0.02).moved_bytes
    assert hash_table(log_n, 8).moved_bytes == hash_table(16, 8).moved_bytes


def test_refused():
    with pytest.raises(InputError, match="log_n"):
        bolt(7, 8)
    with pytest.raises(InputError, match="value_bytes"):
        hash_table(20, 0)
