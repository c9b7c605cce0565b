# amaranth: UnusedElaboratable=no
"""Latencies that the model derives, against the movers' gates before a memory of fixed latency."""

import numpy as np
import pytest

from hw.attention.model.issue import IssueSchedule
from hw.attention.model.pieces import Pieces
from hw.attention.model.refresh import Refreshes
from hw.attention.model.results import sent
from hw.attention.movers.movers import AttentionMovers, port_count
from hw.attention.movers.result_writer import ResultWriter
from hw.attention.movers.timing import MoverTiming
from hw.board import load_board
from hw.lib.rows.cutter import RowCutter
from tests.hw.attention.movers.launch import JOBS, Launch
from tests.hw.attention.plain import PlainJob, shape_of, small
from tests.support.boards import of_fixed_latency
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import built, simulate

#: From an address to its data.
MEMORY_CYCLES = 20
#: When results begin to come.
RESULTS_FROM = 300
#: Lanes, folds, ports, entries of caches, bits of a port: words of a part, half a part and many parts.
SHAPES = [
    (32, 1, 1, 0, 256),
    (32, 2, 1, 64, 256),
    (32, 1, 1, 64, 128),
    (32, 2, 2, 64, 128),
    (16, 1, 1, 64, 256),
]
PLAIN = of_fixed_latency(load_board("u55c"))


def transfers(config, jobs, width):
    """Return the cycles, from ``start`` on, of transfers on the core's streams and on the port of results."""
    launch = Launch(config, jobs, 0, width, grain=4096)
    movers = built(AttentionMovers, config, data_width=width)
    span = (MEMORY_CYCLES, MEMORY_CYCLES)
    memories = [AxiMemory(getattr(movers, f"gmem{n}"), latency=span) for n in range(port_count(config))]
    for memory, content in zip(memories, launch.memory, strict=True):
        memory.bytes.update(content)
    streams = {
        "command": movers.o_command,
        "row": movers.o_row,
        "query": movers.o_query,
        "empty": movers.o_empty,
        "key": movers.o_key[0],
        "i": movers.i,
    }
    seen = {name: [] for name in [*streams, "done"]}

    async def host(ctx):
        ctx.set(movers.job, launch.jobs[0].layout(config))
        ctx.set(movers.jobs, JOBS)
        ctx.set(movers.job_count, len(jobs) - 1)
        for p in range(config.ports):
            ctx.set(movers.k_base[0][p], launch.address("k", 0, p))
            ctx.set(movers.v_base[0][p], launch.address("v", 0, p))
        ctx.set(movers.o_base[0], launch.result_base[0])
        for port in (movers.o_command, movers.o_row, movers.o_query, movers.o_empty):
            ctx.set(port.ready, 1)
        for port in (movers.o_tile[0], movers.o_key[0], movers.o_value[0]):
            ctx.set(port.ready, 1)
        beats = [beat for of_pass in launch.beats for beat in of_pass]
        ctx.set(movers.start, 1)
        cycle = 0
        while not seen["done"]:
            ctx.set(movers.i.valid, cycle >= RESULTS_FROM and len(seen["i"]) < len(beats))
            pairs = [signal for port in streams.values() for signal in (port.valid, port.ready)]
            _, _, *values, done = await ctx.tick().sample(*pairs, movers.done)
            ctx.set(movers.start, 0)
            for name, valid, ready in zip(streams, values[::2], values[1::2], strict=True):
                seen[name] += [cycle] * (valid & ready)
            seen["done"] += [cycle] * done
            cycle += 1

    simulate(movers, host, background=[b for memory in memories for b in memory.testbenches()], limit=3000)
    write = memories[-1].cycles
    return seen | {"aw": write["aw"], "w": write["w"], "b": write["b"]}


def made(lanes, folds, ports, cached, width, **options):
    config = small(rows=2, lanes=lanes, folds=folds, ports_per_stream=ports, cached_keys=cached, **options)
    return config, width, MoverTiming(config, data_width=width, memory_cycles=MEMORY_CYCLES)


def job(config, **changes):
    return PlainJob(**{"queries": 2, "keys": 40, "dqk": config.lanes, "dv": config.lanes} | changes)


