# amaranth: UnusedElaboratable=no
"""All movers together, with memory behind their ports: every stream of the core, every byte, every result."""

import random

import numpy as np
import pytest

from hw.attention.core.command import PART_LATENCY
from hw.attention.core.timing import CoreTiming
from hw.attention.movers.movers import AttentionMovers
from hw.attention.movers.ports import key_port, port_count, result_port
from tests.hw.attention.movers.launch import JOBS, Launch
from tests.hw.attention.plain import decoding, random_job, small
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import built, get, hash_seed, plain, put, rule_checker, seeds, simulate


def check_streams(config, launch, got):
    """Compare what came on every stream of the core."""
    for command, (rows, dqk, dv, scale) in zip(got["command"], launch.commands, strict=True):
        assert command == {
            "rows": rows,
            "last_key_part": -(-dqk // config.lanes) - 1,
            "last_value_part": -(-dv // config.lanes) - 1,
            "value_units": dv // 16,
            "scale": scale,
        }
    for row, want in zip(got["row"], launch.rows, strict=True):
        assert list(range(row.pop("first"), row.pop("end"))) == want["seen"]
        assert row == {name: value for name, value in want.items() if name != "seen"}
    assert (got["query"], got["empty"]) == (launch.queries, launch.empty)
    for s in range(config.streams):
        for tile, (first, keys, opens, closes, cap) in zip(got[f"tile{s}"], launch.tiles[s], strict=True):
            assert (tile["last_index"], tile["opens"], tile["closes"]) == (keys - 1, opens, closes)
            assert tile["dummy"] == (first is None)
            assert tile["first"] == (2**17 - 1 if first is None else first)
            if config.logit_cap:
                assert tile["cap"] == cap
        for name, expected in ((f"key{s}", launch.keys[s]), (f"value{s}", launch.values[s])):
            for part, want in zip(got[name], expected, strict=True):
                assert want is None or part == want
    if config.decodes:
        assert sum(tile["keep"] for s in range(config.streams) for tile in got[f"tile{s}"]) == sum(
            launch.keeps
        )
        assert (got["own_key"], got["own_value"]) == (launch.own["key"], launch.own["value"])


def run(config, launches, *, width=256, stall=0.0, latency=(1, 20), seed=0, limit=60_000):
    """Run launches one after another; gives, for each, cycles of first key and of done, and the memories."""
    movers = built(AttentionMovers, config, data_width=width)
    memories = [
        AxiMemory(getattr(movers, f"gmem{n}"), stall=min(stall, 0.5), latency=latency, seed=seed + n)
        for n in range(port_count(config))
    ]
    outputs = {"command": movers.o_command, "row": movers.o_row, "query": movers.o_query}
    outputs["empty"] = movers.o_empty
    for s in range(config.streams):
        outputs |= {f"tile{s}": movers.o_tile[s], f"key{s}": movers.o_key[s], f"value{s}": movers.o_value[s]}
    own = {"own_key": movers.o_own_key, "own_value": movers.o_own_value} if config.decodes else {}
    times = []

    got = [{name: [] for name in (*outputs, *own)} for _ in launches]
    cycles = [{name: [] for name in (*outputs, *own)} for _ in launches]
    begun = [0]

    def receiver(name, port):
        async def receive(ctx):
            for n, launch in enumerate(launches):
                while begun[0] <= n:
                    await ctx.tick()
                got[n][name] += await get(
                    ctx,
                    port,
                    launch.counts()[name],
                    stall=stall,
                    seed=hash_seed(seed, name),
                    cycles=cycles[n][name],
                )

        return receive

    part_latencies = {"own_key": PART_LATENCY, "own_value": CoreTiming(config).step}

    def taker(name, source):
        async def take(ctx):
            rng = random.Random(hash_seed(seed, name))
            due = []
            for n, launch in enumerate(launches):
                while begun[0] <= n:
                    await ctx.tick()
                cycle, taken = 0, cycles[n][name]
                while len(got[n][name]) < launch.counts()[name]:
                    if due and due[0] == cycle:
                        due.pop(0)
                        got[n][name].append(plain(ctx.get(source.parts)))
                    wanted = ctx.get(source.valid) and rng.random() >= stall
                    ctx.set(source.take, wanted)
                    if wanted:
                        assert ctx.get(movers.o_decode)
                        last, keep = launch.marks[name.removeprefix("own_")][len(taken)]
                        ctx.set(source.last, last)
                        ctx.set(source.keep, keep)
                        due.append(cycle + part_latencies[name])
                        taken.append(cycle)
                    await ctx.tick()
                    cycle += 1
                ctx.set(source.take, 0)
                assert len(taken) == len(got[n][name])

        return take

    async def watch_phase(ctx):
        """A change of phase waits for all that is to be written before; each pass comes in its own."""
        before, number, count = 0, 0, 0
        while True:
            sampled = await ctx.tick().sample(movers.o_decode, movers.o_command.valid, movers.o_command.ready)
            _, _, decode, valid, ready = sampled
            if begun[0] != number:
                number, count = begun[0], 0
            if number and decode != before:
                launch, found = launches[number - 1], 0
                for port, written in enumerate(launch.results):
                    found += len(written.keys() & memories[result_port(config, port)].bytes.keys())
                assert found == (launch.written[count - 1] if count else 0)
            before = decode
            if valid and ready:
                assert decode == launches[number - 1].phases[count]
                count += 1

    async def send_results(ctx):
        for launch, seen in zip(launches, cycles, strict=True):
            for beats, needed in zip(launch.beats, launch.needed, strict=True):
                while any(len(seen[name]) < count for name, count in needed.items()):
                    await ctx.tick()
                await put(ctx, movers.i, beats, stall=stall, seed=hash_seed(seed, str(len(beats))))

    async def host(ctx):
        for launch in launches:
            for memory, content in zip(memories, launch.memory, strict=True):
                memory.bytes.clear()
                memory.bytes.update(content)
            ctx.set(movers.job, launch.jobs[0].layout(config))
            ctx.set(movers.jobs, JOBS)
            ctx.set(movers.job_count, len(launch.jobs) - 1)
            for s in range(config.streams):
                for p in range(config.ports):
                    ctx.set(movers.k_base[s][p], launch.address("k", s, p))
                    ctx.set(movers.v_base[s][p], launch.address("v", s, p))
            for w, base in enumerate(launch.result_base):
                ctx.set(movers.o_base[w], base)
            for n, base in enumerate(launch.query_base):
                ctx.set(movers.q_base[n], base)
            names = list(launch.moved())
            before = [ctx.get(movers.moved[name]) for name in names]
            ctx.set(movers.start, 1)
            begun[0] += 1
            await ctx.tick()
            ctx.set(movers.start, 0)
            cycle, done = 1, ctx.get(movers.done)
            while not done:
                await ctx.tick()
                cycle, done = cycle + 1, ctx.get(movers.done)
            times.append(cycle)
            launch.check_results(memories)
            await ctx.tick()
            await ctx.tick()
            moved = [ctx.get(movers.moved[name]) - count for name, count in zip(names, before, strict=True)]
            assert moved == [*launch.moved().values()]

    simulate(
        movers,
        host,
        send_results,
        *(receiver(name, port) for name, port in outputs.items()),
        *(taker(name, source) for name, source in own.items()),
        background=[
            *(bench for memory in memories for bench in memory.testbenches()),
            *(rule_checker(port, name) for name, port in outputs.items()),
            *([watch_phase] if config.decodes else []),
        ],
        limit=limit,
    )
    for launch, streams in zip(launches, got, strict=True):
        check_streams(config, launch, streams)
    return times, cycles


SHAPES = [(1, 1, 128), (1, 2, 256), (2, 1, 256), (1, 4, 128), (4, 1, 256), (2, 2, 512)]


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", seeds(2, 36))
def test_random_jobs(seed):
    streams, ports, width = SHAPES[seed % len(SHAPES)]
    rng = np.random.default_rng(seed)
    lanes = int(rng.choice([16, 32, 48]))
    config = small(
        rows=int(rng.integers(1, 7)),
        lanes=lanes,
        folds=int(rng.integers(1, 4)),
        streams=streams,
        ports_per_stream=ports,
        query_ports=int(rng.choice([1, 2])) if lanes == 32 else 1,
        result_ports=int(rng.choice([1, 2, 4])),
        cached_keys=int(rng.choice([0, 64, 128])),
        output=str(rng.choice(["int8", "int16", "bfloat16"])),
        logit_cap=bool(rng.random() < 0.5),
        alibi=bool(rng.random() < 0.5),
        paged=bool(rng.random() < 0.5),
    )
    launches = []
    for n in range(2):
        jobs = [random_job(rng, config, most_keys=60, most_queries=5) for _ in range(1 + n)]
        launches.append(Launch(config, jobs, seed + n, width))
    run(config, launches, width=width, stall=float(rng.choice([0.0, 0.3, 0.7])), seed=seed)


@pytest.mark.parametrize("seed", seeds(1, 30))
def test_random_jobs_of_both_phases(seed):
    rng = np.random.default_rng(seed)
    config = decoding(
        lanes=int(rng.choice([16, 32])),
        folds=int(rng.integers(1, 4)),
        streams=int(rng.choice([2, 4])),
        ports_per_stream=int(rng.choice([1, 2])),
        result_ports=int(rng.choice([1, 2])),
        logit_cap=bool(rng.random() < 0.5),
        alibi=bool(rng.random() < 0.5),
        paged=bool(rng.random() < 0.5),
    )
    launches = []
    for n in range(2):
        jobs = [random_job(rng, config, most_keys=100, most_queries=5) for _ in range(2 + n)]
        launches.append(Launch(config, jobs, seed + n, config.port_bits, grain=config.lanes))
    run(config, launches, width=config.port_bits, stall=float(rng.choice([0.0, 0.3, 0.7])), seed=seed)


def test_keys_are_kept_whatever_was_before():
    """Behind a prefill, too, and a prefill behind passes whose keys were kept."""
    rng = np.random.default_rng(0)
    config = decoding(lanes=32, folds=1)
    decodes = {"decode": True, "queries": 1, "heads": 5, "kv_group": 5, "pack": 2}
    prefills = {"decode": False, "queries": 3, "heads": 1, "kv_group": 1, "pack": 1, "bits": None}
    modes = [prefills, decodes, prefills, decodes]
    jobs = [random_job(rng, config, **mode, keys=30 + n, dqk=32, dv=32) for n, mode in enumerate(modes)]
    launch = Launch(config, jobs, 0, config.port_bits, grain=config.lanes)
    assert sum(launch.keeps) == 4
    run(config, [launch], width=config.port_bits, stall=0.3)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("dqk", "dv"), [(32, 32), pytest.param(64, 48, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("cached", "ports"), [(128, 1), (0, 1), pytest.param(128, 2, marks=pytest.mark.soak)]
)
def test_jobs_follow_each_other_without_a_gap(cached, ports, dqk, dv):
    """A part of keys, and one of values, a cycle: over tiles, passes, heads and jobs; each byte once."""
    rng = np.random.default_rng(1)
    config = small(rows=8, folds=2, cached_keys=cached, ports_per_stream=ports)
    sparse = {"queries": 16, "bits": np.array([[1, 0, 1, 1], [0, 1, 1, 0]], bool)}
    modes = [{"queries": 16}, {"queries": 8, "causal": True}, sparse]
    modes.append({"queries": 20, "windowed": True, "window": 60})
    common = {"keys": 64, "heads": 2, "kv_group": 1, "pack": 1, "bits": None, "dqk": dqk, "dv": dv}
    common |= {"causal": False, "windowed": False}
    jobs = [random_job(rng, config, **(common | mode)) for mode in modes]
    launch = Launch(config, jobs, 0, 256 * (2 // ports), grain=128)
    _, cycles = run(config, [launch], width=256 * (2 // ports), latency=(30, 30))
    for name in ("key0", "value0"):
        times = cycles[0][name]
        assert times[-1] - times[0] + 1 == len(times)
    assert cycles[0]["key0"][0] <= 30 + 27
    if cached:
        heads = sum(job.heads for job in jobs)
        first = key_port(config, 0, 0)
        assert sum(launch.read[first : first + ports]) == heads * 64 * dqk


def test_short_jobs_hide_the_latency_of_their_descriptors():
    rng = np.random.default_rng(2)
    config = small(rows=4, folds=1, cached_keys=64)
    shape = {"queries": 4, "keys": 48, "heads": 1, "kv_group": 1, "pack": 1, "dqk": 32, "dv": 32}
    jobs = [random_job(rng, config, **shape, bits=None, causal=False, windowed=False) for _ in range(8)]
    launch = Launch(config, jobs, 0, 256, grain=128)
    _, cycles = run(config, [launch], width=256, latency=(60, 60))
    times = cycles[0]["key0"]
    # The first descriptor can only come after the first job's keys began; from then on nothing waits.
    assert np.diff(times[2 * 48 :]).max() == 1


def test_jobs_that_share_keys_and_values():
    """Heads with scales of their own: a job each, and the keys stay on chip."""
    rng = np.random.default_rng(4)
    config = small(folds=2, ports_per_stream=2)
    shape = {
        "queries": 5,
        "keys": 25,
        "heads": 2,
        "kv_group": 2,
        "pack": 1,
        "dqk": 48,
        "dv": 32,
        "bits": None,
    }
    jobs = [random_job(rng, config, **shape, windowed=False, causal=False, reuse_kv=n > 0) for n in range(3)]
    jobs.append(random_job(rng, config, **shape, windowed=False, causal=True))
    launch = Launch(config, jobs, 0, 256)
    run(config, [launch])
    twice = 2 * 25 * (48 + 32)  # the last job's are others
    assert sum(launch.read[key_port(config, 0, 0) :]) == twice


@pytest.mark.soak
@pytest.mark.parametrize("streams", [2, *(pytest.param(n, marks=pytest.mark.soak) for n in (1, 4))])
def test_windows_that_move_on_and_back(streams):
    """Windows begin within tiles that take turns in the caches; sets of heads and jobs go back."""
    rng = np.random.default_rng(streams)
    config = small(streams=streams, folds=2, ports_per_stream=2)
    shape = {"keys": 3 * config.tile_span - 3, "heads": 2, "kv_group": 2, "pack": 1, "dqk": 48, "dv": 32}
    shape |= {"bits": None, "windowed": True}
    jobs = [
        random_job(rng, config, **shape, queries=queries, window=window, causal=n < 2, reuse_kv=n > 0)
        for n, (queries, window) in enumerate([(18, 6), (29, 9 * streams), (23, config.tile_span + 5)])
    ]
    launch = Launch(config, jobs, 0, 256)
    assert any(first // streams % config.tile_keys for of_stream in launch.tiles for first, *_ in of_stream)
    run(config, [launch])


def test_empty_jobs_are_done_at_once():
    rng = np.random.default_rng(3)
    config = small()
    shapes = [{"queries": 0}, {"keys": 0}, {"heads": 0}]
    launches = [Launch(config, [random_job(rng, config, bits=None, **shape)], 0, 256) for shape in shapes]
    few = {"queries": 2, "keys": 5}
    jobs = [random_job(rng, config, bits=None, **shape) for shape in (few, *shapes, few)]
    launches.append(Launch(config, jobs, 0, 256))
    times, _ = run(config, launches)
    assert max(times[:3]) <= 5


@pytest.mark.soak
@pytest.mark.parametrize(
    ("tiles", "cached"), [(2, 128), *(pytest.param(1, cached, marks=pytest.mark.soak) for cached in (0, 128))]
)
def test_pages_cost_nothing_but_the_first_read(tiles, cached):
    """Keys come in the same cycles as without pages, but for those in which the first entries are read."""
    rng = np.random.default_rng(5)
    config = small(rows=8, streams=2, cached_keys=cached, paged=True)
    sparse = {"queries": 16, "bits": np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 1]], bool)}
    modes = [{"queries": 16}, {"queries": 8, "causal": True}, sparse]
    modes.append({"queries": 20, "windowed": True, "window": 60})
    common = {"keys": 110, "heads": 1, "kv_group": 1, "pack": 1, "bits": None, "dqk": 32, "dv": 32}
    common |= {"causal": False, "windowed": False}
    begins = []
    for page_keys in (0, 32 * tiles):
        jobs = [random_job(rng, config, **(common | mode), page_keys=page_keys) for mode in modes]
        _, cycles = run(config, [Launch(config, jobs, 0, 256, grain=128)], latency=(30, 30))
        keys = cycles[0]["key0"]
        begins.append(keys[0])
        assert keys[-1] - keys[0] + 1 == len(keys)
    assert 30 <= begins[1] - begins[0] <= 30 + 13
