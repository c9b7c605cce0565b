"""Deadlines of the records: the bound against exact probabilities, and against the HBM model under attack."""

import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hw.oram.config import OramConfig
from hw.oram.sizing.lists import LIFE_FAILURE
from hw.oram.sizing.records import _Queue, _Work, record_queues
from tests.support.oram.record_traffic import Operation, bank_of, longest_waits, same_bank

DEFAULT = OramConfig(log_n=18)


def exact_work(draws):
    """Return the probabilities of the total work of draws: of each, its share and whole cycles."""
    chances = np.ones(1)
    for share, cycles in draws:
        more = np.zeros(len(chances) + cycles)
        more[: len(chances)] += (1 - share) * chances
        more[cycles:] += share * chances
        chances = more
    return chances


@pytest.mark.parametrize("gap", [1, 5, 40])
@pytest.mark.parametrize("operations", [1, 12, 40])
def test_the_bound_holds_for_hot_keys(operations, gap):
    """The bound is at least the exact probability of keys that are used again after ``gap`` operations."""
    share, work = 1 / 64, {"header": 15, "record": 16, "append": 18, "touch": 17}
    traffic = replace(DEFAULT.record_sizes.traffic, labels=1 << 20)
    queue = _Queue(traffic, [_Work(share=share, **work)], scanned=9, served=1)
    both = max(0, operations - gap)
    alone = operations - both
    draws = []
    for first, second in (("header", "record"), ("append", "touch")):
        draws += [(share, work[first] + work[second])] * both
        draws += [(share, work[first])] * alone + [(share, work[second])] * alone
    exact = np.cumsum(exact_work(draws)[::-1])[::-1]
    for cycles in range(1, len(exact), 7):
        (bound,) = queue.exceeds(np.array([float(operations)]), np.array([float(cycles)]), 1000)
        assert exact[cycles] <= bound * (1 + 1e-9) + 1e-300


