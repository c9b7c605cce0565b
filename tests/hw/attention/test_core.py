# amaranth: UnusedElaboratable=no
"""The core at a small size: every bit of its results, and exactly the cycles that the schedule says."""

import itertools

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.core import AttentionCore
from hw.attention.cycles import core_cycles
from hw.errors import InputError
from hw.lib.place import InlinePlacer
from tests.hw.attention.jobs import SMALL, TileJob, int8, random_tile, run_core
from tests.support.streams import STALLS, seeds

STREAMS = ("command", "query", "key", "value", "output")


def cycles_of(jobs):
    return [(len(job.q), len(job.k)) for job in jobs]


@pytest.mark.parametrize("seed", seeds(2, 200))
def test_random_tiles_exact_to_the_bit_and_the_cycle(seed):
    rng = np.random.default_rng(seed)
    jobs = [random_tile(rng, SMALL) for _ in range(8)]
    sides = run_core(SMALL, jobs, seed=seed)
    assert sides["output"].cycles[-1] + 1 == core_cycles(SMALL, cycles_of(jobs))


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("stall", [0.3, pytest.param(0.7, marks=pytest.mark.soak), 0.95])
def test_backpressure_on_each_stream(stream, stall):
    rng = np.random.default_rng(7)
    jobs = [random_tile(rng, SMALL, keys=keys) for keys in (16, 33, 1)]
    run_core(SMALL, jobs, stalls={stream: stall})


@pytest.mark.parametrize("stall", STALLS[1:])
@pytest.mark.parametrize("seed", seeds(1, 100))
def test_backpressure_on_all_streams(stall, seed):
    rng = np.random.default_rng(seed)
    jobs = [random_tile(rng, SMALL) for _ in range(5)]
    run_core(SMALL, jobs, stalls=dict.fromkeys(STREAMS, stall), seed=seed)


@pytest.mark.parametrize(
    "config",
    [
        AttentionConfig(rows=1, head_dim=32, tile_keys=32, ports_per_stream=1, merge_lanes=1),
        AttentionConfig(rows=3, head_dim=32, tile_keys=16, ports_per_stream=1, merge_lanes=4),
        AttentionConfig(rows=2, head_dim=64, tile_keys=128, merge_lanes=8),
        AttentionConfig(rows=2, head_dim=64, tile_keys=16, merge_lanes=4),
    ],
    ids=str,
)
def test_other_shapes(config):
    rng = np.random.default_rng(1)
    jobs = [random_tile(rng, config, keys=keys) for keys in (config.tile_keys + 5, 3, 2 * config.tile_keys)]
    sides = run_core(config, jobs, beat_width=128)
    assert sides["output"].cycles[-1] + 1 == core_cycles(config, cycles_of(jobs), beat_width=128)


@pytest.mark.parametrize("beat_width", [32, 128, 512])
def test_beat_widths(beat_width):
    rng = np.random.default_rng(beat_width)
    run_core(SMALL, [random_tile(rng, SMALL, rows=3, keys=5) for _ in range(3)], beat_width=beat_width)


def test_dense_streams_have_no_bubble():
    """Whole tiles, query tiles and heads back to back: a key is taken in every cycle."""
    rng = np.random.default_rng(2)
    jobs = [random_tile(rng, SMALL, rows=4, keys=48) for _ in range(6)]
    taken = []

    def watch(core):
        async def note_keys(ctx):
            cycle = 0
            while True:
                _, _, busy = await ctx.tick().sample(core.activity.busy)
                if busy:
                    taken.append(cycle)
                cycle += 1

        return note_keys

    run_core(SMALL, jobs, watch=watch)
    assert len(taken) == 6 * 48
    assert taken[-1] - taken[0] == 6 * 48 - 1


def rising(config, keys, *, step):
    """Logits that rise by ``step`` whole units of log2 from tile to tile: the maximum rises every time."""
    q = np.zeros((config.rows, config.head_dim), np.int8)
    q[:, 0] = 1
    k = np.zeros((keys, config.head_dim), np.int8)
    k[:, 0] = -128 + step * (np.arange(keys) // config.tile_keys)
    v = int8(np.random.default_rng(0), keys, config.head_dim)
    return TileJob(q=q, k=k, v=v, multiplier=2**12, shift=1, fraction=7)


@pytest.mark.parametrize("step", [1, 40])
def test_rising_maxima_cost_no_cycle(step):
    job = rising(SMALL, 96, step=step)
    flat = TileJob(**{**job.__dict__, "k": np.zeros_like(job.k)})
    cycles = [run_core(SMALL, [j])["output"].cycles[-1] for j in (job, flat)]
    assert cycles[0] == cycles[1]


def test_extreme_products_and_scales():
    shape = (18, SMALL.head_dim)
    scales = [(1, 47), (2**17 - 1, 1), (2**17 - 1, 17)]
    jobs = [
        TileJob(
            q=np.full((4, SMALL.head_dim), q, np.int8),
            k=np.full(shape, k, np.int8),
            v=np.full(shape, -128, np.int8),
            multiplier=multiplier,
            shift=shift,
            fraction=15,
        )
        for q, k, (multiplier, shift) in itertools.product((-128, 127), (-128, 127), scales)
    ]
    for job in jobs:
        job.k[::3] = 0
    run_core(SMALL, jobs)


def test_beat_width_is_checked():
    with pytest.raises(InputError, match=r"^beat_width must be a power of two from 32 to 512, not 1024$"):
        AttentionCore(SMALL, InlinePlacer(), beat_width=1024)
