"""Deadlines of the position map: the bound against exact tails, and against the HBM model under attack."""

import itertools
import math
import random
import re
from fractions import Fraction
from pathlib import Path

import pytest

from hw.oram.config import OramConfig
from hw.oram.sizing.lists import LIFE_FAILURE
from hw.oram.sizing.queues import position_queues
from tests.support.oram.bucket_traffic import longest_waits, same_bin


def exact_tail(balls, bins, count):
    share = Fraction(1, bins)
    return float(
        sum(math.comb(balls, k) * share**k * (1 - share) ** (balls - k) for k in range(count, balls + 1))
    )


@pytest.mark.parametrize(("ports", "bins"), [(1, 8), (4, 32), (8, 64)])
def test_tails_are_bounds(ports, bins):
    """At most twice the exact tail beyond the mean; one where the bound is none."""
    banks = position_queues(ports=ports, buckets=1 << 16, interval=40)._banks
    assert banks.bins == bins
    for balls in (1, 2, 40, 200):
        for count in range(1, balls + 2):
            exact, bound = exact_tail(balls, bins, count), 2.0 ** banks.exceeds(balls, count)
            assert exact <= bound * (1 + 1e-9)
            if count > 2 * balls / bins and exact:
                assert bound <= 2 * exact
    most = [banks.most(balls) for balls in range(400)]
    assert all(0 <= later - earlier <= 1 for earlier, later in itertools.pairwise(most))
    assert [most[0], most[1]] == [0, 1]


@pytest.mark.parametrize("touch", ["one", "both"])
@pytest.mark.parametrize("value_bytes", [8, 64, 384])
@pytest.mark.parametrize("log_n", [8, 12, 16, 20, 26, 30])
def test_chosen_deadlines_suffice(touch, value_bytes, log_n):
    """Less than 2^-40 in 10^12 operations; no bucket occurs twice in a window that may be busy."""
    config = OramConfig(log_n=log_n, touch=touch, value_bytes=value_bytes, list_slots=14)
    sizes = config.position
    assert sizes.failure < LIFE_FAILURE
    assert sizes.log - sizes.write_back - sizes.inflight >= sizes.write_back
    assert (sizes.log - sizes.write_back - sizes.inflight) * config.interval >= sizes.write_cycles
    queues = position_queues(ports=4, buckets=config.buckets, interval=config.interval)
    assert queues.failure(sizes.read_cycles + 64) <= sizes.failure
    if log_n >= 16 and value_bytes == 8:
        assert queues.failure(sizes.read_cycles * 3 // 4) > LIFE_FAILURE


def test_given_deadlines_are_kept():
    sizes = OramConfig(position_cycles=288, settle_cycles=300).position
    assert (sizes.read_cycles, sizes.write_cycles) == (288, 300)
    assert sizes.failure > LIFE_FAILURE


def hot_window(config, rng, window):
    """Draw operations of which ``window`` read or write as many buckets of a bin as the bound allows."""
    queues = position_queues(ports=4, buckets=config.buckets, interval=config.interval)
    apart = config.position.write_back
    hot = same_bin(config.buckets, 4, 2 * window)
    rng.shuffle(hot)
    buckets = [rng.randrange(config.buckets) for _ in range(600 + window + apart)]
    begin = 300 + rng.randrange(293)  # at any time between refreshes
    for bucket, place in zip(
        hot, rng.sample(range(2 * window), queues._banks.most(2 * window)), strict=False
    ):
        buckets[begin + place if place < window else begin + apart + place - window] = bucket
    return buckets


def fullest_window(config, window, seed):
    """Return the longest read and write of the fullest bin that the bound allows, between random ones."""
    buckets = hot_window(config, random.Random(seed), window)
    return longest_waits(config, buckets, [config.interval * n for n in range(len(buckets))])


@pytest.mark.parametrize("window", [30, 130])
def test_as_many_in_a_bin_as_may_be(window):
    config = OramConfig()
    waits = fullest_window(config, window, window)
    assert waits[0] <= config.position.read_cycles
    assert waits[1] <= config.position.write_cycles


@pytest.mark.soak
def test_the_longest_wait_of_many_windows():
    """The figures of docs/oram.md."""
    config = OramConfig()
    waits = [fullest_window(config, window, seed) for window in (30, 70, 130, 180) for seed in range(20)]
    assert tuple(map(max, zip(*waits, strict=True))) == (830, 311)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "changes", [{}, {"log_n": 18}, {"log_n": 14, "position_ports": 4, "interval_cycles": 8}]
)
@pytest.mark.parametrize("attack", ["one", "pair", "few", "loop", "bursts"])
def test_attacks_meet_the_deadlines(changes, attack):
    """One bucket; two and 40 of a bin; a loop just longer than the log; bursts after pauses."""
    config, rng = OramConfig(**changes), random.Random(attack)
    ports, sizes = config.position_ports // 2, config.position
    bin_ = same_bin(config.buckets, ports, 40)
    count = 3000 if attack != "loop" else 3 * sizes.log
    starts = [config.interval * n for n in range(count)]
    loop = [rng.randrange(config.buckets) for _ in range(sizes.log + 1)]
    chosen = {"one": bin_[:1], "pair": bin_[:2], "few": bin_, "loop": loop, "bursts": bin_ + loop}[attack]
    if attack == "bursts":
        starts = [start + 2000 * (n // 40) for n, start in enumerate(starts[: 20 * 40])]
    waits = longest_waits(config, [chosen[n % len(chosen)] for n in range(len(starts))], starts)
    assert waits[0] <= sizes.read_cycles
    assert waits[1] <= sizes.write_cycles


def test_the_page_has_the_bounds():
    page = Path(__file__).parents[4] / "docs" / "oram.md"
    section = page.read_text().partition("## Position map in HBM")[2].partition("## ")[0]
    rows = re.findall(r"^\| 2\^(\d+)(?: to 2\^(\d+))? \| (.*) \|$", section, re.MULTILINE)
    assert len(rows) == 3
    for low, high, row in rows:
        interval, ports, *told = [float(cell.replace(",", "")) for cell in row.split("|")]
        for log_n in (low, high or low):
            config = OramConfig(log_n=int(log_n), position_ports=int(ports))
            sizes = config.position
            assert config.interval == interval
            assert told == [sizes.write_back, sizes.log, sizes.read_cycles, round(sizes.failure, 1)]
