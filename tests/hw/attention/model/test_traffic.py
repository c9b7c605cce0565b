"""Bytes by arithmetic against bytes counted tile by tile, and what must be compulsory."""

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.driver.shapes import JobShape
from hw.attention.model.traffic import traffic
from tests.hw.attention.movers.launch import Launch
from tests.hw.attention.plain import random_job, shape_of, small


@pytest.mark.parametrize("seed", range(60))
def test_bytes_of_random_launches(seed):
    rng = np.random.default_rng(seed)
    config = small(
        rows=int(rng.integers(1, 5)),
        lanes=int(rng.choice([16, 32])),
        folds=int(rng.integers(1, 4)),
        streams=int(rng.choice([1, 2, 4])),
        cached_keys=int(rng.choice([0, 32, 64])),
        output=str(rng.choice(["int8", "int16"])),
        alibi=bool(rng.random() < 0.5),
        paged=bool(seed % 2),
    )
    jobs = [random_job(rng, config, most_keys=120, most_queries=12) for _ in range(1 + seed % 3)]
    launch = Launch(config, jobs, seed, 256)
    moved = traffic(config, [shape_of(job) for job in jobs])
    assert moved.read_bytes == sum(launch.read)
    assert moved.write_bytes == sum(len(written) for written in launch.results)


@pytest.mark.sample(10)
@pytest.mark.parametrize("seed", range(60))
def test_bytes_of_windows(seed):
    """What is held of a tile is of use to a window that moved on, unless it went back or left a gap."""
    rng = np.random.default_rng(seed)
    streams = int(rng.choice([1, 2, 4]))
    cached = int(rng.choice([0, 32, 64, 128]))
    config = small(rows=3, lanes=16, folds=2, streams=streams, cached_keys=cached)
    keys = int(rng.integers(1, 6 * config.tile_span))
    shape = {"keys": keys, "dqk": 32, "dv": 16 * int(rng.integers(1, 3)), "windowed": True}
    shape |= {"heads": 2, "kv_group": 2, "pack": 1}
    jobs = []
    for n in range(3):
        mode = {
            "window": int(rng.choice([rng.integers(1, 9), config.tile_span, keys])),
            "causal": bool(rng.random() < 0.8),
            "reuse_kv": n > 0 and bool(rng.random() < 0.7),
        }
        jobs.append(random_job(rng, config, most_queries=60, **shape, **mode))
    launch = Launch(config, jobs, seed, 256)
    assert traffic(config, [shape_of(job) for job in jobs]).read_bytes == sum(launch.read)


def dense(tokens, **more):
    return JobShape(queries=tokens, keys=tokens, heads=3, query_size=64, value_size=64, **more)


@pytest.mark.parametrize("more", [{}, {"causal": True}, {"causal": True, "window": 500}])
def test_what_fits_moves_once(more):
    config = AttentionConfig()
    moved = traffic(config, [dense(1024, **more)])
    assert moved.moved_bytes == 3 * 1024 * 64 * (1 + 2 + 2)
    assert moved.key_bytes == moved.value_bytes == 3 * 1024 * 64


def test_what_does_not_fit_moves_once_a_pass():
    config = AttentionConfig()
    moved = traffic(config, [dense(4096)])
    assert moved.key_bytes == 3 * 64 * (1024 + 128 * 3072)


def test_a_window_longer_than_the_cache_moves_as_it_slides():
    """A ring holds what the next query tile still sees; only the newest keys are fetched."""
    config = AttentionConfig()
    moved = traffic(config, [dense(8192, causal=True, window=512)])
    assert moved.key_bytes == 3 * 8192 * 64
    without = traffic(AttentionConfig(cached_keys=0), [dense(8192, causal=True, window=512)])
    assert without.key_bytes > 15 * moved.key_bytes


@pytest.mark.parametrize(("keys", "entries"), [(256, 4), (257, 8), (65536, 1024)])
def test_entries_of_pages_move_once_a_pass(keys, entries):
    config = AttentionConfig(paged=True)
    job = JobShape(queries=64, keys=keys, heads=3, query_size=64, value_size=64, page_keys=64)
    assert traffic(config, [job]).table_bytes == 3 * 2 * 8 * entries
    # A window of one page, at the end of one.
    late = JobShape(queries=1, keys=keys, query_size=64, value_size=64, page_keys=64, causal=True, window=64)
    assert traffic(config, [late]).table_bytes == 8 * (8 if keys == 257 else 4)


def test_the_longest_job_is_counted_in_a_moment():
    config = AttentionConfig()
    moved = traffic(config, [JobShape(queries=65536, keys=65536, query_size=64, value_size=64)])
    assert moved.key_bytes == 64 * (1024 + 2048 * 64512)
