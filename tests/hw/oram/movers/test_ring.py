"""Commands from a ring that a host fills in its own time, or from a stream; responses into a ring."""

import itertools
import random

import pytest
from amaranth.hdl import Cat

from hw.oram.config import OramConfig
from hw.oram.movers.ring.command_reader import CommandReader
from hw.oram.movers.ring.command_stream import CommandStream
from hw.oram.movers.ring.response_writer import ResponseWriter
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import seeds, set_all, simulate

BEAT = 64
SLOTS = 32
#: Records of one beat and of two; eight are asked for or held at most.
SHAPES = {value: OramConfig(log_n=8, inflight=4, value_bytes=value) for value in (8, 64)}


def record(config, sequence, rng, *, stop=False):
    """Make a record: sequence number, flags, and what is sealed."""
    head = sequence.to_bytes(8, "little") + int(stop).to_bytes(8, "little")
    return head + rng.randbytes(config.command_bytes - len(head))


class Host:
    """Fills slots of the ring in order, so many cycles apart, behind the engine by less than the ring."""

    def __init__(self, memory, base, records, size, pauses):
        self.memory, self.base, self.records, self.size = memory, base, records, size
        self.pauses, self.next, self.wait = pauses, 0, 0

    def step(self, taken):
        self.wait -= self.wait > 0
        if self.next < len(self.records) and not self.wait and self.next < taken + SLOTS:
            at = self.base + self.next % SLOTS * self.size
            self.memory.bytes.update(enumerate(self.records[self.next], at))
            self.wait = self.pauses()
            self.next += 1


