# amaranth: UnusedElaboratable=no
"""The reader of whole parts against bytes in a dictionary."""

import random
from itertools import pairwise

import pytest

from hw.attention.movers.part_reader import PartReader
from hw.attention.walk.job_setup import KEPT_PARTS
from tests.hw.attention.plain import decoding
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import STALLS, built, put, seeds, simulate
from tests.support.proofs.mutants import mutant


def fetches(rng, config, count, most):
    """Draw rows of whole parts; gives what is asked for, and the address of each part."""
    step, asked, places = config.part_bits // 8, [], []
    for _ in range(count):
        parts = rng.randint(1, most)
        address = rng.choice([0, 4096, 1 << 33, (1 << 63) + 512]) + step * rng.randrange(200)
        asked.append({"address": address, "length": parts * step // 16})
        places += [address + n * step for n in range(parts)]
    return asked, places


def once(places):
    """Take all parts as one pass."""
    return [(place, False, False) for place in places]


def in_passes(rng, places, *, most=120, times=3):
    """Cut parts into passes, each taken so many times at the most; gives (address, last, keep) of each."""
    turns, start = [], 0
    while start < len(places):
        of_pass = places[start : start + rng.randint(1, most)]
        start += len(of_pass)
        for left in reversed(range(rng.randint(1, times))):
            turns += [(place, n == len(of_pass) - 1, left > 0) for n, place in enumerate(of_pass)]
    return turns


def run(config, asked, turns, *, stall=0.0, stall_take=0.0, patience=0, seed=0, **model):
    """Take every part, after ``patience`` cycles; gives memory, and the cycles of takes."""
    reader = built(PartReader, config)
    memory = AxiMemory(reader.axi, stall=stall, seed=seed, **model)
    step, takes = config.part_bits // 8, []

    async def send(ctx):
        await put(ctx, reader.fetch, asked, stall=stall, seed=seed)

    async def take(ctx):
        rng, cycle, due = random.Random(seed), 0, {}
        while len(takes) < len(turns) or due:
            if cycle in due:
                wanted = memory.content(due.pop(cycle), step)
                assert ctx.get(reader.part).to_bytes(step, "little") == wanted
            wanted = cycle >= patience and ctx.get(reader.available) and rng.random() >= stall_take
            ctx.set(reader.take, wanted)
            if wanted:
                due[cycle + PartReader.LATENCY], last, keep = turns[len(takes)]
                ctx.set(reader.last, last)
                ctx.set(reader.keep, keep)
                takes.append(cycle)
            await ctx.tick()
            cycle += 1
        for _ in range(20):
            await ctx.tick()
            assert not ctx.get(reader.available)
        assert ctx.get(reader.bytes_useful) == step * sum(not keep for _, _, keep in turns)

    async def watch(ctx):
        while True:
            _, _, lost, ready = await ctx.tick().sample(reader.lost, reader.axi.rready)
            assert ready
            assert not lost

    simulate(reader, send, take, background=[*memory.testbenches(), watch])
    return memory, takes


@pytest.mark.sample(3)
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("seed", seeds(1, 6))
@pytest.mark.parametrize("stall_take", STALLS[:3])
@pytest.mark.parametrize("stall", STALLS[:3])
def test_any_rows(stall, stall_take, seed, times):
    """Also such as are taken several times."""
    rng = random.Random(seed)
    config = decoding(lanes=rng.choice([16, 32, 64]))
    asked, places = fetches(rng, config, 25, 40)
    turns = in_passes(rng, places, times=times)
    run(config, asked, turns, stall=stall, stall_take=stall_take, seed=seed, latency=(1, 40))


def test_what_is_kept_leaves_room_for_as_much():
    """As long as the longest pass that may be is taken for the first time, as many parts come behind it."""
    rng = random.Random(3)
    config = decoding()
    asked, places = fetches(rng, config, 60, 32)
    kept = [(place, n == KEPT_PARTS - 1, True) for n, place in enumerate(places[:KEPT_PARTS])]
    again = [(place, last, False) for place, last, _ in kept]
    turns = [*kept, *again, *in_passes(rng, places[KEPT_PARTS:])]
    memory, takes = run(config, asked, turns, patience=1500, latency=(20, 20))
    come = sum(cycle < takes[KEPT_PARTS] for cycle in memory.cycles["r"])
    assert 512 - 16 < come <= 512


def test_a_part_a_cycle_and_room_for_512():
    """More than 512 parts, none taken for long: all that may be asked for are; then no cycle is lost."""
    rng = random.Random(0)
    config = decoding()
    asked, places = fetches(rng, config, 60, 32)
    assert len(places) > 800
    # At the most so many behind a burst that there is no room for: bursts end where their blocks do.
    memory, takes = run(config, asked, once(places), patience=1500, latency=(20, 20))
    before = sum(cycle < 1500 for cycle in memory.cycles["r"])
    assert 512 - 16 < before <= 512
    assert all(later - earlier == 1 for earlier, later in pairwise(takes[:before]))


def test_latency():
    config = decoding()
    asked, places = fetches(random.Random(1), config, 30, 32)
    memory, takes = run(config, asked, once(places), latency=(9, 9))
    assert memory.cycles["ar"][0] == PartReader.ADDRESS_LATENCY
    assert takes[0] - memory.cycles["r"][0] == PartReader.DATA_LATENCY
    beats = memory.cycles["r"]
    assert [take - beat for take, beat in zip(takes, beats, strict=True)] == [2] * len(takes)


def asked_for(reader_type, *, taken):
    """Return the parts that a reader asks for when so many were taken: of rows that begin with a burst."""
    config = decoding()
    reader, size = reader_type(config), config.part_bits // 8
    memory = AxiMemory(reader.axi, latency=(1, 3))
    lost = []

    async def bench(ctx):
        await put(ctx, reader.fetch, [{"address": 1 << 20, "length": 640 * size // 16}])
        for cycle in range(1400):
            assert cycle < 800 or ctx.get(reader.available)
            ctx.set(reader.take, 800 <= cycle < 800 + taken)
            await ctx.tick()
            lost.append(ctx.get(reader.lost))

    simulate(reader, bench, background=memory.testbenches())
    return sum(beats for _, beats in memory.reads), any(lost)


@pytest.mark.parametrize(("taken", "expected"), [(0, 512), (15, 512), (16, 528), (31, 528)])
def test_a_burst_waits_for_room_for_all_of_it(taken, expected):
    assert asked_for(PartReader, taken=taken) == (expected, False)


def test_a_burst_without_room_for_its_last_part_is_missed():
    early = mutant(PartReader, "room >= self._BURST_BEATS", "room >= self._BURST_BEATS - 1")
    assert asked_for(early, taken=15)[0] > 512 + 15


@pytest.mark.parametrize("ends", [False, True])
def test_what_was_not_kept_need_not_say_where_it_ends(ends):
    """Queries say it of no pass; keys that are kept come again from their first part on all the same."""
    rng = random.Random(5)
    config = decoding()
    asked, places = fetches(rng, config, 3, 20)
    passes = [(places[:7], False), (places[7:16], True), (places[7:16], False), (places[16:], False)]
    turns = [
        (place, n == len(of_pass) - 1 and (keep or ends), keep)
        for of_pass, keep in passes
        for n, place in enumerate(of_pass)
    ]
    run(config, asked, turns, latency=(1, 9))
