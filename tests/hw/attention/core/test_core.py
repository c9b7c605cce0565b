# amaranth: UnusedElaboratable=no
"""The core at small sizes: every bit of its results, and exactly the cycles that the schedule says."""

import itertools

import numpy as np
import pytest

from hw.attention.core.core import AttentionCore
from hw.errors import InputError
from hw.lib.place import InlinePlacer
from tests.hw.attention.core.feeds import BarePlacer, CoreJob, run_core, shapes, taken_parts
from tests.hw.attention.plain import PlainJob, random_job, small
from tests.support.attention.cycles import core_cycles
from tests.support.gateware.streams import seeds

INPUTS = ("command", "row", "query", "empty", "tile", "key", "value")


def random_config(rng, **fixed):
    """Any mode and format, at a size that simulates in a second."""
    fields = {
        "rows": int(rng.integers(2, 5)),
        "lanes": 16,
        "tile_keys": 16,
        "folds": int(rng.integers(1, 3)),
        "streams": int(rng.integers(1, 3)),
        "merge_lanes": 2,
        "probability_bits": int(rng.choice([8, 12, 16, 20])),
        "exp_segments": int(rng.choice([8, 16, 32])),
        "output": str(rng.choice(["int8", "int16", "bfloat16"])),
        "logit_cap": bool(rng.random() < 0.4),
        "alibi": bool(rng.random() < 0.4),
    }
    return small(**fields | fixed)


def random_jobs(rng, config, count, *, most_keys=60):
    """Jobs whose logits are neither all equal nor all far apart, as a rule."""
    jobs = []
    for _ in range(count):
        job = random_job(rng, config, most_keys=most_keys, most_queries=2 * config.rows)
        job.heads = job.kv_group
        if rng.random() < 0.8:
            job.multiplier, job.shift = int(rng.integers(2**16, 2**17)), int(rng.integers(16, 23))
        if job.slope is not None:
            job.slope = [slope >> int(rng.integers(0, 12)) for slope in job.slope[: job.heads]]
        jobs.append(CoreJob.random(rng, job, spread=int(rng.choice([8, 128]))))
    return jobs


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_random_jobs_exact_to_the_bit_and_the_cycle(seed):
    rng = np.random.default_rng(seed)
    config = random_config(rng)
    jobs = random_jobs(rng, config, 4)
    sides = run_core(config, jobs, seed=seed)
    assert sides["output"].cycles[-1] + 1 == core_cycles(config, shapes(config, jobs), beat_width=128)


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_random_jobs_with_gaps_on_every_stream(seed):
    rng = np.random.default_rng(1000 + seed)
    config = random_config(rng, streams=1 + seed % 2)
    stalls = {name: float(rng.choice([0, 0.1, 0.4, 0.8])) for name in (*INPUTS, "output")}
    run_core(config, random_jobs(rng, config, 3, most_keys=40), stalls=stalls, seed=seed)


@pytest.mark.sample(2)
@pytest.mark.parametrize("stream", [*INPUTS, "output"])
@pytest.mark.parametrize("streams", [1, pytest.param(2, marks=pytest.mark.soak)])
@pytest.mark.parametrize("stall", [0.9, pytest.param(0.5, marks=pytest.mark.soak)])
def test_one_slow_stream_holds_back_all(stream, streams, stall):
    config = small(rows=2, lanes=16, tile_keys=16, folds=1, streams=streams)
    rng = np.random.default_rng(7)
    jobs = [
        CoreJob.random(rng, PlainJob(queries=3, keys=keys, dqk=16, dv=16, shift=18)) for keys in (16, 33, 1)
    ]
    run_core(config, jobs, stalls={stream: stall})


