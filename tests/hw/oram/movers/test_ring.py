"""Commands from a ring that a host fills at its own pace, or from a stream; responses into a ring."""

import itertools
import random
from dataclasses import replace

import pytest
from amaranth.hdl import Cat

from hw.oram.config import OramConfig
from hw.oram.movers.ring.command_reader import CommandReader
from hw.oram.movers.ring.response_writer import ResponseWriter
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import built, seeds, set_all, simulate

BEAT = 64
SLOTS = 32
#: Records of one beat, of two and of three; at most 16 are requested or held, four make a group.
SHAPES = {value: OramConfig(log_n=8, inflight=8, value_bytes=value) for value in (8, 64, 128)}
GROUP = 4


def record(config, sequence, rng, *, stop=False):
    """Make a record: sequence number, flags, and random text."""
    head = sequence.to_bytes(8, "little") + int(stop).to_bytes(8, "little")
    return head + rng.randbytes(config.command_bytes - len(head))


class Host:
    """Fills slots of the ring in order, with pauses, less than a ring behind the engine."""

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
    """Start, take the records that arrive, and end ``after`` cycles after the launch's end."""
    there, words, t, ended = 0, [], 0, None
    tick = ctx.tick().sample(Cat(dut.arrived, dut.busy, dut.o.valid), dut.o.payload)
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
    dut = built(CommandReader, config)
    base, size, counts = 0x2_0040, config.command_bytes, (21, 19)
    memory = AxiMemory(dut.axi, stall=0.4 * (seed % 2), seed=seed)
    sent = [record(config, n, rng) for n in range(sum(counts))]
    # The first launch has a number of commands; the second ends with a stop record.
    records = [*sent, record(config, len(sent), rng, stop=True)]
    host = Host(memory, base, records, size, lambda: rng.randrange(2 * pauses + 1))
    got = []

    async def bench(ctx):
        set_all(ctx, [(dut.base, base), (dut.mask, SLOTS - 1), (dut.poll, 30)])
        take = Take(rng, rng.choice([1.0, 0.2]), size // BEAT)
        for operations in (counts[0], 0):
            words, there = await launch(ctx, dut, take, operations=operations, host=host, spare=500)
            got.append(words)
            assert there == counts[len(got) - 1]
            assert ctx.get(dut.sequence) == sum(counts[: len(got)])

    simulate(dut, bench, background=memory.testbenches())
    assert got == [b"".join(sent[: counts[0]]), b"".join(sent[counts[0] :])]
    # Never more requests than room, and none outside of the ring.
    assert all(0 <= at - base < SLOTS * size for at, _ in memory.reads)


def groups(first, end):
    """Return the bursts that request the records ``first`` to ``end`` of one beat."""
    ends = [*range(first + GROUP - first % GROUP, end, GROUP), end]
    return [
        (at % SLOTS * BEAT, up_to - at) for at, up_to in zip([first, *ends], ends, strict=False) if up_to > at
    ]


def test_what_is_asked_for_is_the_launches_own_whatever_ran_before():
    """Exactly the launch's records, wherever launches end in a group; and groups again after a stop."""
    config, rng = SHAPES[8], random.Random(3)
    dut = built(CommandReader, config)
    memory = AxiMemory(dut.axi)
    counts = (3, 1, 2, 7, GROUP, 1, 0, 6, 5)  # 0: until a stop record, behind two
    ends = list(itertools.accumulate(count or 2 for count in counts))

    async def bench(ctx):
        set_all(ctx, [(dut.mask, SLOTS - 1), (dut.poll, 3)])
        take = Take(rng, 1.0, 1)
        for count, first, end in zip(counts, [0, *ends], ends, strict=False):
            for n in range(first, end):
                memory.bytes.update(enumerate(record(config, n, rng), n % SLOTS * BEAT))
            if not count:
                stop = record(config, end, rng, stop=True)
                memory.bytes.update(enumerate(stop, end % SLOTS * BEAT))
            before = len(memory.reads)
            _, there = await launch(ctx, dut, take, operations=count, spare=60)
            assert there == end - first
            asked = memory.reads[before:]
            assert (asked == groups(first, end)) if count else (asked[0] == groups(first, first + 8)[0])

    simulate(dut, bench, background=memory.testbenches())


@pytest.mark.parametrize("value", [8, 64])
def test_requests_run_ahead_by_the_room(value):
    config, beats = SHAPES[value], SHAPES[value].command_bytes // BEAT
    rng = random.Random(value)
    dut = built(CommandReader, config)
    memory = AxiMemory(dut.axi)
    records = [record(config, n, rng) for n in range(SLOTS)]
    memory.bytes.update(enumerate(b"".join(records)))

    async def bench(ctx):
        set_all(ctx, [(dut.mask, SLOTS - 1), (dut.start, 1), (dut.operations, SLOTS)])
        await ctx.tick()
        ctx.set(dut.start, 0)
        await ctx.tick().repeat(100)
        asked = len(memory.reads)
        assert asked == config.command_records // GROUP, "as many as there is room for"
        for taken in range(1, 3 * GROUP):
            ctx.set(dut.o.ready, 1)
            await ctx.tick().repeat(beats)
            ctx.set(dut.o.ready, 0)
            await ctx.tick().repeat(20)
            assert len(memory.reads) == asked + taken // GROUP, "a group when there is room for all of it"

    simulate(dut, bench, background=memory.testbenches())
    assert memory.reads == [(at * beats * BEAT, GROUP * beats) for at in range(0, 24, GROUP)]
    first = CommandReader.SPACING + CommandReader.ADDRESS_LATENCY
    ahead = memory.cycles["ar"][: config.command_records // GROUP]
    assert ahead == list(range(first, first + len(ahead) * CommandReader.SPACING, CommandReader.SPACING))


def test_a_record_that_is_not_there_is_asked_for_again_after_the_poll():
    config = replace(SHAPES[8], inflight=64)  # groups of 16, room for eight
    rng = random.Random(0)
    dut = built(CommandReader, config)
    memory = AxiMemory(dut.axi, latency=(5, 5))
    there = []

    async def bench(ctx):
        set_all(ctx, [(dut.mask, 127), (dut.poll, 100), (dut.start, 1)])
        await ctx.tick()
        ctx.set(dut.start, 0)
        tick = ctx.tick().sample(dut.arrived)
        for t in range(1, 700):
            if t == 350:
                memory.bytes.update(enumerate(record(config, 0, rng)))
            _, _, whole = await tick
            there.extend([t] * whole)

    simulate(dut, bench, background=memory.testbenches())
    asked, came = memory.cycles["ar"], memory.cycles["r"]
    # Compared two cycles after its arrival; five groups were requested by then, one every third cycle.
    before = [cycle for cycle in asked if cycle - CommandReader.ADDRESS_LATENCY <= came[0] + 2]
    assert before == list(range(before[0], before[0] + 15, 3))
    assert memory.reads[:5] == [(1024 * n, 16) for n in range(5)]
    # The retry, alone, when all later records have arrived and the poll time is over.
    again = asked[5:]
    assert again[0] == came[0] + 2 + 100 + CommandReader.RETURN_LATENCY + CommandReader.ADDRESS_LATENCY
    assert [b - a for a, b in itertools.pairwise(again[:3])] == [again[0] - came[0] + 5] * 2
    assert len(there) == 1
    found = next(n for n, cycle in enumerate(came) if cycle + CommandReader.ARRIVED_LATENCY == there[0])
    polls = found - 5 * 16 + 1
    assert memory.reads[5 : 5 + polls] == [(0, 1)] * polls
    # Prefetching continues with the next record.
    assert memory.reads[5 + polls : 7 + polls] == [(BEAT, 15), (1024, 16)]
    assert again[polls] == came[found] + 2 + CommandReader.SPACING + CommandReader.ADDRESS_LATENCY


def test_nothing_is_asked_for_after_a_halt():
    config = SHAPES[8]
    dut = built(CommandReader, config)
    memory = AxiMemory(dut.axi)

    async def bench(ctx):
        set_all(ctx, [(dut.mask, SLOTS - 1), (dut.poll, 1), (dut.start, 1)])
        await ctx.tick()
        ctx.set(dut.start, 0)
        await ctx.tick().repeat(100)
        ctx.set(dut.halt, 1)
        await ctx.tick().repeat(CommandReader.ADDRESS_LATENCY)
        asked = len(memory.reads)
        assert asked > config.command_records // GROUP
        await ctx.tick().repeat(200)
        assert len(memory.reads) == asked

    simulate(dut, bench, background=memory.testbenches())


def test_all_bits_of_a_number_are_compared():
    """A number with one wrong bit is none, and its stop flag counts for nothing."""
    rng = random.Random(1)
    dut = built(CommandReader, SHAPES[8])
    memory = AxiMemory(dut.axi, latency=(2, 2))
    there = []

    async def bench(ctx):
        set_all(ctx, [(dut.mask, 0), (dut.poll, 1), (dut.start, 1)])
        await ctx.tick()
        ctx.set(dut.start, 0)
        tick = ctx.tick().sample(dut.arrived)
        for number in (*(1 << bit for bit in range(64)), (1 << 64) - 1, 0):
            memory.bytes.update(enumerate(record(SHAPES[8], number, rng, stop=bool(number % 3))))
            looks = len(memory.reads)
            while len(memory.reads) < looks + 2:
                _, _, whole = await tick
                there.extend([number] * whole)
            assert ctx.get(dut.busy)

    simulate(dut, bench, background=memory.testbenches())
    assert there == [0]


@pytest.mark.parametrize("halted", [9, 10, 12])
def test_no_response_is_sent_after_a_halt(halted):
    """Responses of two beats, each sent at once: none begins after the halt, and those begun are whole."""
    dut = built(ResponseWriter, SHAPES[64])
    memory = AxiMemory(dut.axi)

    async def bench(ctx):
        set_all(ctx, [(dut.mask, SLOTS - 1), (dut.beat.valid, 1)])
        for t in range(30 + ResponseWriter.WAIT):
            set_all(ctx, [(dut.arrived, t % 2 == 0), (dut.halt, t >= halted)])
            await ctx.tick()

    simulate(dut, bench, background=memory.testbenches())
    offers = range(1 + ResponseWriter.ADDRESS_LATENCY, halted + 2, 2)
    assert memory.cycles["aw"] == list(offers)
    assert len(memory.cycles["w"]) == 2 * len(offers)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("value", "slots"), [(8, 2), (64, 8), (128, 2)])
@pytest.mark.parametrize("seed", seeds(2, 8))
def test_responses_go_around_the_ring(seed, value, slots):
    config = SHAPES[value]
    rng = random.Random(seed)
    dut = built(ResponseWriter, config)
    base, size, count = 0x4_0040, config.command_bytes, 61
    memory = AxiMemory(dut.axi, stall=0.3 * (seed % 3), seed=seed)
    responses = [rng.randbytes(size) for _ in range(count)]
    commands, whole, written, offered = [], [], [], []

    async def bench(ctx):
        set_all(ctx, [(dut.base, base), (dut.mask, slots - 1)])
        tick = ctx.tick().sample(Cat(dut.written, dut.axi.awvalid, dut.axi.awready))
        t, before, wanted = 0, 0, 0

        async def step(beat=None):
            nonlocal t, before
            there = len(commands) < wanted
            commands.extend([t] * there)
            set_all(
                ctx, [(dut.beat.valid, beat is not None), (dut.beat.payload, beat or 0), (dut.arrived, there)]
            )
            _, _, flags = await tick
            written.extend([t] * (flags & 1))
            if flags >> 1 & 1 and not before:
                offered.append(t)
            before = flags >> 1 == 1
            t += 1

        for n, response in enumerate(responses):
            wanted = min(max(n + 1 + rng.choice([0, 0, 1, 4, 9]), wanted), count)
            for _ in range(rng.choice([9, 9, 12, 40, 127, 128, 129, 300])):
                await step()
            for n in range(0, size, BEAT):
                await step(int.from_bytes(response[n : n + BEAT], "little"))
            whole.append(t - 1)
        for _ in range(300):
            await step()

    simulate(dut, bench, background=memory.testbenches())
    # Groups end with the ring's end or four records, when no command is left, or after the first one's wait.
    groups, alone = [], []
    for n, cycle in enumerate(whole):
        ended = groups and (alone[-1] or not (groups[-1][-1] + 1) % min(slots, GROUP))
        alone.append(sum(there <= cycle for there in commands) == n + 1)
        if not groups or ended or cycle > whole[groups[-1][0]] + ResponseWriter.WAIT:
            groups.append([])
        groups[-1].append(n)
    bursts, goes, last_bursts = [], [], []
    for group in groups:
        at_once = alone[group[-1]] or (group[-1] + 1) % min(slots, GROUP) == 0
        begin = base + group[0] % slots * size
        end = begin + len(group) * size
        cuts = [begin, *range(begin // 1024 * 1024 + 1024, end, 1024), end]
        bursts += [(a, (b - a) // BEAT) for a, b in itertools.pairwise(cuts)]
        last_bursts.append(len(bursts) - 1)
        goes += [whole[group[-1]] if at_once else whole[group[0]] + ResponseWriter.WAIT] * (len(cuts) - 1)
    assert memory.writes == bursts
    assert len(groups) < count
    expected = []
    for at, go in enumerate(goes):
        behind = memory.cycles["aw"][at - 1] + 1 if at else 0
        expected.append(max(go + ResponseWriter.ADDRESS_LATENCY, behind))
    assert offered == expected
    pulses = []
    for group, burst in zip(groups, last_bursts, strict=True):
        for _ in group:
            first = memory.cycles["b"][burst] + ResponseWriter.WRITTEN_LATENCY
            pulses.append(max(first, pulses[-1] + 1 if pulses else 0))
    assert written == pulses
    for n in range(count - slots, count):
        assert memory.content(base + n % slots * size, size) == responses[n]
