"""The loader: every record to its table, every row to its RAM, and the ends of opening and image."""

import itertools
import random

import pytest

from hw.network.kernel.loader import AHEAD, CHUNK, ImageLoader
from hw.network.program.image import bits_of
from hw.network.program.records import BLOCK_RAMS, FIRST_RAM, SLOTS_LAYOUT, TableNumber
from tests.support.gateware.streams import STALLS, put, seeds, simulate

DUT = ImageLoader()
RAMS = [number for number in TableNumber if number >= FIRST_RAM]
TABLES = [number for number in TableNumber if number < FIRST_RAM]


def drawn_record(rng):
    """Return a record, and the writes that it makes."""
    if rng.random() < 0.6:
        number, row = rng.choice(TABLES), rng.getrandbits(508)
        return row << 4 | number, [("row", number, row)]
    number, first, count = rng.choice(RAMS), rng.randrange(1 << 15), rng.randint(1, 8)
    slots = [rng.getrandbits(60) for _ in range(8)]
    bits = bits_of(SLOTS_LAYOUT, {"first": first, "count": count, "slots": slots})
    if number in BLOCK_RAMS:
        return bits << 4 | number, [("block", number, first // 8, *slots)]
    return bits << 4 | number, [("slot", number, first + n, slots[n]) for n in range(count)]


def launch(rng, count):
    records = [drawn_record(rng) for _ in range(count)]
    return [word for word, _ in records], [write for _, writes in records for write in writes]


async def load(ctx, words, opening, address, stall, seed, found):
    """Load one image; note the cycles from the last word to done, and to complete."""
    ctx.set(DUT.address, address)
    ctx.set(DUT.records, len(words))
    ctx.set(DUT.opening, opening)
    ctx.set(DUT.start, 1)
    await ctx.tick()
    ctx.set(DUT.start, 0)
    assert ctx.get(DUT.loading)
    assert not ctx.get(DUT.complete)
    await asked(ctx, address, opening, seed % 3)
    await put(ctx, DUT.words, words[:opening], stall=stall, seed=seed)
    late = await until(ctx, DUT.done)
    found.append(late)
    if opening == len(words):
        assert ctx.get(DUT.complete)
    await ctx.tick()
    assert not ctx.get(DUT.loading)
    assert not ctx.get(DUT.done)
    for _ in range(ImageLoader.BEHIND_LATENCY - 2):
        assert not ctx.get(DUT.command.valid)
        await ctx.tick()
    rest, asked_for = words[opening:], 0
    while asked_for < len(rest):
        while asked_for < len(rest) and await until(ctx, DUT.command.valid, most=6) < 6:
            count = min(CHUNK, len(rest) - asked_for)
            await asked(ctx, address + 64 * (opening + asked_for), count, (seed + asked_for) % 3)
            asked_for += count
        # All that may be on its way is.
        assert asked_for == min(AHEAD, len(rest))
        assert not ctx.get(DUT.complete)
        await put(ctx, DUT.words, rest[:asked_for], stall=stall, seed=seed)
        rest, asked_for = rest[asked_for:], 0
        address += 64 * min(AHEAD, len(words))
    if opening < len(words):
        found.append(await until(ctx, DUT.complete))
    assert not ctx.get(DUT.command.valid)


async def until(ctx, signal, *, most=20):
    """Wait for a signal, at most so many cycles, and return them."""
    late = 0
    while not ctx.get(signal) and late < most:
        late += 1
        await ctx.tick()
    return late


async def asked(ctx, address, records, pause):
    """Take the command for so many records."""
    await until(ctx, DUT.command.valid)
    command = DUT.command.payload
    for _ in range(1 + pause):
        assert ctx.get(DUT.command.valid)
        assert (ctx.get(command.address), ctx.get(command.length)) == (address, 64 * records)
        await ctx.tick()
    ctx.set(DUT.command.ready, 1)
    await ctx.tick()
    ctx.set(DUT.command.ready, 0)
    assert not ctx.get(DUT.command.valid)


def play(launches, stall, seed=0, openings=None):
    writes, lates = [], []

    async def bench(ctx):
        for n, (words, _) in enumerate(launches):
            opening = openings[n] if openings else len(words)
            await load(ctx, words, opening, 0x1_0000_0000 + 4096 * n, stall, seed + n, lates)

    async def watch(ctx):
        slot, block = DUT.slot, DUT.block
        signals = (DUT.write, DUT.table, DUT.row, slot.enable, slot.table, slot.row, slot.data, block)
        tick = ctx.tick().sample(*signals)
        while True:
            _, _, write, table, row, enable, ram, index, datum, group = await tick
            if write:
                writes.append(("row", table, row))
            if enable:
                writes.append(("slot", ram, index, datum))
            if group.enable:
                writes.append(("block", group.table, group.block, *group.data))

    simulate(DUT, bench, background=[watch])
    return writes, lates


def by_table(writes):
    """Return the writes of each table, in order: the two ports differ by a cycle."""
    tables = {}
    for write in writes:
        tables.setdefault(write[:2], []).append(write)
    return tables


@pytest.mark.parametrize("stall", STALLS)
@pytest.mark.parametrize("seed", seeds(1, 5))
def test_records_reach_their_tables(stall, seed):
    rng = random.Random(seed)
    counts, openings = (1, 2, 30, 1, 12, 200, 2), (1, 1, 29, 1, 12, 3, 1)
    launches = [launch(rng, count) for count in counts]
    found, _ = play(launches, stall, seed, openings)
    assert by_table(found) == by_table([write for _, writes in launches for write in writes])


def test_the_end_comes_after_the_last_row():
    plain = (5 << 4 | TableNumber.STEPS, [])
    rows = bits_of(SLOTS_LAYOUT, {"first": 3, "count": 8, "slots": list(range(8))}) << 4 | TableNumber.TAPS
    block = rows >> 4 << 4 | TableNumber.TABLES
    launches = [([plain[0]], []), ([rows], []), ([block], []), ([block, rows], [])]
    _, lates = play(launches, 0.0, openings=(1, 1, 1, 1))
    assert lates == [cycles + ImageLoader.DONE_LATENCY - 1 for cycles in (1, 8, 1, 1, 8)]


@pytest.mark.parametrize("number", [TableNumber.READS, TableNumber.CHANNELS])
def test_a_record_takes_two_cycles(number):
    slots = bits_of(SLOTS_LAYOUT, {"first": 8, "count": 8, "slots": list(range(8))})
    launches = [([slots << 4 | number for n in range(10)], [])]
    cycles = []

    async def bench(ctx):
        await load(ctx, launches[0][0], 10, 0, 0.0, 0, [])

    async def watch(ctx):
        tick, cycle = ctx.tick().sample(DUT.write, DUT.block.enable), 0
        while True:
            _, _, *writes = await tick
            if any(writes):
                cycles.append(cycle)
            cycle += 1

    simulate(DUT, bench, background=[watch])
    assert [after - before for before, after in itertools.pairwise(cycles)] == [2] * 9
