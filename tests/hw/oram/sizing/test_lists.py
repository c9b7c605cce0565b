"""Lists, bins and overflow match the formulas for the worst sequence; others need less."""

from dataclasses import replace

import numpy as np
import pytest

from hw.oram.config import OramConfig
from hw.oram.sizing.lists import bin_tail, list_tail, overflow_failure, overflow_mean, overflow_needed
from tests.support.oram.loads import simulate
from tests.support.oram.workloads import WORKLOADS

CONFIG = OramConfig(log_n=16, list_slots=8, overflow_entries=256)
OPERATIONS = 400_000


def close(found, expected, share, upto):
    """Both agree from 1 to ``upto`` items."""
    np.testing.assert_allclose(found[1 : upto + 1], expected[1 : upto + 1], rtol=share)


@pytest.mark.parametrize(
    "config",
    [CONFIG, replace(CONFIG, items_per_label=4, slots=6, bin_split=2)],
    ids=["8", "4"],
)
def test_scan_is_what_the_formula_says(config):
    found = simulate(config, "scan", OPERATIONS)
    close(found.lists, list_tail(config), 0.1, 6)
    close(found.bins, bin_tail(config), 0.1, 5)
    assert found.overflow == pytest.approx(overflow_mean(config), rel=0.3)
    assert found.overflow_peak <= overflow_needed(config, operations=OPERATIONS, failure=-20)


@pytest.mark.parametrize("workload", ["uniform", "zipf", "same"])
def test_other_sequences_have_shorter_lists(workload):
    found = simulate(CONFIG, workload, OPERATIONS)
    assert (found.lists[1:7] <= 1.02 * list_tail(CONFIG)[1:7]).all()
    close(found.bins, bin_tail(CONFIG), 0.1, 5)
    assert found.overflow <= 1.1 * overflow_mean(CONFIG)


@pytest.mark.parametrize("workload", ["uniform", "scan"])
def test_two_choices(workload):
    config = replace(CONFIG, touch="both")
    found = simulate(config, workload, OPERATIONS)
    assert (found.lists[1:9] <= list_tail(config)[1:9]).all()
    assert found.overflow <= overflow_mean(config)
    if workload == "uniform":
        close(found.bins, bin_tail(config), 0.1, 7)
    long = replace(config, list_slots=14)
    assert overflow_mean(long) < overflow_mean(replace(long, touch="one")) / 1000


def test_default_does_not_fail():
    assert overflow_failure(OramConfig()) < -40
    assert overflow_failure(OramConfig(touch="both")) < -40
    assert overflow_failure(OramConfig(log_n=28)) == 0
    assert overflow_failure(OramConfig(log_n=28, list_slots=20)) < -40


def test_entries_needed_suffice_and_no_fewer():
    for config in (OramConfig(log_n=20, list_slots=20), OramConfig(log_n=24, list_slots=22, alpha=0.5)):
        needed = overflow_needed(config)
        powers = [4 << n for n in range(7)]
        assert [overflow_failure(replace(config, overflow_entries=entries)) < -40 for entries in powers] == [
            entries >= needed for entries in powers
        ]
        assert needed < overflow_needed(config, failure=-60)


@pytest.mark.soak
@pytest.mark.parametrize("touch", ["one", "both"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_peaks_of_the_default(workload, touch):
    """Over 10^7 operations at N = 2^20 the overflow stays below its bound for 2^-40."""
    config = OramConfig(touch=touch)
    found = simulate(config, workload, 10_000_000)
    assert found.overflow_peak <= overflow_needed(config, operations=1e7)
    upto = 9 if touch == "one" else 5
    assert (found.lists[1:upto] <= 1.05 * list_tail(config)[1:upto]).all()
    if workload == "scan" and touch == "one":
        close(found.lists, list_tail(config), 0.05, 9)
        assert found.overflow == pytest.approx(overflow_mean(config), rel=0.3)
