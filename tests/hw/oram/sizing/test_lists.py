"""Lists, bins and overflow match the formulas for the worst sequence; others need less."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hw.oram.config import OramConfig
from hw.oram.sizing.failures import check_overflow
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


#: Slots that ``list_slots: 0`` selects, and log2 of the probability of an overflow, rounded up.
AUTOMATIC = {
    8: (14, -74), 10: (14, -176), 16: (14, -147), 18: (14, -117), 20: (14, -74), 21: (14, -48),
    22: (18, -162), 24: (18, -126), 26: (18, -75), 27: (18, -43), 28: (22, -185), 30: (22, -150),
}  # fmt: skip


@pytest.mark.parametrize("log_n", AUTOMATIC)
def test_automatic_lists_do_not_overflow(log_n):
    """The least of the slots that suffice are selected, for every value and both touches."""
    config = OramConfig(log_n=log_n)
    failure = overflow_failure(config.list_shape)
    assert (config.record_slots, math.ceil(failure)) == AUTOMATIC[log_n]
    assert config.record_slots == 14 or (
        overflow_failure(replace(config, list_slots=config.record_slots - 4).list_shape) >= -40
    )
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