async def launch(ctx, dut, take, *, operations=0, host=None, limit=20_000, spare=20):
    """Start, take what is there record by record, and end so many cycles after the launch's end."""
    there, words, t, ended = 0, [], 0, None
    tick = ctx.tick().sample(Cat(dut.there, dut.busy, dut.o.valid), dut.o.payload)
    ctx.set(dut.operations, operations)
    while ended is None or t < ended + spare:
        taking = there * take.beats > len(words) and take()
        set_all(ctx, [(dut.start, t == 0), (dut.o.ready, taking)])
        if host is not None:
            host.step(len(words) // take.beats)
        _, _, flags, word = await tick
        whole, busy, valid = (flags >> n & 1 for n in range(3))
        if taking and valid:
            words.append(word.to_bytes(BEAT, "little"))
        there += whole
        if t > 1 and not busy and ended is None:
            ended = t
        t += 1
        assert t < limit
    assert len(words) <= there * take.beats
    return b"".join(words), there


class Take:
    """Takes a beat in some cycles."""

    def __init__(self, rng, share, beats):
        self.rng, self.share, self.beats = rng, share, beats

    def __call__(self):
        return self.rng.random() < self.share


@pytest.mark.parametrize("pauses", [0, 40, pytest.param(400, marks=pytest.mark.soak)])
@pytest.mark.parametrize("value", SHAPES)
@pytest.mark.parametrize("seed", seeds(1, 8))
def test_ring_in_two_launches(value, pauses, seed):
    config = SHAPES[value]
    rng = random.Random(f"{value} {pauses} {seed}")
    dut = CommandReader(config)
    base, size, counts = 0x2_0040, config.command_bytes, (21, 19)
    memory = AxiMemory(dut.axi, stall=0.4 * (seed % 2), seed=seed)
    sent = [record(config, n, rng) for n in range(sum(counts))]
    # The first launch has a number of commands; the second ends with a record that is none.
    records = [*sent, record(config, len(sent), rng, stop=True)]
    host = Host(memory, base, records, size, lambda: rng.randrange(2 * pauses + 1))
    got = []

    async def bench(ctx):
        set_all(ctx, [(dut.base, base), (dut.mask, SLOTS - 1), (dut.poll, 30)])
        take = Take(rng, rng.choice([1.0, 0.2]), size // BEAT)
        for operations in (counts[0], 0):
            words, there = await launch(ctx, dut, take, operations=operations, host=host, spare=200)
            got.append(words)
            assert there == counts[len(got) - 1]
            assert ctx.get(dut.sequence) == sum(counts[: len(got)])

    simulate(dut, bench, background=memory.testbenches())
    assert got == [b"".join(sent[: counts[0]]), b"".join(sent[counts[0] :])]
    # Never more asked for than there is room, and nothing outside the ring.
    assert all(0 <= at - base < SLOTS * size for at, _ in memory.reads)


@pytest.mark.parametrize("value", SHAPES)
def test_requests_run_ahead_by_the_room(value):
    config = SHAPES[value]
    rng = random.Random(value)
    dut = CommandReader(config)
    memory = AxiMemory(dut.axi)
    records = [record(config, n, rng) for n in range(SLOTS)]
    memory.bytes.update(enumerate(b"".join(records)))

    async def bench(ctx):
        set_all(ctx, [(dut.mask, SLOTS - 1), (dut.start, 1), (dut.operations, SLOTS)])
        await ctx.tick()
        ctx.set(dut.start, 0)
        await ctx.tick().repeat(100)
        asked = len(memory.reads)
        assert asked == config.command_records, "as many as there is room for"
        for taken in range(1, 4):
            ctx.set(dut.o.ready, 1)
            await ctx.tick().repeat(config.command_bytes // BEAT)
            ctx.set(dut.o.ready, 0)
            await ctx.tick().repeat(20)
            assert len(memory.reads) == asked + taken, "one more for each that is taken"

    simulate(dut, bench, background=memory.testbenches())
    first = memory.cycles["ar"][0]
    assert first == CommandReader.ADDRESS_LATENCY
    ahead = memory.cycles["ar"][: config.command_records]
    assert ahead == list(range(first, first + len(ahead))), "one a cycle"


def test_a_record_that_is_not_there_is_asked_for_again_after_the_poll():
    config = SHAPES[8]
    rng = random.Random(0)
    dut = CommandReader(config)
    memory = AxiMemory(dut.axi, latency=(5, 5))
    there = []

    async def bench(ctx):
        set_all(ctx, [(dut.mask, SLOTS - 1), (dut.poll, 100), (dut.start, 1)])
        await ctx.tick()
        ctx.set(dut.start, 0)
        tick = ctx.tick().sample(dut.there)
        for t in range(1, 700):
            if t == 350:
                memory.bytes.update(enumerate(record(config, 0, rng)))
            _, _, whole = await tick
            there.extend([t] * whole)

    simulate(dut, bench, background=memory.testbenches())
    room = config.command_records
    asked, came = memory.cycles["ar"], memory.cycles["r"]
    assert [at for at, _ in memory.reads[:room]] == [BEAT * n for n in range(room)]
    # Seen two cycles after it came; asked for again, alone, when all behind it came and the time is over.
    again = asked[room:]
    assert again[0] == came[0] + 2 + 1 + 100 + CommandReader.ADDRESS_LATENCY
    polls = again[:3]
    assert [b - a for a, b in itertools.pairwise(polls)] == [again[1] - again[0]] * 2
    assert memory.reads[room + 2] == (0, 1)
    assert len(there) == 1
    found = next(n for n, cycle in enumerate(came) if cycle + CommandReader.THERE_LATENCY == there[0])
    assert memory.reads[found] == (0, 1)
    # Then ahead again, from the next one on.
    assert [at for at, _ in memory.reads[found + 1 : found + room]] == [BEAT * n for n in range(1, room)]


def test_nothing_is_asked_for_after_a_halt():
    config = SHAPES[8]
    dut = CommandReader(config)
    memory = AxiMemory(dut.axi)

    async def bench(ctx):
        set_all(ctx, [(dut.mask, SLOTS - 1), (dut.poll, 1), (dut.start, 1)])
        await ctx.tick()
        ctx.set(dut.start, 0)
        await ctx.tick().repeat(100)
        ctx.set(dut.halt, 1)
        await ctx.tick().repeat(CommandReader.ADDRESS_LATENCY)
        asked = len(memory.reads)
        assert asked > config.command_records
        await ctx.tick().repeat(200)
        assert len(memory.reads) == asked

    simulate(dut, bench, background=memory.testbenches())


@pytest.mark.parametrize("value", SHAPES)
@pytest.mark.parametrize("stall", [0.0, 0.6])
def test_stream(value, stall):
    config = SHAPES[value]
    rng = random.Random(value)
    dut = CommandStream(config)
    counts = (13, 9)
    sent = [record(config, rng.getrandbits(64), rng) for _ in range(sum(counts))]
    records = [*sent, record(config, 0, rng, stop=True), record(config, 0, rng)]
    data = b"".join(records)
    beats = [int.from_bytes(data[n : n + BEAT], "little") for n in range(0, len(data), BEAT)]
    got = []

    async def feed(ctx):
        # Whatever comes behind the stop stays where it is.
        for at, beat in enumerate(beats):
            while rng.random() < stall:
                await ctx.tick()
            set_all(ctx, [(dut.i.valid, 1), (dut.i.payload, beat)])
            if at == len(beats) - config.command_bytes // BEAT:
                return
            await ctx.tick().until(dut.i.ready)
            ctx.set(dut.i.valid, 0)

    async def bench(ctx):
        take = Take(rng, 1 - stall, config.command_bytes // BEAT)
        for operations in (counts[0], 0):
            words, there = await launch(ctx, dut, take, operations=operations, spare=120)
            got.append(words)
            assert there == counts[len(got) - 1]
        assert not ctx.get(dut.i.ready)

    simulate(dut, bench, feed)
    assert got == [b"".join(sent[: counts[0]]), b"".join(sent[counts[0] :])]


def test_responses_go_around_the_ring():
    config = SHAPES[64]
    rng = random.Random(1)
    dut = ResponseWriter(config)
    base, size, slots, count = 0x4_0000, config.command_bytes, 8, 21
    memory = AxiMemory(dut.axi, stall=0.3)
    responses = [rng.randbytes(size) for _ in range(count)]

    async def bench(ctx):
        set_all(ctx, [(dut.base, base), (dut.mask, slots - 1)])
        tick = ctx.tick().sample(dut.written)
        written = 0
        for response in responses:
            driven = [(dut.announce, 1)] + [(dut.announce, 0)] * 8
            driven += [
                (dut.beat.payload, int.from_bytes(response[n : n + BEAT], "little"))
                for n in range(0, size, BEAT)
            ]
            for signal, value in driven:
                set_all(ctx, [(signal, value), (dut.beat.valid, signal is dut.beat.payload)])
                written += (await tick)[2]
            ctx.set(dut.beat.valid, 0)
        for _ in range(100):
            written += (await tick)[2]
        assert written == count

    simulate(dut, bench, background=memory.testbenches())
    assert [at for at, _ in memory.writes] == [base + n % slots * size for n in range(count)]
    for n in range(count - slots, count):
        assert memory.content(base + n % slots * size, size) == responses[n]
