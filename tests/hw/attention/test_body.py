"""The whole engine behind its AXI ports: results, bytes moved, counters that add up."""

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.kernel.arguments import CAUSES
from hw.attention.kernel.body import AttentionBody
from hw.attention.movers import port_count
from hw.lib.place import InlinePlacer
from tests.hw.attention.jobs import SMALL, random_launch
from tests.support.axi_memory import AxiMemory
from tests.support.streams import seeds, simulate

#: Where the buffers lie, each behind its own port, which may also be one memory.
ADDRESSES = {"q": 0x1_0000, "o": 0x2_0000_8000, "k": 0x30_000, "v": 0x50_000}


def fill(memory, address, tensor):
    memory.bytes.update(enumerate(tensor.tobytes(), address))


def run_body(config, launches, *, data_width=256, stall=0.0, latency=(1, 12), seed=0, limit=40_000):
    """Run ``launches`` one after another on one body; gives results and counters of each."""
    body = AttentionBody(config, InlinePlacer(), data_width=data_width)
    memories = [
        AxiMemory(getattr(body, f"gmem{n}"), stall=stall, latency=latency, seed=seed + n)
        for n in range(port_count(config))
    ]
    slices, size = config.ports_per_stream, config.head_dim // config.ports_per_stream
    outcomes = []

    async def host(ctx):
        for launch in launches:
            fill(memories[0], ADDRESSES["q"], launch.q)
            arguments = dict(launch.scalars, q=ADDRESSES["q"], o=ADDRESSES["o"])
            for name, first in (("k", 1), ("v", 1 + slices)):
                for p in range(slices):
                    part = getattr(launch, name)[..., p * size : (p + 1) * size]
                    fill(memories[first + p], ADDRESSES[name], np.ascontiguousarray(part))
                    arguments[f"{name}{p}"] = ADDRESSES[name]
            for name, value in arguments.items():
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
            raw = memories[0].content(ADDRESSES["o"], 2 * launch.q.size)
            outcomes.append((np.frombuffer(raw, "<i2").reshape(launch.q.shape), counters, cycles))

    simulate(body, host, background=[b for memory in memories for b in memory.testbenches()], limit=limit)
    return outcomes


def check(config, launches, **options):
    outcomes = run_body(config, launches, **options)
    for launch, (result, counters, cycles) in zip(launches, outcomes, strict=True):
        np.testing.assert_array_equal(result, launch.expected(config))
        passes = launch.q.shape[0] * -(-launch.q.shape[1] // config.rows)
        head_bytes = launch.k.shape[1] * config.head_dim
        assert counters["gmem0_read_bytes"] == launch.q.size
        for port in range(1, 1 + 2 * config.ports_per_stream):
            slice_bytes = head_bytes // config.ports_per_stream
            assert counters[f"gmem{port}_read_bytes"] == passes * slice_bytes
        assert counters["gmem0_write_bytes"] == 2 * launch.q.size
        assert counters["cycles_total"] == cycles - 1
        parts = ["cycles_busy", *(f"cycles_stall_{cause}" for cause in CAUSES), "cycles_idle"]
        assert sum(counters[part] for part in parts) == counters["cycles_total"]
        assert counters["cycles_busy"] == passes * launch.k.shape[1]
    return outcomes


@pytest.mark.parametrize("stall", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("seed", seeds(1, 12))
def test_launches_one_after_another(stall, seed):
    rng = np.random.default_rng(seed)
    launches = [
        random_launch(rng, SMALL, kv_heads=2, group=2, queries=6, keys=21),
        random_launch(rng, SMALL, queries=1, keys=1),
        random_launch(rng, SMALL, kv_heads=3, queries=4, keys=16),
    ]
    check(SMALL, launches, stall=stall, seed=seed)


@pytest.mark.parametrize(
    ("data_width", "ports_per_stream", "head_dim"),
    [(64, 1, 32), (128, 1, 32), (128, 2, 32), (256, 2, 32), (512, 4, 32), (256, 2, 64), (1024, 1, 64)],
)
def test_every_relation_of_slice_and_port(data_width, ports_per_stream, head_dim):
    config = AttentionConfig(rows=2, head_dim=head_dim, tile_keys=32, ports_per_stream=ports_per_stream)
    rng = np.random.default_rng(data_width)
    check(config, [random_launch(rng, config, kv_heads=2, queries=3, keys=37)], data_width=data_width)


def test_empty_launches_are_done_at_once():
    rng = np.random.default_rng(0)
    shapes = [{"queries": 0}, {"keys": 0}, {"kv_heads": 0}]
    launches = [random_launch(rng, SMALL, **shape) for shape in shapes]
    launches.append(random_launch(rng, SMALL, queries=3, keys=5))
    outcomes = run_body(SMALL, launches)
    for _, counters, _ in outcomes[:-1]:
        assert counters["cycles_total"] <= 4
        assert not any(count for name, count in counters.items() if name.endswith("_bytes"))
    np.testing.assert_array_equal(outcomes[-1][0], launches[-1].expected(SMALL))
