# amaranth: UnusedElaboratable=no
"""The whole engine behind its AXI ports: results, bytes moved, counters that add up."""

import numpy as np
import pytest

from hw.attention.kernel.arguments import CAUSES, argument_table, bytes_counters, stream_ports
from hw.attention.kernel.body import AttentionBody
from hw.attention.movers.ports import PortBytes, port_count
from hw.errors import InputError
from hw.lib.place import InlinePlacer
from tests.hw.attention.movers.launch import JOBS, Launch
from tests.hw.attention.plain import decoding, random_job, small
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import seeds, simulate


def arguments(launch):
    """Return the arguments of a launch by name."""
    job = launch.jobs[0]
    given = {name: value for name, value in job.descriptor().items() if not name.endswith("_offset")}
    given |= {"jobs": JOBS, "job_count": len(launch.jobs) - 1}
    for n, (s, p) in enumerate(stream_ports(launch.config)):
        given |= {f"{side}{n}": launch.address(side, s, p) for side in "kv"}
    given |= {f"q{n}": base for n, base in enumerate(launch.query_base)}
    given |= {f"o{w}": base for w, base in enumerate(launch.result_base)}
    return given


def run_body(launches, *, stall=0.0, latency=(1, 12), seed=0, limit=60_000):
    """Run launches one after another on one body, and check all that each says of itself."""
    config, width = launches[0].config, launches[0].width
    body = AttentionBody(config, InlinePlacer(), data_width=width)
    memories = [
        AxiMemory(getattr(body, f"gmem{n}"), stall=stall, latency=latency, seed=seed + n)
        for n in range(port_count(config))
    ]
    outcomes = []

    async def host(ctx):
        for launch in launches:
            for memory, content in zip(memories, launch.memory, strict=True):
                memory.bytes.clear()
                memory.bytes.update(content)
            for name, value in arguments(launch).items():
                ctx.set(body.args[name], value)
            ctx.set(body.start, 1)
            await ctx.tick()
            ctx.set(body.start, 0)
            cycles, done = 1, False
            while not done:
                _, _, done = await ctx.tick().sample(body.done)
                cycles += 1
            await ctx.tick()
            await ctx.tick()
            counters = {name: ctx.get(body.counters[name]) for name, _ in body.counters.shape()}
            launch.check_results(memories)
            check_counters(launch, counters, cycles)
            outcomes.append(counters)

    simulate(body, host, background=[b for memory in memories for b in memory.testbenches()], limit=limit)
    return outcomes


def check_counters(launch, counters, cycles):
    assert counters.items() >= launch.moved().items()
    for name, count in counters.items():
        if name.startswith("saturated_"):
            assert count == launch.saturated[name.removeprefix("saturated_")]
    assert counters["cycles_total"] == cycles - 1
    split = ["cycles_busy", *(f"cycles_stall_{cause}" for cause in CAUSES), "cycles_idle"]
    assert sum(counters[name] for name in split) == counters["cycles_total"]
    longest = max(len(parts) for parts in launch.keys)
    assert longest <= counters["cycles_busy"] <= sum(len(parts) for parts in launch.keys)


SHAPES = [(1, 1, 256), (2, 1, 256), (1, 2, 128), (2, 2, 256), (4, 1, 128), (1, 4, 512)]


@pytest.mark.parametrize("seed", seeds(0, 18))
def test_random_launches(seed):
    streams, ports, width = SHAPES[seed % len(SHAPES)]
    rng = np.random.default_rng(seed)
    lanes = int(rng.choice([16, 32]))
    config = small(
        rows=int(rng.integers(1, 4)),
        lanes=lanes,
        folds=int(rng.integers(1, 4)),
        streams=streams,
        ports_per_stream=ports,
        query_ports=lanes // 16,
        result_ports=(2, 1, 4)[seed % 3],
        cached_keys=int(rng.choice([0, 64])),
        output=str(rng.choice(["int8", "int16", "bfloat16"])),
        probability_bits=int(rng.choice([8, 12, 16])),
        logit_cap=bool(rng.random() < 0.5),
        alibi=bool(rng.random() < 0.5),
        paged=bool(rng.random() < 0.5),
    )
    launches = []
    for n in range(2):
        jobs = []
        for _ in range(1 + n):
            job = random_job(rng, config, most_keys=50, most_queries=3)
            # From flat logits to some that saturate, where random scales would saturate them all.
            job.multiplier, job.shift = int(rng.integers(2**16, 2**17)), int(rng.integers(12, 24))
            jobs.append(job)
        launches.append(Launch(config, jobs, seed + n, width, golden=True))
    run_body(launches, stall=float(rng.choice([0.0, 0.3, 0.6])), seed=seed)


