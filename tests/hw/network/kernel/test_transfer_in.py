"""Transfers from memory: every word at its place, begun and complete when the sequencer may count on it."""

import random
from collections import deque
from dataclasses import replace

import pytest

from hw.network.kernel.transfer_in import TransferIn
from hw.network.program.program import Gathered, Transfer
from tests.hw.network.kernel.transfers import (
    BASE,
    drawn_transfers,
    may_run,
    raise_counts,
    read_payload,
    set_counts,
)
from tests.hw.network.program.example import CONFIG
from tests.support.gateware.axi_memory import AxiMemory, untouched
from tests.support.gateware.streams import Side, exchange_within, seeds, simulate

DUTS = {}
#: Probabilities that memory and scratchpad pause, and a seed.
STALLED = [
    (0.0, 0.0, 0),
    (0.5, 0.7, 1),
    *(pytest.param(0.5, 0.0, n, marks=pytest.mark.soak) for n in range(9)),
]


def dut_of(port_bytes):
    """Return the engine of a port, the same one each time."""
    if port_bytes not in DUTS:
        ports = {16: 4, 32: 2, 64: 1}[port_bytes]
        DUTS[port_bytes] = TransferIn(replace(CONFIG, port_bytes=port_bytes, weight_ports=ports))
    return DUTS[port_bytes]


