# amaranth: UnusedElaboratable=no
"""Queries that are dealt out by parts, against bytes in a dictionary."""

import random
from itertools import pairwise

import pytest

from hw.attention.movers.query_parts import QueryParts
from hw.lib.skid import Skid
from tests.hw.attention.plain import decoding
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import STALLS, plain, put, seeds, simulate


def shape(ports, lanes=16):
    """Return a configuration with so many ports of queries."""
    streams, ports_per_stream = {1: (2, 1), 2: (2, 2), 4: (4, 2)}[ports]
    return decoding(lanes=lanes, streams=streams, ports_per_stream=ports_per_stream)


def passes(rng, config, count, *, most_pieces):
    """Draw passes; gives what is asked for, and the number of each part in order."""
    step, asked, numbers = config.lanes, [], []
    for _ in range(count):
        rows, units = rng.randint(1, config.rows), rng.randint(1, config.folds) * step // 16
        pieces = rng.randint(1, min(rows, most_pieces))
        each = rows // pieces
        first = rng.choice([0, 1 << 20, 1 << 34]) + rng.randrange(99)
        stride = rng.randrange(each * units * 16 // step, 99)
        segments = {"address": first * step, "stride": stride * step, "count": pieces, "rows": each}
        asked.append({"q": segments | {"units": each * units}, "units": units})
        for piece in range(pieces):
            numbers += range(first + piece * stride, first + piece * stride + each * units * 16 // step)
    return asked, numbers


def run(config, asked, numbers, *, stall=0.0, stall_take=0.0, patience=0, seed=0, **model):
    """Take every part, after ``patience`` cycles; gives the memories, and the cycles in which parts came."""
    reader, step = QueryParts(config), config.lanes
    memories = [AxiMemory(port, stall=stall, seed=seed + n, **model) for n, port in enumerate(reader.axi)]
    bases = [random.Random(n).randrange(1 << 20) * step for n in range(config.query_port_count)]
    came, wanted = [], []
    for number in numbers:
        place, port = divmod(number, config.query_port_count)
        wanted.append(memories[port].content(bases[port] + place * step, step))

    async def send(ctx):
        for n, base in enumerate(bases):
            ctx.set(reader.base[n], base)
        await ctx.tick()
        await put(ctx, reader.i, asked, stall=stall, seed=seed)

    async def take(ctx):
        rng, cycle = random.Random(seed), 0
        while len(came) < len(wanted):
            ctx.set(reader.o.ready, cycle >= patience and rng.random() >= stall_take)
            _, _, valid, ready, part = await ctx.tick().sample(
                reader.o.valid, reader.o.ready, reader.o.payload
            )
            if valid and ready:
                got = bytes(element & 0xFF for element in plain(part))
                assert got == wanted[len(came)]
                came.append(cycle)
            cycle += 1
        ctx.set(reader.o.ready, 1)
        for _ in range(20):
            _, _, valid = await ctx.tick().sample(reader.o.valid)
            assert not valid
        moved = [ctx.get(reader.bytes_useful[n]) for n in range(config.query_port_count)]
        assert moved == [
            step * sum(n % config.query_port_count == port for n in numbers)
            for port in range(config.query_port_count)
        ]

    simulate(reader, send, take, background=[each for memory in memories for each in memory.testbenches()])
    return memories, came


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", seeds(1, 6))
@pytest.mark.parametrize("stall_take", STALLS[:3])
@pytest.mark.parametrize("stall", STALLS[:3])
def test_any_passes(stall, stall_take, seed):
    rng = random.Random(seed)
    config = shape(rng.choice([1, 2, 4]), rng.choice([16, 32]))
    asked, numbers = passes(rng, config, 40, most_pieces=4)
    run(config, asked, numbers, stall=stall, stall_take=stall_take, seed=seed, latency=(1, 40))


@pytest.mark.parametrize("ports", [1, 2, 4])
def test_a_part_a_cycle_and_how_late(ports):
    """However short the pieces are: here of one part each, each at the next port."""
    config = shape(ports)
    rows = config.rows
    q = {"stride": config.lanes, "count": rows, "rows": 1, "units": config.lanes // 16}
    asked = [{"q": q | {"address": n * rows * config.lanes}, "units": config.lanes // 16} for n in range(100)]
    memories, came = run(config, asked, list(range(100 * rows)), latency=(9, 9))
    assert came[0] - memories[0].cycles["r"][0] == QueryParts.DATA_LATENCY
    assert all(later - earlier == 1 for earlier, later in pairwise(came))


def test_parts_wait_at_their_ports():
    """None taken for long: as many come as may be asked for, and then one a cycle."""
    config = shape(2)
    asked, numbers = passes(random.Random(0), config, 500, most_pieces=1)
    assert len(numbers) > 1_500
    memories, came = run(config, asked, numbers, patience=3_000, latency=(20, 20))
    beats = [sum(cycle < 3_000 for cycle in memory.cycles["r"]) for memory in memories]
    before = sum(beats)
    most = len(beats) * QueryParts.PORT_PARTS + QueryParts.PARTS_AHEAD
    # At the most so many less behind a burst that there is no room for.
    assert most - 16 * len(beats) < before <= most + Skid.CAPACITY
    assert all(later - earlier == 1 for earlier, later in pairwise(came[:before]))
