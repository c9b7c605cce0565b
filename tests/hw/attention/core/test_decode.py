# amaranth: UnusedElaboratable=no
"""Jobs in turn: prefill, where a stream broadcasts its keys, and decoding, where each cell has its own."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.core.command import PART_LATENCY
from hw.attention.core.gathering import Gathering
from hw.attention.core.result.combine import Combine
from hw.attention.core.result.gather import Gather
from hw.attention.core.timing import CoreTiming
from hw.attention.driver.shapes import PassShape
from hw.errors import InputError
from hw.lib.place import InlinePlacer
from tests.hw.attention.core.feeds import CoreJob, beats, built_core, feed, row_settings
from tests.hw.attention.plain import last_part, parts, passes, random_job
from tests.support.attention.cycles import core_cycles
from tests.support.gateware.streams import Side, exchange_within, seeds, simulate

CONFIGS = [
    AttentionConfig(
        rows=4, lanes=16, folds=2, tile_keys=16, streams=2, merge_lanes=2,
        cached_keys=64, decode=True,
    ),
    AttentionConfig(
        rows=4, lanes=16, folds=1, tile_keys=16, streams=2, merge_lanes=1,
        cached_keys=64, decode=True, output="bfloat16", logit_cap=True, alibi=True,
    ),
    AttentionConfig(
        rows=3, lanes=16, folds=1, tile_keys=16, streams=4, merge_lanes=2,
        cached_keys=64, decode=True, output="int8",
    ),
]  # fmt: skip
#: Twice as many cells as the second one; in the soak only.
MANY = replace(CONFIGS[1], rows=8)
BEAT_WIDTH = 128
#: Each configuration with random seeds, of which `make test` has two of the first one and one of the second.
RUNS = pytest.mark.parametrize(
    ("config", "seed"),
    [
        pytest.param(
            config, *seed.values, id=f"{config.streams}x{config.rows}x{config.folds}-{n}", marks=seed.marks
        )
        for config, quick in zip((*CONFIGS, MANY), (2, 1, 0, 0), strict=True)
        for n, seed in enumerate(seeds(quick, 20))
    ],
)


def decoding(config):
    """Return the engine that a job that decodes sees: two rows, and a stream for each cell."""
    return replace(config, rows=2, streams=config.decode_streams, ports_per_stream=1, decode=False)


def lines_of(config, this):
    """Return the rounds of keys, one for each cell, that a pass takes."""
    first, end = this.span
    return range(first // config.decode_streams, max(first, end - 1) // config.decode_streams + 1)


def shapes(config, jobs):
    """Return the passes of jobs that decode as the cycle model takes them."""
    return [
        PassShape(
            rows=len(this.rows),
            keys=(len(lines_of(config, this)),),
            leads=(lines_of(config, this).start % config.tile_keys,),
            key_parts=last_part(config, given.job.dqk) + 1,
            value_parts=last_part(config, given.job.dv) + 1,
            value_units=given.job.dv // 16,
        )
        for given in jobs
        for this in passes(decoding(config), given.job)
    ]


def own_feed(config, jobs, rng):
    """Return the items of the core's streams, and what each cell takes: ``own_key`` and ``own_value``."""
    view, places = decoding(config), config.decode_streams
    items = {name: [] for name in ("command", "row", "query", "empty", "tile_0", "own_key", "own_value")}
    for given in jobs:
        job = given.job
        last = {"last_key_part": last_part(config, job.dqk), "last_value_part": last_part(config, job.dv)}
        for this in passes(view, job):
            items["command"].append(
                {"rows": len(this.rows), "value_units": job.dv // 16, "scale": job.scale} | last
            )
            items["empty"].append(0)
            items["row"] += row_settings(config, this)
            for head, query in this.rows:
                items["query"] += parts(config, given.q[head, query].tobytes())
            opens = lines = lines_of(config, this)
            keep = int(rng.random() < 0.4)
            while lines:
                size = config.tile_keys - lines.start % config.tile_keys
                these, lines = lines[:size], lines[size:]
                tile = {
                    "first": these.start * places,
                    "last_index": len(these) - 1,
                    "opens": int(these.start == opens.start),
                    "closes": int(not lines),
                    "dummy": 0,
                    "keep": keep,
                }
                if config.logit_cap:
                    tile["cap"] = job.cap
                items["tile_0"].append(tile | last)
                for name, tensor in (("own_key", given.k), ("own_value", given.v)):
                    for line in these:
                        rows = rng.integers(-128, 128, (places, tensor.shape[2])).astype(np.int8)
                        there = tensor[this.kv_head, line * places : (line + 1) * places]
                        rows[: len(there)] = there
                        cut = [parts(config, row.tobytes()) for row in rows]
                        ends = not lines and line == these[-1]
                        items[name] += [
                            (list(part), ends and n == len(cut[0]) - 1, keep)
                            for n, part in enumerate(zip(*cut, strict=True))
                        ]
    return items


def source(core, port, items, latency, stall, seed):
    """Make a testbench that gives ``items`` as a `PartSource`, each ``latency`` cycles after it is taken, and
    compares what it is told with each.
    """

    async def give(ctx):
        rng, left = random.Random(seed), iter(items)
        there, ready, on_the_way = len(items), False, [None] * (latency - 1)
        while True:
            ready = ctx.get(core.decode) and bool(there) and (ready or rng.random() >= stall)
            ctx.set(port.valid, ready)
            _, _, take, last, keep = await ctx.tick().sample(port.take, port.last, port.keep)
            part = None
            if take:
                assert ready
                there, ready = there - 1, False
                part, *marks = next(left)
                assert [last, keep] == marks
            on_the_way.append(part)
            arrived = on_the_way.pop(0)
            if arrived is None:
                arrived = [[rng.randrange(-128, 128) for _ in part] for part in items[0][0]]
            ctx.set(port.parts, arrived)

    return give


def random_jobs(rng, config, count, *, decode):
    view = decoding(config) if decode else config
    jobs = []
    for _ in range(count):
        job = random_job(rng, view, most_keys=5 * config.decode_streams, most_queries=5)
        job.heads, job.bits, job.decode = job.kv_group, None, False
        job.multiplier, job.shift = int(rng.integers(2**16, 2**17)), int(rng.integers(16, 23))
        jobs.append(CoreJob.random(rng, job, spread=int(rng.choice([8, 128]))))
    return jobs


def run_phases(config, phases, *, stall=0.0, seed=0):
    """Put phases of jobs, each ``(decode, jobs)``, through a core, and check every beat."""
    core = built_core(config, InlinePlacer, BEAT_WIDTH)
    rng = np.random.default_rng(seed)
    background, taken = [], []
    fed = [own_feed(config, jobs, rng) if decode else feed(config, jobs, rng) for decode, jobs in phases]
    latencies = {"own_key": PART_LATENCY, "own_value": CoreTiming(config).step}
    for name, latency in latencies.items():
        items = [item for of_phase in fed for item in of_phase.get(name, [])]
        background.append(source(core, getattr(core, f"i_{name}"), items, latency, stall, f"{name} {seed}"))

    async def bench(ctx):
        for (decode, jobs), items in zip(phases, fed, strict=True):
            view = decoding(config) if decode else config
            expected = beats(view, jobs, BEAT_WIDTH)
            sides = {"output": Side(core.o, count=len(expected), stall=stall)}
            for name, payloads in items.items():
                kind, _, number = name.partition("_")
                if kind != "own":
                    port = getattr(core, f"i_{kind}")
                    sides[name] = Side(port[int(number)] if number else port, items=payloads, stall=stall)
            ctx.set(core.decode, decode)
            for _ in range(3):
                await ctx.tick()
            await exchange_within(ctx, sides, seed=seed)
            got = [
                (beat["data"] & (1 << bits) - 1, bits, beat["last"])
                for beat, (_, bits, _) in zip(sides["output"].received, expected, strict=True)
            ]
            assert got == expected
            taken.append(sides["output"].cycles)

    simulate(core, bench, background=background, limit=100_000)
    return taken


def few(config, count):
    """Return how many jobs a test has: with all options, which take long, a single one."""
    return 1 if config.logit_cap else count


def odd_jobs(rng, config, count, *, decode):
    """Draw jobs of an odd number of passes together: banks that take turns are not where they began."""
    view = decoding(config) if decode else config
    while True:
        jobs = random_jobs(rng, config, count, decode=decode)
        if sum(len(passes(view, given.job)) for given in jobs) % 2:
            return jobs


@pytest.mark.sample(1)
@RUNS
def test_phases_in_turn(config, seed):
    rng = np.random.default_rng(seed)
    count = few(config, 2)
    # With all options once there and back.
    decodes = (True, False, True) if config.logit_cap else (True, False, True, False)
    phases = [(decode, odd_jobs(rng, config, count, decode=decode)) for decode in decodes]
    run_phases(config, phases[seed % 2 :], stall=(0.0, 0.4)[seed % 2], seed=seed)


def test_lanes_of_a_pass_come_behind_the_bank_of_the_one_before():
    """`Finish` has one bank for lanes and results: the earliest pass that may follow reads none too soon."""
    shapes = itertools.product((1, 4, 16), (2, 16), (16, 64, 128), (1, 4), (2, 8, 32))
    for rows, streams, lanes, folds, merge_lanes in shapes:
        fields = {"rows": rows, "streams": streams, "lanes": lanes, "folds": folds}
        try:
            config = AttentionConfig(**fields, merge_lanes=merge_lanes, decode=True)
        except InputError:
            continue
        lanes_at, later = (
            Gathering.lanes_at(config),
            Gather.lane_latency(config) - Combine.lane_latency(config),
        )
        for steps in range(1, config.merge_steps + 1):
            last = lanes_at + steps * config.ports - 1
            following = Gathering.starts(config, 0, before=0, steps=steps)
            assert following + lanes_at > last + later, config


@pytest.mark.sample(1)
@RUNS
def test_exact_to_the_cycle(config, seed):
    rng = np.random.default_rng(100 + seed)
    jobs = random_jobs(rng, config, few(config, 4), decode=True)
    (cycles,) = run_phases(config, [(True, jobs)], seed=seed)
    law = core_cycles(config, shapes(config, jobs), beat_width=BEAT_WIDTH, decode=True)
    assert cycles[-1] + 1 == law