@pytest.mark.parametrize(
    "config",
    [
        small(rows=1, lanes=32, tile_keys=32, merge_lanes=1, folds=1),
        pytest.param(small(rows=2, lanes=48, tile_keys=16, folds=2), marks=pytest.mark.soak),
        pytest.param(small(rows=2, lanes=16, tile_keys=128, folds=4, cached_keys=0), marks=pytest.mark.soak),
        pytest.param(small(rows=2, lanes=16, tile_keys=16, folds=1, streams=8), marks=pytest.mark.soak),
    ],
    ids=str,
)
def test_other_shapes(config):
    rng = np.random.default_rng(1)
    jobs = random_jobs(rng, config, 3, most_keys=2 * config.tile_keys * config.streams)
    sides = run_core(config, jobs)
    assert sides["output"].cycles[-1] + 1 == core_cycles(config, shapes(config, jobs), beat_width=128)


@pytest.mark.parametrize("beat_width", [32, 512])
def test_beat_widths(beat_width):
    config = small(rows=2, lanes=16, tile_keys=16, folds=2)
    rng = np.random.default_rng(beat_width)
    jobs = [CoreJob.random(rng, PlainJob(queries=2, keys=5, dqk=16, dv=dv, shift=18)) for dv in (32, 16, 32)]
    sides = run_core(config, jobs, beat_width=beat_width)
    law = core_cycles(config, shapes(config, jobs), beat_width=beat_width)
    assert sides["output"].cycles[-1] + 1 == law


def run_bare(config, jobs, *, beat_width=256):
    """Run the control alone; gives the cycles of the output, and those in which each stream took a key."""
    taken = []
    watch = [taken_parts(taken, s) for s in range(config.streams)]
    sides = run_core(
        config, jobs, placer=BarePlacer, watch=watch, beat_width=beat_width, limit=200_000, check=False
    )
    return sides["output"].cycles, taken


@pytest.mark.parametrize("seed", seeds(3, 40))
def test_cycles_of_many_jobs(seed):
    """What rows compute changes no cycle, so that the control alone shows every one."""
    rng = np.random.default_rng(2000 + seed)
    config = random_config(
        rng,
        cached_keys=0,
        rows=int(rng.integers(1, 6)),
        lanes=int(rng.choice([16, 32])),
        tile_keys=int(rng.choice([16, 32, 64])),
        folds=int(rng.integers(1, 4)),
        streams=int(rng.choice([1, 2, 4])),
    )
    jobs = random_jobs(rng, config, 3, most_keys=2 * config.tile_keys * config.streams)
    cycles, _ = run_bare(config, jobs)
    assert cycles[-1] + 1 == core_cycles(config, shapes(config, jobs))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("config", "sizes"),
    [
        (small(rows=4, lanes=32, tile_keys=16, folds=1), (32, 32)),
        (small(rows=4, lanes=32, tile_keys=32, folds=2), (64, 48)),
        (small(rows=3, lanes=16, tile_keys=16, folds=2, streams=2), (32, 32)),
        (small(rows=3, lanes=16, tile_keys=16, folds=1, logit_cap=True, alibi=True), (16, 16)),
    ],
    ids=str,
)
def test_no_cycle_between_tiles_passes_and_jobs(config, sizes):
    """Every stream takes a part in every cycle, from its first to its last."""
    rng = np.random.default_rng(2)
    dqk, dv = sizes
    whole = 3 * config.tile_keys * config.streams
    jobs = [
        CoreJob.random(rng, PlainJob(queries=queries, keys=whole, dqk=dqk, dv=dv))
        for queries in (config.rows, 2 * config.rows, 1)
    ]
    jobs[-1].job.causal = True
    _, taken = run_bare(config, jobs)
    parts = whole // config.streams * -(-dqk // config.lanes) * (1 + 2 + 1)
    for cycles in taken:
        assert len(cycles) == parts
        assert cycles[-1] - cycles[0] == parts - 1