def test_the_bound_is_met_within_a_small_factor():
    """A deadline of three quarters is no longer one: the bound is not idle."""
    queues = record_queues(DEFAULT.record_sizes.traffic)
    assert queues.failure(queues.deadline) < LIFE_FAILURE < queues.failure(queues.deadline - 8)
    assert queues.failure(queues.deadline * 3 // 4) > -10


@pytest.mark.parametrize("touch", ["one", "both"])
@pytest.mark.parametrize("value_bytes", [8, 64, 384])
@pytest.mark.parametrize("log_n", [8, 16, 26])
def test_chosen_deadlines_suffice(touch, value_bytes, log_n):
    config = OramConfig(log_n=log_n, touch=touch, value_bytes=value_bytes, list_slots=14)
    sizes = config.record_sizes
    assert sizes.failure < LIFE_FAILURE
    assert sizes.touch_cycles == sizes.settle_cycles <= 4096
    assert sizes.issued == 256 or sizes.issued * config.interval >= sizes.touch_cycles
    assert sizes.read_lines <= config.issued * config.items + 1


def test_given_sizes_are_kept():
    sizes = OramConfig(touch_cycles=300, settle_cycles=200, inflight=64).record_sizes
    assert (sizes.touch_cycles, sizes.settle_cycles, sizes.issued) == (300, 200, 64)
    assert sizes.failure > LIFE_FAILURE


def test_a_probability_of_all_records_is_in_the_banks():
    """The fullest bank of the bound has at least the share of labels that any bank has."""
    for config in (DEFAULT, OramConfig(log_n=12), OramConfig(log_n=16, alpha=0.5, bin_split=2)):
        headers: dict[tuple[int, int], float] = {}
        for record in range(config.records):
            bank = bank_of(record, ports=config.record_ports, record_bytes=config.record_bytes)
            in_host = record < config.host_pages
            headers[bank] = headers.get(bank, 0) + 1 / (1 if in_host else config.bin_split)
        pair, head = record_queues(config.record_sizes.traffic).shares
        assert max(headers.values()) / config.labels <= head
        pairs: dict[tuple[int, int], float] = {}
        for (port, bank), weight in headers.items():
            pairs[port, bank // 2] = pairs.get((port, bank // 2), 0) + weight
        assert max(pairs.values()) / config.labels <= pair


def drawn(config, rng, count, gap):
    """Return operations with keys that are used again after ``gap`` operations."""
    fresh = [rng.randrange(config.records) for _ in range(count)]
    first = [rng.randrange(config.records) for _ in range(gap)]
    return [Operation(touched=touched, fresh=new) for touched, new in zip(first + fresh, fresh, strict=False)]


def fullest_window(config, window, gap, seed):
    """Return the longest read and write when the bank gets as many draws as the bound allows."""
    rng, sizes = random.Random(seed), config.record_sizes
    apart = -(-(sizes.touch_cycles + 60) // config.interval)
    draws = record_queues(sizes.traffic).hot_draws(window, apart) // 2
    begin = 300 + rng.randrange(293)  # at any time between refreshes
    hot = same_bank(config, 2 * draws)
    rng.shuffle(hot)
    operations = drawn(config, rng, 600 + window + apart, gap)
    for first, records in ((begin, hot[:draws]), (begin + apart, hot[draws:])):
        places = rng.sample(range(max(1, window - gap)), min(draws, window - gap))
        for place, record in zip(places, records, strict=False):
            at = first + place
            operations[at] = replace(operations[at], fresh=record)
            operations[at + gap] = replace(operations[at + gap], touched=record)
    return longest_waits(config, operations, [config.interval * n for n in range(len(operations))])


@pytest.mark.parametrize(("window", "gap"), [(30, 5), (58, 20)])
def test_as_many_in_a_bank_as_may_be(window, gap):
    """The reads and the writes of the fullest bank that the bound allows, between random ones."""
    waits = fullest_window(DEFAULT, window, gap, window)
    assert waits[0] <= DEFAULT.record_sizes.touch_cycles
    assert waits[1] <= DEFAULT.record_sizes.settle_cycles


@pytest.mark.soak
def test_the_longest_wait_of_many_windows():
    """The figures of docs/oram.md."""
    waits = [
        fullest_window(DEFAULT, window, gap, seed)
        for window, gap in ((30, 5), (58, 20), (100, 30), (200, 60))
        for seed in range(20)
    ]
    assert tuple(map(max, zip(*waits, strict=True))) == (815, 30)


@pytest.mark.sample(1)
@pytest.mark.parametrize("attack", ["one", "loop", "pages", "bursts"])
def test_attacks_meet_the_deadlines(attack):
    """A hot key; 60 of them in turn; pages in order, as by LOADs; bursts after pauses."""
    rng, sizes, interval = random.Random(attack), DEFAULT.record_sizes, DEFAULT.interval
    operations = drawn(DEFAULT, rng, 800, {"one": 1, "loop": 60}.get(attack, 7))
    starts = [interval * n for n in range(len(operations))]
    if attack == "pages":
        operations = [replace(each, touched=n % DEFAULT.host_pages) for n, each in enumerate(operations)]
    if attack == "bursts":
        starts = [start + 2000 * (n // 100) for n, start in enumerate(starts)]
    waits = longest_waits(DEFAULT, operations, starts)
    assert waits[0] <= sizes.touch_cycles
    assert waits[1] <= sizes.settle_cycles


def test_the_page_has_the_bounds():
    page = Path(__file__).parents[4] / "docs" / "oram.md"
    section = page.read_text().partition("## Records in HBM")[2].partition("## ")[0]
    rows = re.findall(r"^\| 2\^(\d+) \| (\d+) \| (\d+) \| (.*) \|$", section, re.MULTILINE)
    assert len(rows) >= 4
    for log_n, value_bytes, ports, row in rows:
        interval, *told = [float(cell.replace(",", "")) for cell in row.split("|")]
        config = OramConfig(log_n=int(log_n), value_bytes=int(value_bytes), record_ports=int(ports))
        sizes = config.record_sizes
        assert config.interval == interval
        assert told == [sizes.touch_cycles, sizes.issued, config.window, round(sizes.failure, 1)]
