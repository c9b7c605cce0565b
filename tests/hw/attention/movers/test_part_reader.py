# amaranth: UnusedElaboratable=no
"""The reader of whole parts against bytes in a dictionary."""

import random
from itertools import pairwise

import pytest

from hw.attention.movers.part_reader import PartReader
from tests.hw.attention.plain import decoding
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import STALLS, put, seeds, simulate


def fetches(rng, config, count, most):
    """Draw rows of whole parts; gives what is asked for, and the address of each part."""
    step, asked, places = config.part_bits // 8, [], []
    for _ in range(count):
        parts = rng.randint(1, most)
        address = rng.choice([0, 4096, 1 << 33, (1 << 63) + 512]) + step * rng.randrange(200)
        asked.append({"address": address, "length": parts * step // 16})
        places += [address + n * step for n in range(parts)]
    return asked, places


def run(config, asked, places, *, stall=0.0, stall_take=0.0, patience=0, seed=0, **model):
    """Take every part, after ``patience`` cycles; gives memory, and the cycles of takes."""
    reader = PartReader(config)
    memory = AxiMemory(reader.axi, stall=stall, seed=seed, **model)
    step, takes = config.part_bits // 8, []

    async def send(ctx):
        await put(ctx, reader.fetch, asked, stall=stall, seed=seed)

    async def take(ctx):
        rng, cycle, due = random.Random(seed), 0, {}
        while len(takes) < len(places) or due:
            if cycle in due:
                wanted = memory.content(due.pop(cycle), step)
                assert ctx.get(reader.part).to_bytes(step, "little") == wanted
            wanted = cycle >= patience and ctx.get(reader.available) and rng.random() >= stall_take
            ctx.set(reader.take, wanted)
            if wanted:
                due[cycle + PartReader.LATENCY] = places[len(takes)]
                takes.append(cycle)
            await ctx.tick()
            cycle += 1
        for _ in range(20):
            await ctx.tick()
            assert not ctx.get(reader.available)
        assert ctx.get(reader.bytes_useful) == step * len(places)

    async def watch(ctx):
        while True:
            _, _, lost, ready = await ctx.tick().sample(reader.lost, reader.axi.rready)
            assert ready
            assert not lost

    simulate(reader, send, take, background=[*memory.testbenches(), watch])
    return memory, takes


@pytest.mark.parametrize("seed", seeds(1, 6))
@pytest.mark.parametrize("stall_take", STALLS[:3])
@pytest.mark.parametrize("stall", STALLS[:3])
def test_any_rows(stall, stall_take, seed):
    rng = random.Random(seed)
    config = decoding(lanes=rng.choice([16, 32, 64]))
    asked, places = fetches(rng, config, 25, 40)
    run(config, asked, places, stall=stall, stall_take=stall_take, seed=seed, latency=(1, 40))


def test_a_part_a_cycle_and_room_for_512():
    """More than 512 parts, none taken for long: all that may be asked for are; then no cycle is lost."""
    rng = random.Random(0)
    config = decoding()
    asked, places = fetches(rng, config, 60, 32)
    assert len(places) > 800
    # At the most so many behind a burst that there is no room for: bursts end where their blocks do.
    memory, takes = run(config, asked, places, patience=1500, latency=(20, 20))
    before = sum(cycle < 1500 for cycle in memory.cycles["r"])
    assert 512 - 16 < before <= 512
    assert all(later - earlier == 1 for earlier, later in pairwise(takes[:before]))


def test_latency():
    config = decoding()
    asked, places = fetches(random.Random(1), config, 30, 32)
    memory, takes = run(config, asked, places, latency=(9, 9))
    assert memory.cycles["ar"][0] == PartReader.ADDRESS_LATENCY
    assert takes[0] - memory.cycles["r"][0] == PartReader.DATA_LATENCY
    beats = memory.cycles["r"]
    assert [take - beat for take, beat in zip(takes, beats, strict=True)] == [2] * len(takes)