def test_no_cycle_behind_short_tiles():
    """The last tile of a pass may have as few keys as a merge has steps, and costs no more than these."""
    config = small(rows=3, lanes=32, tile_keys=32, folds=1, merge_lanes=4)
    rng = np.random.default_rng(3)
    lengths = (40, 72, 104, 33 + 8)
    jobs = [CoreJob.random(rng, PlainJob(queries=3, keys=keys, heads=2, dqk=32, dv=32)) for keys in lengths]
    _, (cycles,) = run_bare(config, jobs)
    assert len(cycles) == 2 * sum(lengths)
    assert cycles[-1] - cycles[0] == len(cycles) - 1


def rising(config, keys, *, step):
    """Logits that rise by ``step`` whole units of log2 from tile to tile: the maximum rises every time."""
    job = PlainJob(
        queries=config.rows, keys=keys, dqk=16, dv=16, multiplier=2**12, shift=1, scale={"fraction": 7}
    )
    given = CoreJob.random(np.random.default_rng(0), job)
    given.q[:] = 0
    given.q[..., 0] = 1
    given.k[:] = 0
    given.k[..., 0] = -128 + step * (np.arange(keys) // config.tile_keys)
    return given


@pytest.mark.parametrize(("step", "streams"), [(1, 1), (40, 2)])
def test_rising_maxima_cost_no_cycle(step, streams):
    config = small(rows=2, lanes=16, tile_keys=16, folds=1, streams=streams)
    job = rising(config, 96, step=step)
    flat = CoreJob(job=job.job, q=job.q, k=np.zeros_like(job.k), v=job.v)
    cycles = [run_core(config, [j])["output"].cycles[-1] for j in (job, flat)]
    assert cycles[0] == cycles[1]


def test_extreme_products_and_scales():
    config = small(rows=3, lanes=16, tile_keys=16, folds=2)
    scales = [(1, 47), (2**17 - 1, 1), (2**17 - 1, 17)]
    jobs = []
    for q, k, (multiplier, shift) in itertools.product((-128, 127), (-128, 127), scales):
        job = PlainJob(
            queries=3, keys=18, dqk=32, dv=32, multiplier=multiplier, shift=shift, scale={"fraction": 15}
        )
        tensors = {"q": (1, 3, 32), "k": (1, 18, 32), "v": (1, 18, 32)}
        values = {"q": q, "k": k, "v": -128}
        full = {name: np.full(shape, values[name], np.int8) for name, shape in tensors.items()}
        full["k"][:, ::3] = 0
        jobs.append(CoreJob(job=job, **full))
    run_core(config, jobs)


def test_activity_says_why_no_part_is_taken():
    config = small(rows=3, lanes=16, tile_keys=16, folds=1)
    rng = np.random.default_rng(5)

    def counts(stream, keys, heads=2):
        seen = dict.fromkeys(("busy", "query", "key", "value", "output"), 0)

        def watch(core):
            async def note(ctx):
                while True:
                    _, _, activity = await ctx.tick().sample(core.activity)
                    bits = [name for name in seen if activity[name]]
                    assert len(bits) <= 1
                    for name in bits:
                        seen[name] += 1

            return note

        jobs = [CoreJob.random(rng, PlainJob(queries=6, keys=keys, heads=heads, dqk=16, dv=16))]
        run_core(config, jobs, placer=BarePlacer, stalls={stream: 0.9}, watch=[watch], check=False)
        return seen

    for stream, cause, keys in (
        ("query", "query", 20),
        ("command", "query", 20),
        ("key", "key", 20),
        ("tile", "key", 20),
        ("value", "value", 90),
    ):
        seen = counts(stream, keys)
        assert seen["busy"] == 4 * keys
        others = sum(seen.values()) - seen["busy"]
        assert seen[cause] > 0.5 * others or stream == "command"
        assert seen[cause] > 0
    assert counts("output", 20, heads=8)["output"] > 50


def test_beat_width_is_checked():
    config = small(rows=2, lanes=32)
    with pytest.raises(InputError, match=r"^beat_width must be a power of two of at least 64, not 48$"):
        AttentionCore(config, InlinePlacer(), beat_width=48)