@pytest.mark.sample(2)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_first_pass(shape):
    config, width, latency = made(*shape)
    seen = transfers(config, [job(config)], width)
    assert seen["command"] == [latency.first_pass + latency.queue]
    more = RowCutter.joined(config.part_bits, width) - 1
    assert seen["query"][0] == latency.first_pass + latency.query + more
    assert seen["key"][0] == latency.first_pass + latency.tile + latency.key + more
    # A burst goes when its last beat has come; the end follows the last response.
    assert seen["aw"][0] == seen["i"][min(15, len(seen["i"]) - 1)] + ResultWriter.LATENCY
    assert seen["done"][0] == seen["b"][-1] + latency.done


def test_walk_over_passes_and_jobs():
    """Sets of heads, jobs from descriptors; keys out of the cache once memory is not in the way."""
    config, width, latency = made(*SHAPES[1])
    jobs = [job(config, queries=40, keys=1), job(config, queries=5, keys=1, heads=2), job(config, keys=1)]
    seen = transfers(config, jobs, width)
    walk = IssueSchedule(config, PLAIN, latency, Refreshes(PLAIN, start=460))
    known = [walk.add(shape, this, []) for shape in map(shape_of, jobs) for this in shape.passes(config)]
    assert seen["command"] == [each.queries + latency.queue for each in known]
    assert seen["key"][19] == known[19].cached


@pytest.mark.parametrize("queries", [1, 2])
def test_last_results_on_the_bus(queries):
    """Two rows of 64 bytes: a burst of two beats, which memory takes in the cycle after its address."""
    config, width, _ = made(*SHAPES[1])
    seen = transfers(config, [job(config, queries=queries)], width)
    pieces = Pieces(first=0, stride=0, count=1, length=64 * queries)
    last = sent(seen["i"][-1], free=0, pieces=pieces, row_bytes=64, beat_bytes=width // 8, burst_beats=16)
    assert seen["w"][-1] == last


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"queries": 43, "causal": True},
        {"queries": 6, "bits": [0, 1, 0]},
        {"queries": 6, "bits": [1, 1, 0]},
    ],
    ids=str,
)
def test_it_is_known_which_passes_are_empty(shape):
    """From ranges, and from bitmap rows, which are looked at word by word."""
    config, width, latency = made(*SHAPES[1])
    changes = dict(shape)
    if "bits" in changes:
        changes["bits"] = np.array([[bit, bit, 0] for bit in changes["bits"]], bool)
    given = job(config, **changes)
    seen = transfers(config, [given], width)
    walk = IssueSchedule(config, PLAIN, latency, Refreshes(PLAIN, start=460))
    known = [walk.add(shape_of(given), this, []) for this in shape_of(given).passes(config)]
    assert seen["empty"] == [each.empty for each in known]


@pytest.mark.parametrize("bits", [[1, 1, 0], [0, 0, 1]])
def test_tiles_from_a_bitmap(bits):
    """The first tile goes when the next one is found, or when all words have been looked at."""
    config, width, latency = made(*SHAPES[1])
    sparse = job(config, bits=np.array([bits], bool))
    seen = transfers(config, [sparse], width)
    (this,) = shape_of(sparse).passes(config)
    known = IssueSchedule(config, PLAIN, latency, Refreshes(PLAIN, start=460)).add(shape_of(sparse), this, [])
    assert seen["key"][0] == known.keys + latency.key


@pytest.mark.sample(2)
@pytest.mark.parametrize("page_keys", [16, 32])
@pytest.mark.parametrize(
    ("bits", "window"), [(None, 0), (None, 3), (None, 20), ([1, 1, 0], 0), ([1, 1, 0], 20), ([0, 0, 1], 0)]
)
def test_pages(bits, window, page_keys):
    """The first tile goes when its entry has come, those before it in the same 32 bytes passed over."""
    config, width, latency = made(*SHAPES[1], paged=True)
    bitmap = None if bits is None else np.array([bits], bool)
    paged = job(config, bits=bitmap, windowed=window > 0, window=window, page_keys=page_keys)
    seen = transfers(config, [paged], width)
    (this,) = shape_of(paged).passes(config)
    known = IssueSchedule(config, PLAIN, latency, Refreshes(PLAIN, start=460)).add(shape_of(paged), this, [])
    assert seen["key"][0] == known.keys + latency.key
