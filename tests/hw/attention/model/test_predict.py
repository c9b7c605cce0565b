"""Predicted cycles of launches: sources that run ahead, caches, ports, channels."""

import dataclasses

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.driver.shapes import JobShape
from hw.attention.driver.workload import AttentionWorkload, bitmap_text
from hw.attention.engine import AttentionEngine
from hw.attention.model import cycles
from hw.attention.model.issue import IssueSchedule
from hw.attention.model.refresh import Refreshes
from hw.attention.model.supply import Supply, SupplySchedule
from hw.attention.movers.timing import MoverTiming
from hw.board import load_board
from tests.support.attention.cycles import core_cycles, pass_shapes

BOARD = load_board("u55c")


def predict(config, board=BOARD, **launch):
    """Predict a launch of heads of 64 elements; one number of tokens stands for one sequence."""
    sizes = {"heads": 1, "query_size": 64, "value_size": 64}
    tokens = {name: (launch[name],) for name in ("queries", "keys") if isinstance(launch[name], int)}
    return AttentionEngine().predict(AttentionWorkload(**sizes | launch | tokens), config, board)


def test_items_come_at_the_pace_of_memory():
    source = SupplySchedule(Supply(latency=10, interval=2.5))
    assert source.ask(0) is None
    assert source.ask(1) == (10, 10)
    assert source.ask(4) == (13, 20)
    assert source.ask(2, earliest=50) == (60, 63)
    assert source.count == 7


def test_memory_runs_ahead_as_far_as_there_is_room():
    source = SupplySchedule(Supply(depth=8))
    for n in range(4):
        # Run n fills places of run n - 2, which the core took at 100 (n - 1), and comes behind run n - 1.
        first, last = source.ask(4)
        assert first == max(0, 4 * n, 100 * (n - 1) - 3)
        assert last == (100 * n + 4 if n else 3)
        source.take(100 * (n + 1))


@pytest.mark.parametrize("depth", [float("inf"), 100, 16])
def test_a_jump_over_items_is_as_good_as_asking_for_them(depth):
    supply = Supply(latency=3, interval=0.75, depth=depth)
    stepped, jumped = SupplySchedule(supply), SupplySchedule(supply)
    for n in range(40):
        for source in (stepped, jumped):
            if source is stepped or n < 10 or n >= 30:
                source.ask(8)
                source.take(20 + 10 * n)
        if n == 29:
            jumped.skip(8 * 20, 10 * 20)
        last = [source.ask(0) for source in (stepped, jumped)]
        assert last == [None, None]
    assert stepped.count == jumped.count
    assert stepped.ask(8) == jumped.ask(8)


def test_a_dense_launch_is_the_core_and_the_ways_to_memory_and_back():
    config = AttentionConfig()
    constant = set()
    for heads, tokens in ((1, 1024), (12, 512), (3, 256)):
        core = core_cycles(config, pass_shapes(config, queries=tokens, keys=tokens, heads=heads))
        constant.add(predict(config, queries=tokens, keys=tokens, heads=heads).cycles_total - core)
    assert len(constant) == 1
    assert 100 < constant.pop() < 200


def test_prediction_grows_with_every_size():
    config = AttentionConfig()
    base = {"queries": 40, "keys": 100, "heads": 2}
    figure = predict(config, **base).cycles_total
    for name in base:
        assert predict(config, **base | {name: 3 * base[name]}).cycles_total > figure


def test_longest_job_is_predicted_in_a_moment():
    """65,536 queries and keys: tiles are jumped over, passes are not."""
    config = AttentionConfig()
    figure = predict(config, queries=65536, keys=65536, heads=1).cycles_total
    assert 0 < figure - 2048 * 65536 < 1000