@pytest.mark.soak
def test_slopes_do_not_wait_for_entries_of_pages():
    """More pages than entries and tiles that may wait for the core, which begins when it has the slopes."""
    config = small(rows=1, lanes=16, folds=1, cached_keys=0, alibi=True, paged=True)
    shape = {"queries": 1, "keys": 16 * 120, "heads": 1, "kv_group": 1, "pack": 1, "dqk": 16, "dv": 16}
    shape |= {"causal": False, "windowed": False, "bits": np.ones((1, 120), bool)}
    job = random_job(np.random.default_rng(0), config, **shape, page_keys=16, multiplier=2**16, shift=20)
    job.slope = [1 << 16]
    run_body([Launch(config, [job], 0, 256, golden=True)], limit=6000)


@pytest.mark.soak
@pytest.mark.parametrize("output", [pytest.param("int8", marks=pytest.mark.soak), "int16"])
def test_numbers_that_saturate_are_counted(output):
    """In two streams, with a last pass of one query in two rows, and afresh for each launch."""
    config = small(rows=2, streams=2, output=output)
    launches = []
    shape = {
        "bits": None,
        "queries": 3,
        "keys": 40,
        "heads": 2,
        "kv_group": 1,
        "pack": 1,
        "dqk": 32,
        "dv": 32,
    }
    for seed in range(2):
        job = random_job(np.random.default_rng(seed), config, **shape)
        job.multiplier, job.shift = 2**16, 9
        job.scale |= {"int8": {"shift": 20}, "int16": {"fraction": 15}}[output]
        launches.append(Launch(config, [job], seed, 256, golden=True))
    for launch, counters in zip(launches, run_body(launches), strict=True):
        assert counters["saturated_logits"] == launch.saturated["logits"] > 0
        assert counters["saturated_results"] == launch.saturated["results"] > 0


def test_launches_without_work_are_done_at_once():
    rng = np.random.default_rng(0)
    config = small(rows=2)
    shapes = [{"queries": 0}, {"keys": 0}, {"heads": 0}, {"queries": 2, "keys": 3, "pack": 1}]
    launches = [
        Launch(config, [random_job(rng, config, bits=None, **shape)], 0, 256, golden=True) for shape in shapes
    ]
    for counters in run_body(launches)[:-1]:
        assert counters["cycles_total"] <= 5


def test_arguments_name_every_port_once():
    config = small(streams=4, ports_per_stream=2)
    table = argument_table(config)
    assert table.ports == tuple(f"gmem{n}" for n in range(port_count(config)))
    pointers = [argument.port for argument in table.call if argument.name[0] in "qkvo" and argument.port]
    assert sorted(pointers) == sorted(table.ports[1:])
    with pytest.raises(InputError, match="few enough"):
        argument_table(small(streams=16, ports_per_stream=4))


def test_a_kernel_that_decodes_has_ports_of_keys_and_values_only():
    config = decoding(streams=2, ports_per_stream=8, lanes=64, result_ports=2)
    table = argument_table(config)
    assert sorted(table.ports) == sorted(f"gmem{n}" for n in range(32))
    port = {argument.name: argument.port for argument in table.call if argument.port}
    keys, values = ([port[f"{side}{n}"] for n in range(16)] for side in "kv")
    assert len({*keys, *values}) == 32
    assert [port["o0"], port["o1"]] == keys[:2]
    assert [port["jobs"], port["q0"]] == values[:2]
    counters = bytes_counters(config)
    assert counters[f"{values[0]}_read_bytes"] == (
        "Bytes of v0, descriptors, bitmaps, slopes and page tables read"
    )
    assert sum(name.endswith("_write_bytes") for name in counters) == 2
    assert counters.keys() == {*PortBytes(config).members}
