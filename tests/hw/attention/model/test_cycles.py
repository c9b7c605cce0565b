"""The cycle model of the core: passes by arithmetic, the jump over repeated tiles, its laws, slow streams."""

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.core.drain import Drain
from hw.attention.core.timing import CoreTiming
from hw.attention.driver.shapes import PassShape
from hw.attention.model import cycles
from hw.attention.model.supply import Supply
from tests.hw.attention.core.feeds import CoreJob, shapes
from tests.hw.attention.plain import random_job, shape_of, small
from tests.support.attention.cycles import core_cycles, pass_shapes


@pytest.mark.parametrize("seed", range(40))
def test_passes_by_arithmetic_and_by_loops(seed):
    rng = np.random.default_rng(seed)
    config = small(rows=int(rng.integers(1, 6)), lanes=16, streams=int(rng.choice([1, 2, 4])))
    job = random_job(rng, config, most_keys=100)
    given = [this.shape for this in shape_of(job).passes(config)]
    assert given == shapes(config, [CoreJob.random(rng, job)])


def test_nothing_to_do_has_no_passes():
    for nothing in ("queries", "keys", "heads"):
        numbers = {"queries": 3, "keys": 4, "heads": 1} | {nothing: 0}
        assert not list(pass_shapes(AttentionConfig(), **numbers))


@pytest.mark.parametrize("seed", range(20))
def test_jumping_over_tiles_changes_nothing(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    config = small(folds=3, streams=int(rng.choice([1, 2, 4])))
    passes = [
        PassShape(
            rows=int(rng.integers(1, 5)),
            keys=tuple(int(keys) for keys in rng.integers(1, 900, config.streams)),
            leads=tuple(int(lead) for lead in rng.integers(0, config.tile_keys, config.streams)),
            key_parts=int(rng.integers(1, 4)),
            value_parts=(parts := int(rng.integers(1, 4))),
            value_units=2 * parts,
        )
        for _ in range(6)
    ]
    quick = core_cycles(config, passes)
    monkeypatch.setattr(cycles.StreamSchedule, "_skip", lambda *_: 0)
    assert core_cycles(config, passes) == quick


@pytest.mark.parametrize("changes", [{}, {"streams": 4}, {"output": "int8"}, {"output": "bfloat16"}], ids=str)
def test_dense_law(changes):
    """Whole query tiles: a key a cycle, and what the first and the last tile take once."""
    config = AttentionConfig(**changes)
    timing = CoreTiming(config)
    for heads, tokens in ((1, 1024), (12, 1024), (12, 512)):
        count = core_cycles(config, pass_shapes(config, queries=tokens, keys=tokens, heads=heads))
        once = count - heads * tokens * tokens // config.rows // config.streams
        # Load R queries; last key to its logit; last tile to its sums; to results of D lanes; R rows out.
        tail = timing.final + timing.drained - (config.folds - 1) * config.part_steps
        beats = config.rows * config.lanes * config.result_bits // 256
        assert once == config.rows + timing.ready + config.tile_keys + tail + beats + Drain.LATENCY
    if not changes:
        assert once == 301


@pytest.mark.parametrize("output", ["int8", "int16", "bfloat16"])
@pytest.mark.parametrize("tile_keys", [32, 64])
@pytest.mark.parametrize("merge_lanes", [2, 4, 8])
def test_latency_of_a_small_array(output, tile_keys, merge_lanes):
    """256 keys and queries of 64 elements on 1,024 multipliers: 8,192 cycles, and little more."""
    config = AttentionConfig(rows=8, tile_keys=tile_keys, merge_lanes=merge_lanes, output=output)
    count = core_cycles(config, pass_shapes(config, queries=256, keys=256))
    first_score = config.rows + 1 + CoreTiming(config).scale
    assert 8192 < count - first_score <= 8360


def test_causal_jobs_lose_only_what_the_diagonal_and_the_results_take():
    """Passes of 32, 64 and 96 keys take as long as the 128 beats of results of a pass before them."""
    config = AttentionConfig()
    count = core_cycles(config, pass_shapes(config, queries=1024, keys=1024, heads=12, causal=True))
    whole_blocks = 12 * sum(range(32, 1025, 32))
    assert 12 * 1024 * 1025 // 2 / 32 / count > 0.96
    assert 0 < count - whole_blocks < 12 * (96 + 64 + 32) + 293


@pytest.mark.parametrize(("streams", "rows"), [(1, 32), (4, 4), (16, 4)])
def test_decode_keeps_all_streams_busy(streams, rows):
    config = AttentionConfig(rows=rows, streams=streams, folds=1)
    count = core_cycles(config, pass_shapes(config, queries=1, keys=8192, heads=8))
    assert 8 * 8192 / streams / count > (0.98 if streams < 16 else 0.95)


def test_slow_streams_set_the_pace():
    slow = Supply(interval=4.0)
    config = AttentionConfig()
    schedule = cycles.CoreSchedule(config, beat_width=256, queries=Supply(), keys=slow, values=slow)
    for shape in pass_shapes(config, queries=128, keys=1024):
        schedule.add(shape)
    assert 0 < schedule.last_output - 4 * 4096 < 400


def test_streams_that_share_a_schedule_are_scheduled_like_streams_apart(monkeypatch):
    config = AttentionConfig(rows=4, streams=4, tile_keys=16, merge_lanes=4, cached_keys=64)
    jobs = [
        {"queries": queries, "keys": keys, "heads": 3, "causal": causal}
        for queries, keys, causal in ((32, 256, False), (37, 203, True), (5, 131, False), (64, 64, True))
    ]
    together = [core_cycles(config, pass_shapes(config, **job)) for job in jobs]

    def apart(models, inputs, copy):
        models[:] = [copy(model) for model in models]

    monkeypatch.setattr(cycles, "split_shared", apart)
    assert together == [core_cycles(config, pass_shapes(config, **job)) for job in jobs]