class Scratchpad:
    """Takes words and grants them later, in order."""

    def __init__(self, dut, stall, seed):
        self.dut, self.stall, self.rng = dut, stall, random.Random(seed)
        self.words = {}
        self.granted = 0

    async def serve(self, ctx):
        port = self.dut.write
        write = port.write
        pending = deque()
        tick = ctx.tick().sample(
            write.valid,
            write.payload.address,
            write.payload.enable,
            write.payload.data,
            self.dut.completed,
            self.dut.start,
        )
        while True:
            takes = len(pending) < 17 and self.rng.random() >= self.stall
            grants = bool(pending) and self.rng.random() >= self.stall
            ctx.set(write.ready, takes)
            ctx.set(port.written, grants)
            ctx.set(port.idle, not pending)
            _, _, valid, address, enable, data, completed, starting = await tick
            if not starting:  # the count is that of the launch before
                assert completed == sum(self.granted >= last for last in self.lasts), "early or late"
            if grants:
                address_, word = pending.popleft()
                self.words[address_] = word
                self.granted += 1
            if valid and takes:
                assert (enable, address % 4) == (15, 0)
                pending.append((address // 4, sum(int(part) << 128 * n for n, part in enumerate(data))))

    def expect(self, transfers):
        """Note the number of words after which each transfer is complete."""
        self.lasts = [sum(each.words for each in transfers[: n + 1]) for n in range(len(transfers))]
        self.granted = 0


def word_at(address):
    return sum(untouched(address + n) << 8 * n for n in range(64))


async def load_behind(ctx, dut, rng, sizes, stall, *, address=0x3_0000_0000):
    """Read chunks of these words for the loader, beside transfers."""
    places, at = [], address
    for size in sizes:
        places.append({"address": at, "length": 64 * size})
        at += 64 * size
    load = Side(dut.load, items=places, stall=stall)
    words = Side(dut.loaded, count=sum(sizes), stall=stall)
    await exchange_within(ctx, {"load": load, "words": words}, seed=rng.randrange(99))
    assert words.received == [word_at(address + 64 * n) for n in range(sum(sizes))]


async def launch(ctx, dut, memory, pad, rng, transfers, stall, *, records=0):
    """Load an image, then run transfers."""
    set_counts(ctx, dut, (0, 0, 0, 0))
    if records:
        ctx.set(dut.loading, 1)
        load = Side(dut.load, items=[{"address": 0x2_0000_0000, "length": 64 * records}])
        words = Side(dut.loaded, count=records, stall=stall)
        await exchange_within(ctx, {"load": load, "words": words}, seed=rng.randrange(99))
        assert words.received == [word_at(0x2_0000_0000 + 64 * n) for n in range(records)]
        ctx.set(dut.loading, 0)
    ctx.set(dut.start, 1)
    await ctx.tick()
    pad.expect(transfers)
    ctx.set(dut.start, 0)
    memory.reads.clear()


@pytest.mark.sample(2)
@pytest.mark.parametrize("port_bytes", [16, 32, 64])
@pytest.mark.parametrize(("stall", "write_stall", "seed"), STALLED)
def test_transfers(port_bytes, stall, write_stall, seed):
    dut, rng = dut_of(port_bytes), random.Random(seed)
    memory = AxiMemory(dut.axi, stall=stall, seed=seed)
    pad = Scratchpad(dut, write_stall, seed)
    pad.lasts = []
    lists = [drawn_transfers(rng, count, CONFIG) for count in (1, 12, 5)]
    begun, loaded, ended = [], [], []

    async def bench(ctx):
        ctx.set(dut.base, BASE)
        for n, transfers in enumerate(lists):
            await launch(ctx, dut, memory, pad, rng, transfers, stall, records=n and 7)
            begun.append(n)
            await exchange_within(ctx, {"i": Side(dut.i, items=[read_payload(each) for each in transfers])})
            while pad.granted < pad.lasts[-1] or len(loaded) <= n:
                await ctx.tick()
            await ctx.tick()
            assert ctx.get(dut.completed) == len(transfers)
            wanted = {
                each.address + k: word_at(BASE + 64 * (each.dram_address + k))
                for each in transfers
                for k in range(each.words)
            }
            assert {at: pad.words[at] for at in wanted} == wanted
            pad.words.clear()
            ended.append(n)
            set_counts(ctx, dut, (0, 0, 0, 0))

    async def steps(ctx):
        for n, transfers in enumerate(lists):
            while len(begun) <= n:
                await ctx.tick()
            await raise_counts(ctx, dut, transfers[-1], rng)
            while len(ended) <= n:
                await ctx.tick()

    async def load(ctx):
        for n in range(len(lists)):
            while len(begun) <= n:
                await ctx.tick()
            await load_behind(ctx, dut, rng, [rng.choice([8, 8, rng.randint(1, 8)]) for _ in range(5)], stall)
            loaded.append(n)

    async def watch(ctx):
        """No address of a transfer is on the bus before its counts."""
        tick = ctx.tick().sample(dut.axi.arvalid, dut.axi.araddr, dut.counts, dut.loading)
        while True:
            _, _, valid, address, counts, loading = await tick
            if valid and not loading and address >> 32 != 3:
                word = (address - BASE) // 64
                own = [
                    each
                    for each in lists[len(ended)]
                    if each.dram_address <= word < each.dram_address + each.words
                ]
                assert len(own) == 1
                assert may_run(own[0], counts)

    simulate(dut, bench, background=[*memory.testbenches(), pad.serve, steps, load, watch], limit=20_000)


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_a_word_of_the_port_a_cycle(seed):
    dut, rng = dut_of(32), random.Random(seed)
    memory = AxiMemory(dut.axi, seed=seed)
    pad = Scratchpad(dut, 0.0, seed)
    transfers = [each for each in drawn_transfers(rng, 12, CONFIG) if each.words > 3]
    pad.lasts = []
    cycles = []

    async def bench(ctx):
        ctx.set(dut.base, BASE)
        await launch(ctx, dut, memory, pad, rng, transfers, 0.0)
        set_counts(ctx, dut, (60, 60, 60, 60))
        await exchange_within(ctx, {"i": Side(dut.i, items=[read_payload(each) for each in transfers])})
        while pad.granted < pad.lasts[-1]:
            await ctx.tick()

    async def watch(ctx):
        tick, cycle = ctx.tick().sample(dut.write.write.valid), 0
        while True:
            _, _, valid = await tick
            if valid:
                cycles.append(cycle)
            cycle += 1

    simulate(dut, bench, background=[*memory.testbenches(), pad.serve, watch])
    assert len(cycles) == pad.lasts[-1]
    # Latencies of bursts differ, and their data come in order.
    assert cycles[-1] - cycles[0] <= 2 * len(cycles) + 12


def gather(address, numbers, *, dram, table, table_rows, row_words):
    """Return a transfer of rows, and the place in memory of each of its words."""
    rows = Gathered(rows=len(numbers), table=table, table_rows=table_rows)
    transfer = Transfer(dram_address=dram, address=address, words=row_words * len(numbers), gathered=rows)
    found = [min(number, table_rows - 1) for number in numbers]
    return transfer, [table + row * row_words + word for row in found for word in range(row_words)]


@pytest.mark.parametrize(("stall", "write_stall", "seed"), [(0.0, 0.0, 0), (0.4, 0.5, 1)])
def test_rows_by_their_numbers(stall, write_stall, seed):
    """Rows between whole transfers: fewer than a word of numbers, one, and several; none beyond the table."""
    dut, rng = dut_of(32), random.Random(seed)
    memory = AxiMemory(dut.axi, stall=stall, seed=seed)
    pad = Scratchpad(dut, write_stall, seed)
    pad.lasts = []
    transfers, wanted, loaded = [Transfer(dram_address=3, address=0, words=2)], {0: 3, 1: 4}, []
    for dram, (count, row_words) in zip(
        (8000, 8010, 8020, 8030), ((1, 3), (16, 1), (3, 5), (35, 2)), strict=True
    ):
        numbers = [rng.choice([0, 1, 38, 39, rng.randrange(40)]) for _ in range(count)]
        numbers[-1] = rng.choice([40, 2**31, 2**32 - 1])
        for place, number in enumerate(numbers):
            for part in range(4):
                memory.bytes[BASE + 64 * dram + 4 * place + part] = number >> 8 * part & 255
        address = 3 + max(wanted)
        made, places = gather(
            address, numbers, dram=dram, table=1000 + dram % 97, table_rows=40, row_words=row_words
        )
        wanted |= {address + n: place for n, place in enumerate(places)}
        address = 2 + max(wanted)
        transfers += [made, Transfer(dram_address=dram % 50, address=address, words=1)]
        wanted[address] = dram % 50

    async def bench(ctx):
        ctx.set(dut.base, BASE)
        await launch(ctx, dut, memory, pad, rng, transfers, stall)
        set_counts(ctx, dut, (60, 60, 60, 60))
        await exchange_within(ctx, {"i": Side(dut.i, items=[read_payload(each) for each in transfers])})
        while pad.granted < pad.lasts[-1]:
            await ctx.tick()
        await ctx.tick()
        while not loaded:
            await ctx.tick()
        assert ctx.get(dut.completed) == len(transfers)
        assert pad.words == {at: word_at(BASE + 64 * place) for at, place in wanted.items()}

    async def load(ctx):
        while not ctx.get(dut.start):
            await ctx.tick()
        await load_behind(ctx, dut, rng, [8] * 12 + [3], stall)
        loaded.append(1)

    simulate(dut, bench, background=[*memory.testbenches(), pad.serve, load], limit=20_000)


def test_a_transfer_that_may_run_asks_before_the_loader():
    dut = dut_of(32)
    memory = AxiMemory(dut.axi, latency=(40, 40))
    pad = Scratchpad(dut, 0.0, 0)
    pad.lasts = []
    transfers = [Transfer(dram_address=40 * n, address=40 * n, words=40) for n in range(4)]
    given = []

    async def bench(ctx):
        ctx.set(dut.base, BASE)
        await launch(ctx, dut, memory, pad, random.Random(0), transfers, 0.0)
        set_counts(ctx, dut, (60, 60, 60, 60))
        given.append(1)
        await exchange_within(ctx, {"i": Side(dut.i, items=[read_payload(each) for each in transfers])})
        while pad.granted < pad.lasts[-1] or len(given) < 2:
            await ctx.tick()
        behind = [address >> 32 == 3 for address, _ in memory.reads]
        assert behind == sorted(behind)
        assert sum(behind) >= 4

    async def load(ctx):
        while not given:
            await ctx.tick()
        for _ in range(4):  # a row passes its gate
            await ctx.tick()
        await load_behind(ctx, dut, random.Random(0), [8] * 4, 0.0)
        given.append(2)

    simulate(dut, bench, background=[*memory.testbenches(), pad.serve, load])


def test_rows_come_as_fast_as_the_port():
    """Numbers of the first word wait for the memory; later ones are there before the rows."""
    dut = dut_of(32)
    memory = AxiMemory(dut.axi)
    pad = Scratchpad(dut, 0.0, 0)
    pad.lasts = []
    transfer, _ = gather(0, [0] * 48, dram=0, table=100, table_rows=40, row_words=5)
    cycles = []

    async def bench(ctx):
        ctx.set(dut.base, BASE)
        await launch(ctx, dut, memory, pad, random.Random(0), [transfer], 0.0)
        set_counts(ctx, dut, (60, 60, 60, 60))
        await exchange_within(ctx, {"i": Side(dut.i, items=[read_payload(transfer)])})
        while pad.granted < pad.lasts[-1]:
            await ctx.tick()

    async def watch(ctx):
        tick, cycle = ctx.tick().sample(dut.write.write.valid), 0
        while True:
            _, _, valid = await tick
            if valid:
                cycles.append(cycle)
            cycle += 1

    simulate(dut, bench, background=[*memory.testbenches(), pad.serve, watch])
    assert len(cycles) == transfer.words
    # Two cycles a word, and the words of the numbers.
    assert cycles[-1] - cycles[0] <= 2 * (transfer.words + 3) + 12