@pytest.mark.parametrize("seed", range(10))
def test_jumping_over_tiles_hardly_changes_a_prediction(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    config = AttentionConfig(
        rows=4,
        streams=int(rng.choice([1, 2])),
        ports_per_stream=int(rng.choice([1, 2])),
        cached_keys=int(rng.choice([0, 512, 4096])),
    )
    launch = {
        "queries": tuple(rng.integers(1, 40, 3).tolist()),
        "keys": tuple(rng.integers(1, 4000, 3).tolist()),
        "heads": int(rng.integers(1, 4)),
        "causal": bool(rng.random() < 0.5),
        "window": int(rng.choice([0, 1000])),
    }
    quick = predict(config, **launch)
    monkeypatch.setattr(cycles.StreamSchedule, "_skip", lambda *_: 0)
    stepped = predict(config, **launch)
    assert abs(stepped.cycles_total - quick.cycles_total) <= 0.01 * quick.cycles_total
    assert stepped.cycles["cycles_busy"] == quick.cycles["cycles_busy"]


def test_caches_spare_a_narrow_port():
    """One port of 32 bytes a cycle for keys of 64: a fetched key takes two cycles, a cached one takes one."""
    job = {"queries": 128, "keys": 1024}
    config = AttentionConfig(ports_per_stream=1, cached_keys=0)
    bare = predict(config, **job).cycles_total
    cached = predict(dataclasses.replace(config, cached_keys=1024), **job).cycles_total
    half = predict(dataclasses.replace(config, cached_keys=512), **job).cycles_total
    assert 0 < bare - 4 * 2048 < 520
    assert 0 < cached - (2048 + 3 * 1024) < 520
    assert cached < half < bare


def test_channels_limit_wide_ports():
    """16 streams of 128 bytes a cycle are more than the memory has: it sets the pace."""
    config = AttentionConfig(rows=4, folds=1, streams=16, ports_per_stream=1, port_bits=512, cached_keys=0)
    figure = predict(config, queries=1, keys=8192, heads=8).cycles_total
    realistic = BOARD.memory.realistic_bytes_per_second / (BOARD.clock_mhz * 1e6)
    assert 0.9 < 8 * 8192 * 128 / realistic / figure < 1


def test_hidden_tiles_take_no_cycles():
    config = AttentionConfig()
    whole = predict(config, queries=256, keys=1024).cycles_total
    bits = np.ones((8, 16), bool)
    bits[:, ::2] = False
    half = predict(config, queries=256, keys=1024, bitmaps=((bitmap_text(bits),),)).cycles_total
    assert abs(whole - half - 8 * 512) < 50


@pytest.mark.parametrize("cached", [0, 1024])
@pytest.mark.parametrize("streams", [1, 4])
def test_a_window_takes_cycles_and_bytes_of_its_own_keys_only(streams, cached):
    config = AttentionConfig(rows=4, streams=streams, cached_keys=cached)
    window = {"heads": 2, "queries": 4, "causal": True, "window": 997}
    found = predict(config, keys=1900, **window)
    assert found.compulsory_bytes == found.moved_bytes
    # Four queries see a key more each: 1,000, of which every stream has as many.
    assert found.cycles["cycles_busy"] == 2 * 1000 // streams


def test_short_passes_take_the_cycles_in_which_their_queries_are_loaded():
    """16 queries are loaded in 16 cycles."""
    config = AttentionEngine().default_config(BOARD)
    short, long = (predict(config, queries=16 * passes, keys=2).cycles_total for passes in (100, 200))
    assert long - short == 100 * 16


def test_packed_heads_that_share_a_bank_of_memory_take_longer():
    """Eight heads: 16 KiB apart at a port, which is one bank, and 18 KiB, each in the next one."""
    config = AttentionEngine().default_config(BOARD)
    launch = {"keys": 2, "heads": 8, "kv_heads": 1, "pack": 8, "query_size": 128, "value_size": 16}
    shared, apart = (predict(config, queries=count, **launch).cycles_total for count in (512, 576))
    assert apart / 288 < 33
    assert shared / 256 > 40


def test_jobs_wait_for_descriptors_and_these_for_refreshes():
    """Four descriptors are read at a time, which takes 60 cycles, 5 more where a row of memory is opened."""
    config = AttentionEngine().default_config(BOARD)
    width = BOARD.memory.port_data_width
    latency = MoverTiming(config, data_width=width, memory_cycles=BOARD.idle_read_cycles)
    walk = IssueSchedule(config, BOARD, latency, Refreshes(BOARD, start=460))
    job = JobShape(queries=1, keys=1, query_size=64, value_size=64)
    (this,) = job.passes(config)
    known = [walk.add(job, this, []).queries for _ in range(61)]
    assert known[28] - known[20] == 60 + 65
    assert 40 < known[60] - known[4] - 7 * (60 + 65) < 110  # one refresh


@pytest.mark.parametrize("board", ["u55c", "zcu104"])
def test_a_launch_that_sees_no_key_is_short(board):
    config, nothing = AttentionConfig(rows=4), ((("00", "00"),),)
    prediction = predict(config, load_board(board), queries=8, keys=100, bitmaps=nothing)
    assert 50 < prediction.cycles_total < 600
    assert prediction.useful_macs == 0
    assert prediction.compulsory_bytes == prediction.moved_bytes - prediction.read_bytes["tables"]
