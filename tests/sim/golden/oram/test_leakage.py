"""The tests find nothing in the map's touches, and detect a leak."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code
from sim.golden.oram.leakage import (
    LeakageFinding,
    leaks,
    overlaps,
    page_findings,
    same_distribution,
    same_mean,
    serial_correlation,
)
from tests.support.oram.fast import FastMap, leaky_touches
from tests.support.oram.workloads import WORKLOADS, keys_of

CONFIG = OramConfig(log_n=8, list_slots=14, overflow_entries=256, inflight=4, settle_cycles=16)
OPERATIONS = 300_000


def touches(config, workload, operations, seed):
    """Return pages [n, 1 or 2] of a full map, -1 for a label in HBM."""
    rng = np.random.default_rng(seed)
    fast = FastMap(config, config.keys)

    def run(codes, keys):
        draws = rng.integers(2**64, size=(len(keys), config.draws, 2), dtype=np.uint64)
        return fast.run(codes, keys, draws)[1]

    run(np.full(config.keys, Code.LOAD), np.arange(config.keys))
    codes = rng.choice([Code.GET, Code.PUT, Code.DELETE], size=operations, p=[0.6, 0.35, 0.05])
    return run(codes, keys_of(workload, rng, operations, config.keys))


def leaky(workload, operations, seed, labels=32):
    rng = np.random.default_rng(seed)
    keys = keys_of(workload, rng, operations, 4 * labels)
    draws, others = rng.integers(labels, size=(operations, 2)), rng.integers(labels, size=operations)
    return leaky_touches(keys, draws, others, rng.integers(labels, size=4 * labels))


@pytest.mark.sample(2)
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("touch", ["one", "both"])
@pytest.mark.parametrize(("maps", "least"), [(1, 0.12), pytest.param(10, 0.04, marks=pytest.mark.soak)])
def test_nothing_leaks(maps, least, touch, workload):
    """Padded, so that every touch has a page; with labels in HBM whose dummies must not differ.

    ``maps`` maps are tested together, each with its own draws; ``least`` is the detectable effect.
    """
    config = replace(CONFIG, touch=touch, pad="always")
    seeds = [[WORKLOADS.index(workload), seed] for seed in range(maps)]
    pages = np.concatenate([touches(config, workload, OPERATIONS, seed) for seed in seeds])
    findings = page_findings(pages, config.host_pages)
    assert leaks(findings) == []
    assert max(finding.least for finding in findings) < least


@pytest.mark.parametrize("touch", ["one", "both"])
def test_labels_in_hbm_are_touched_independently(touch):
    """Without padding labels in HBM are visible: as often as expected, independent of history."""
    config = replace(CONFIG, touch=touch)
    pages = touches(config, "zipf", OPERATIONS, 7)
    skipped = (pages < 0).astype(np.int64)
    share = config.hbm_labels / config.labels
    assert skipped.mean() == pytest.approx(share, abs=0.005)
    assert leaks([serial_correlation(skipped, 1)]) == []


@pytest.mark.parametrize("workload", ["same", "uniform", "scan"])
def test_the_leak_is_found(workload):
    """The positive control: kept labels depend on loads."""
    pages = leaky(workload, OPERATIONS, 3)
    found = leaks(page_findings(pages, 32))
    assert any(finding.name.startswith("overlap") for finding in found)
    strongest = min(found, key=lambda finding: finding.p)
    assert abs(strongest.effect) > strongest.least


def test_workloads_cannot_be_told_apart():
    """Neither by pages nor by the operations until a page is touched again; every pair of workloads."""
    config = replace(CONFIG, pad="always")
    seen = [touches(config, workload, OPERATIONS, 20 + at) for at, workload in enumerate(WORKLOADS)]
    gaps = [np.diff(np.flatnonzero(pages[:, 0] == 5)) for pages in seen]
    pairs = list(combinations(range(len(seen)), 2))
    tests = 3 * len(pairs)
    findings = [
        finding
        for a, b in pairs
        for finding in (
            same_distribution(seen[a], seen[b], tests),
            same_distribution(gaps[a], gaps[b], tests),
            same_mean(gaps[a], gaps[b], tests),
        )
    ]
    assert leaks(findings) == []
    assert max(finding.least for finding in findings) < 0.11
    gaps = [
        np.diff(np.flatnonzero(leaky(workload, OPERATIONS, 5)[:, 0] == 5)) for workload in ("same", "scan")
    ]
    assert leaks([same_distribution(*gaps, 2), same_mean(*gaps, 2)])


def test_p_values_are_uniform_without_a_leak():
    """Over many sequences of independent pages every test returns p below 1/10 one time in ten."""
    rng = np.random.default_rng(6)
    low = []
    for _ in range(300):
        pages = rng.integers(40, size=(4000, 1))
        other = rng.integers(40, size=(3000, 1))
        findings = [
            *page_findings(pages, 40)[:3],
            same_mean(pages, other, 1),
            same_distribution(pages, other, 1),
        ]
        low.append([finding.p < 0.1 for finding in findings])
    shares = np.mean(low, axis=0)
    np.testing.assert_allclose(shares[:4], 0.1, atol=0.05)
    assert shares[4] < 0.15  # an upper bound


def test_the_least_effect_is_found_nine_times_of_ten():
    """Pages that repeat more often by `LeakageFinding.least`."""
    rng = np.random.default_rng(7)
    count, size, found = 32, 20_000, 0
    least = overlaps(rng.integers(count, size=(size, 1)), count)[0].least
    for _ in range(100):
        pages = rng.integers(count, size=size)
        again = np.flatnonzero(rng.random(size - 1) < least / (count - 1)) + 1
        pages[again] = pages[again - 1]
        found += overlaps(pages[:, None], count)[0] in leaks(overlaps(pages[:, None], count))
    assert 75 <= found <= 99


def test_means_that_do_not_vary():
    four = np.full(10, 4)
    assert same_mean(four, four, 1) == LeakageFinding("mean", 1.0, 0.0, 0.0)
    assert leaks([same_mean(four, four + 1, 1)])
