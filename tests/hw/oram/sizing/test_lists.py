"""Lists, bins and overflow match the formulas for the worst sequence; others need less."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hw.oram.config import OramConfig
from hw.oram.driver.capacity import hbm_bytes
from hw.oram.sizing.failures import check_overflow, failures
from hw.oram.sizing.lists import bin_tail, list_tail, overflow_failure, overflow_mean, overflow_needed
from tests.support.oram.loads import simulate
from tests.support.oram.workloads import WORKLOADS

CONFIG = OramConfig(log_n=16, list_slots=8, overflow_entries=256)
OPERATIONS = 400_000


def close(found, expected, share, upto):
    """Both agree from 1 to ``upto`` items."""
    np.testing.assert_allclose(found[1 : upto + 1], expected[1 : upto + 1], rtol=share)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "config",
    [CONFIG, replace(CONFIG, items_per_label=4, slots=6, bin_split=2)],
    ids=["8", "4"],
)
def test_scan_is_what_the_formula_says(config):
    found = simulate(config, "scan", OPERATIONS)
    close(found.lists, list_tail(config.list_shape), 0.1, 6)
    close(found.bins, bin_tail(config.list_shape), 0.1, 5)
    assert found.overflow == pytest.approx(overflow_mean(config.list_shape), rel=0.3)
    assert found.overflow_peak <= overflow_needed(config.list_shape, operations=OPERATIONS, failure=-20)


@pytest.mark.parametrize("workload", ["uniform", "zipf", "same"])
def test_other_sequences_have_shorter_lists(workload):
    found = simulate(CONFIG, workload, OPERATIONS)
    assert (found.lists[1:7] <= 1.02 * list_tail(CONFIG.list_shape)[1:7]).all()
    close(found.bins, bin_tail(CONFIG.list_shape), 0.1, 5)
    assert found.overflow <= 1.1 * overflow_mean(CONFIG.list_shape)


@pytest.mark.parametrize("workload", ["uniform", "scan"])
def test_two_choices(workload):
    config = replace(CONFIG, touch="both")
    found = simulate(config, workload, OPERATIONS)
    assert (found.lists[1:9] <= list_tail(config.list_shape)[1:9]).all()
    assert found.overflow <= overflow_mean(config.list_shape)
    if workload == "uniform":
        close(found.bins, bin_tail(config.list_shape), 0.1, 7)
    long = replace(config, list_slots=14)
    assert overflow_mean(long.list_shape) < overflow_mean(replace(long, touch="one").list_shape) / 1000


def documented():
    """Return the rows of the page's table of sizes."""
    page = Path(__file__).parents[4] / "docs" / "oram.md"
    section = page.read_text().partition("## Sizes")[2].partition("## ")[0]
    rows = re.findall(r"^\| 2\^(\d+) \| (.*) MiB \|$", section, re.MULTILINE)
    return {int(log_n): [float(cell.replace(",", "")) for cell in row.split("|")] for log_n, row in rows}


def test_the_page_has_the_default_sizes():
    rows = documented()
    assert {16, 20, 24, 26, 30} < set(rows)
    for log_n, row in rows.items():
        config = OramConfig(log_n=log_n)
        found = failures(config)
        assert row == [
            config.record_slots,
            config.interval,
            overflow_needed(config.list_shape),
            *(round(found[f"{kind}_failure_log2"]) for kind in ("overflow", "insertion")),
            round(hbm_bytes(config) / 2**20, 1),
        ]


def test_a_map_with_fewer_labels_than_its_window_has_longer_lists():
    assert OramConfig(log_n=8).record_slots == 18
    assert OramConfig(log_n=8, inflight=16, touch_cycles=64, settle_cycles=64).record_slots == 14


@pytest.mark.sample(2)
@pytest.mark.parametrize("log_n", [16, 20, 22, 26, 30])
def test_automatic_lists_do_not_overflow(log_n):
    """The least of the slots that suffice are selected, for every value and both touches."""
    config = OramConfig(log_n=log_n)
    assert config.record_slots == (14 if log_n < 22 else 18 if log_n < 28 else 22)
    less = replace(config, list_slots=config.record_slots - 4)
    assert config.record_slots == 14 or overflow_failure(less.list_shape) >= -40
    for value_bytes in (8, 32, 64, 384, 512):
        for touch in ("one", "both"):
            other = replace(config, value_bytes=value_bytes, touch=touch)
            check_overflow(other)
            assert other.record_slots == (14 if touch == "both" else config.record_slots)


def test_entries_needed_suffice_and_no_fewer():
    for config in (OramConfig(log_n=20, list_slots=20), OramConfig(log_n=24, list_slots=22, alpha=0.5)):
        needed = overflow_needed(config.list_shape)
        powers = [4 << n for n in range(7)]
        assert [
            overflow_failure(replace(config, overflow_entries=entries).list_shape) < -40 for entries in powers
        ] == [entries >= needed for entries in powers]
        assert needed < overflow_needed(config.list_shape, failure=-60)


@pytest.mark.soak
@pytest.mark.parametrize(
    "config",
    [
        OramConfig(log_n=24),
        OramConfig(log_n=24, list_slots=14, overflow_entries=256),
        OramConfig(log_n=26),
    ],
    ids=["2^24", "2^24, overflowing", "2^26"],
)
def test_scans_of_large_maps(config):
    """After all keys were loaded, all are accessed thrice. Overflow and lists follow the formulas."""
    operations = 3 * config.keys
    found = simulate(config, "scan", operations)
    close(found.lists, list_tail(config.list_shape), 0.05, 10)
    expected = overflow_mean(config.list_shape)
    slack = 0.3 if expected > 50 else 2  # lists that overflow are few, and stay so for long
    assert found.overflow == pytest.approx(expected, rel=slack)
    assert found.overflow_peak <= overflow_needed(config.list_shape, operations=operations)


@pytest.mark.soak
@pytest.mark.parametrize("touch", ["one", "both"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_peaks_of_the_default(workload, touch):
    """Over 10^7 operations at N = 2^20 the overflow stays below its bound for 2^-40."""
    config = OramConfig(touch=touch)
    found = simulate(config, workload, 10_000_000)
    assert found.overflow_peak <= overflow_needed(config.list_shape, operations=1e7)
    upto = 9 if touch == "one" else 5
    assert (found.lists[1:upto] <= 1.05 * list_tail(config.list_shape)[1:upto]).all()
    if workload == "scan" and touch == "one":
        close(found.lists, list_tail(config.list_shape), 0.05, 9)
        assert found.overflow == pytest.approx(overflow_mean(config.list_shape), rel=0.3)
