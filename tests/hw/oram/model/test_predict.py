"""Predictions: bytes by count, cycles equal to the recurrences on a host that never queues."""

import time
from dataclasses import replace

import pytest

from hw.board import load_board
from hw.errors import InputError
from hw.oram.config import OramConfig
from hw.oram.driver.workload import OramWorkload
from hw.oram.model.launch import launch_times, random_pages
from hw.oram.model.link import Link
from hw.oram.model.predict import finish_cycles, initialization_cycles, predict
from hw.oram.movers.timing import PathTiming
from sim.golden.oram import trace
from tests.support.oram.hosts import SteadyHost

BOARD = load_board("u55c")
SMALL = OramConfig(
    log_n=8, inflight=32, position_cycles=64, touch_cycles=96, settle_cycles=64, position_ports=2
)
CONFIGS = [
    SMALL,
    replace(SMALL, log_n=16, touch="both", value_bytes=64),
    replace(SMALL, log_n=12, pad="always", aes_lanes=1),
    replace(SMALL, log_n=12, value_bytes=384, alpha=0.5),
]


def quick_host(board):
    """A board whose host has unlimited rate and bursts."""
    timing = replace(
        board.host.timing,
        bytes_per_second=1e15,
        large_bytes_per_second=1e15,
        large_shared_bytes_per_second=1e15,
        read_bursts=10**6,
        write_bursts=10**6,
        read_in_flight_bytes=10**9,
    )
    return replace(board, memories=(board.memory, replace(board.host, timing=timing)))


@pytest.mark.parametrize("config", CONFIGS, ids=["same", "both", "always", "large"])
def test_cycles_are_those_of_the_gates(config):
    board, timing, operations = quick_host(BOARD), PathTiming(config), 600
    pages = random_pages(config, operations)
    touched = [pages[n : n + config.items] for n in range(0, len(pages), config.items)]
    host = SteadyHost(read_latency=round(0.45 * board.clock_mhz), write_latency=round(0.75 * board.clock_mhz))
    golden = trace.simulate(
        config,
        trace.Latencies(
            touches=timing.touches,
            seal=timing.page_sealed,
            response=timing.response_sealed,
        ),
        trace.BusLaunch(pages=0, commands=1 << 30, responses=1 << 31, slots=1024),
        host,
        touched,
    )
    _, found = launch_times(config, Link(board, used_bytes=0), pages)
    expected = golden.times.response_written[-1]
    assert found.total == pytest.approx(expected + timing.quiet + timing.end, rel=0.01)


@pytest.mark.parametrize("config", CONFIGS, ids=["same", "both", "always", "large"])
def test_bytes(config):
    operations = 300
    pages = random_pages(config, operations)
    first = OramWorkload(operations=operations, pages=tuple(pages))
    for workload in (first, replace(first, initialize=False)):
        found = predict(workload, config, BOARD)
        touched = (len(pages) - pages.count(None)) * config.page_bytes
        empty = config.host_pages * config.page_bytes if workload.initialize else 0
        records = operations * config.command_bytes
        assert found.read_bytes == {"pages": touched, "commands": records}
        assert found.write_bytes == {"pages": touched + empty, "responses": records}
        assert found.cycles_total >= found.bound_cycles
    before = predict(first, config, BOARD).cycles_total - found.cycles_total
    assert before == round(initialization_cycles(config, Link(BOARD, used_bytes=0)))
    finished = predict(replace(first, finish=True), config, BOARD)
    assert finished.cycles_total - before - found.cycles_total == finish_cycles(config)
    end = PathTiming(config).end
    assert (found.details["initialization_cycles"], found.details["end_cycles"]) == (0, end)
    assert finished.details["initialization_cycles"] == before
    assert finished.details["end_cycles"] == end + finish_cycles(config)
    for each in (found, finished):
        parts = each.details["initialization_cycles"] + each.details["end_cycles"]
        operating = operations * each.details["operating_cycles_per_operation"]
        assert operating == pytest.approx(each.cycles_total - parts, rel=1e-12)


def test_pages_that_are_not_known_are_as_likely_as_labels():
    config = OramConfig(log_n=14)
    pages = random_pages(config, 20_000)
    share = 1 - pages.count(None) / len(pages)
    assert share == pytest.approx(config.host_pages / config.labels, abs=0.015)
    assert max(page for page in pages if page is not None) < config.host_pages
    found = predict(OramWorkload(operations=20_000), config, BOARD)
    expected = 20_000 * config.host_pages / config.labels * config.page_bytes
    assert found.read_bytes["pages"] == pytest.approx(expected, abs=config.page_bytes)
    given = predict(OramWorkload(operations=20_000, pages=tuple(pages)), config, BOARD)
    assert given.cycles_total == pytest.approx(found.cycles_total, rel=0.03)  # the deviation of 4,096
    always = replace(config, pad="always", touch="both")
    assert sum(page is not None for page in random_pages(always, 100)) == 200


def test_many_operations_go_on_as_the_first():
    config, operations = OramConfig(log_n=22), 20_000
    started = time.process_time()
    found = predict(OramWorkload(operations=operations, initialize=False), config, BOARD)
    assert time.process_time() - started < 1  # some 0.06 s
    pages = tuple(random_pages(config, operations))
    started = time.process_time()
    known = predict(OramWorkload(operations=operations, initialize=False, pages=pages), config, BOARD)
    assert time.process_time() - started < 2  # some 13 us an operation
    assert found.cycles_total == pytest.approx(known.cycles_total, rel=0.05)


def test_wrong_workloads():
    for given, message in (
        ({"operations": 0}, "operations must be at least 1"),
        ({"operations": 1, "ring_slots": 0}, "ring_slots must be at least 1"),
        ({"operations": 2, "pages": (1, None, 2)}, "touches of pages must be as many for each of 2"),
    ):
        with pytest.raises(InputError, match=message):
            OramWorkload(**given)
    with pytest.raises(InputError, match="touches of pages must be 2 for each of 1 operations"):
        predict(OramWorkload(operations=1, pages=(1,)), CONFIGS[1], BOARD)
    with pytest.raises(InputError, match="access to the host's memory"):
        predict(OramWorkload(operations=1), SMALL, load_board("zcu104"))
