"""The loader: every record to its table, every row to its RAM, and the end after the last one."""

import itertools
import random

import pytest

from hw.network.kernel.loader import ImageLoader
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


async def load(ctx, words, address, stall, seed, found):
    """Load one image; return the cycles from the last word to done."""
    ctx.set(DUT.address, address)
    ctx.set(DUT.records, len(words))
    ctx.set(DUT.start, 1)
    await ctx.tick()
    ctx.set(DUT.start, 0)
    assert ctx.get(DUT.loading)
    while not ctx.get(DUT.command.valid):
        await ctx.tick()
    command = DUT.command.payload
    assert (ctx.get(command.address), ctx.get(command.length)) == (address, 64 * len(words))
    for _ in range(1 + seed % 3):
        await ctx.tick()
        assert ctx.get(DUT.command.valid)
    ctx.set(DUT.command.ready, 1)
    await ctx.tick()
    ctx.set(DUT.command.ready, 0)
    assert not ctx.get(DUT.command.valid)
    await put(ctx, DUT.words, words, stall=stall, seed=seed)
    late = 0
    while not ctx.get(DUT.done):
        late += 1
        assert late < 20
        assert ctx.get(DUT.loading)
        await ctx.tick()
    await ctx.tick()
    assert not ctx.get(DUT.loading)
    assert not ctx.get(DUT.done)
    found.append(late)


def play(launches, stall, seed=0):
    writes, lates = [], []

    async def bench(ctx):
        for n, (words, _) in enumerate(launches):
            await load(ctx, words, 0x1_0000_0000 + 4096 * n, stall, seed + n, lates)

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
    launches = [launch(rng, count) for count in (1, 2, 30, 1, 12)]
    found, _ = play(launches, stall, seed)
    assert by_table(found) == by_table([write for _, writes in launches for write in writes])


def test_the_end_comes_after_the_last_row():
    plain = (5 << 4 | TableNumber.STEPS, [])
    rows = bits_of(SLOTS_LAYOUT, {"first": 3, "count": 8, "slots": list(range(8))}) << 4 | TableNumber.TAPS
    block = rows >> 4 << 4 | TableNumber.TABLES
    _, lates = play([([plain[0]], []), ([rows], []), ([block], [])], 0.0)
    assert lates == [cycles + ImageLoader.DONE_LATENCY - 1 for cycles in (1, 8, 1)]


@pytest.mark.parametrize("number", [TableNumber.READS, TableNumber.CHANNELS])
def test_a_record_takes_two_cycles(number):
    slots = bits_of(SLOTS_LAYOUT, {"first": 8, "count": 8, "slots": list(range(8))})
    launches = [([slots << 4 | number for n in range(10)], [])]
    cycles = []

    async def bench(ctx):
        await load(ctx, launches[0][0], 0, 0.0, 0, [])

    async def watch(ctx):
        tick, cycle = ctx.tick().sample(DUT.write, DUT.block.enable), 0
        while True:
            _, _, *writes = await tick
            if any(writes):
                cycles.append(cycle)
            cycle += 1

    simulate(DUT, bench, background=[watch])
    assert [after - before for before, after in itertools.pairwise(cycles)] == [2] * 9
