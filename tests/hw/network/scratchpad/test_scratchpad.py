# amaranth: UnusedElaboratable=no
"""The scratchpad in granules: words from any granule on, read and written by all ports at once."""

import random

import pytest

from hw.lib.place import InlinePlacer
from hw.network.scratchpad.reader import GranuleReader
from hw.network.scratchpad.scratchpad import GranuleScratchpad
from hw.network.scratchpad.shape import GranuleShape
from tests.support.gateware.streams import Side, built, exchange, get, grid, hash_seed, put, seeds, simulate

PLACER = InlinePlacer()


def small(**fields):
    return GranuleShape(**{"banks": 4, "rows": 4, "granule_bits": 32, "memory": "block"} | fields)


def drawn_write(rng, shape, granules):
    """Draw a write that touches only granules of the given set."""
    address = rng.choice(sorted(granules))
    total = shape.words * shape.granules
    enable = sum(((address + n) % total in granules) << n for n in range(shape.granules)) & rng.getrandbits(4)
    values = [rng.getrandbits(shape.granule_bits) for _ in range(shape.granules)]
    return {"address": address, "enable": enable, "data": values}


def store(memory, shape, write):
    for n, value in enumerate(write["data"]):
        if write["enable"] >> n & 1:
            memory[(write["address"] + n) % (shape.words * shape.granules)] = value


def expected(memory, shape, request):
    """Return the granules that a request reads, None for the others."""
    total = shape.words * shape.granules
    return [
        memory.get((request["address"] + n) % total, 0) if request["enable"] >> n & 1 else None
        for n in range(shape.granules)
    ]


def shown(response):
    return [value if response["enable"] >> n & 1 else None for n, value in enumerate(response["data"])]


async def until_idle(ctx, port):
    while not ctx.get(port.idle):
        await ctx.tick()


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("ports", "stall", "answer_stall", "seed"),
    grid([(5, 3), (1, 1), (2, 3)], (0.0, 0.3, 0.8), (0.0, 0.3, 0.9), soak=2),
)
def test_each_port_reads_what_was_written(ports, stall, answer_stall, seed):
    readers, writers = ports
    shape = small(rows=8 if seed else 4)
    dut = built(GranuleScratchpad, shape, PLACER, readers=readers, writers=writers)
    rng = random.Random(hash_seed(seed, "scratchpad"))
    # Writers own granules: those of one word mixed, so that enables matter.
    owners = [rng.randrange(writers) for _ in range(shape.words * shape.granules)]
    for turn in range(2):
        writes = [
            [
                drawn_write(rng, shape, {at for at, owner in enumerate(owners) if owner == n})
                for _ in range(30)
            ]
            for n in range(writers)
        ]
        requests = [
            [
                {"address": rng.randrange(len(owners)), "enable": rng.choice([15, 15, rng.getrandbits(4)])}
                for _ in range(30)
            ]
            for _ in range(readers)
        ]
        memory = {}  # a run begins with zeros
        for each in writes:
            for write in each:
                store(memory, shape, write)
        answers = run_turn(dut, writes, requests, (stall, answer_stall), hash_seed(seed, f"{turn}"))
        assert answers == [[expected(memory, shape, request) for request in each] for each in requests]


def run_turn(dut, writes, requests, stalls, seed):
    """Write everything, then read everything, all ports at once; return the answers."""
    stall, answer_stall = stalls
    answers = [[] for _ in requests]
    written = []

    def writer(n):
        async def bench(ctx):
            await put(ctx, dut.write[n].write, writes[n], stall=stall, seed=hash_seed(seed, f"write {n}"))
            await until_idle(ctx, dut.write[n])
            written.append(n)

        return bench

    def reader(n):
        async def ask(ctx):
            while len(written) < len(writes):
                await ctx.tick()
            await put(ctx, dut.read[n].request, requests[n], stall=stall, seed=hash_seed(seed, f"ask {n}"))

        async def take(ctx):
            words = await get(
                ctx, dut.read[n].response, len(requests[n]), stall=answer_stall, seed=hash_seed(seed, f"{n}")
            )
            answers[n] += map(shown, words)

        return ask, take

    simulate(
        dut,
        *(writer(n) for n in range(len(writes))),
        *(bench for n in range(len(requests)) for bench in reader(n)),
    )
    return answers


def test_words_of_any_granule_come_a_cycle_each():
    shape = small(banks=8, rows=8)
    dut = GranuleScratchpad(shape, InlinePlacer(), readers=2, writers=1)
    count = 80
    items = [{"address": 3 * n % 256, "enable": 15} for n in range(count)]
    sides = {
        "request": Side(dut.read[0].request, items=items),
        "response": Side(dut.read[0].response, count=count),
        "other request": Side(dut.read[1].request, items=items),
        "other response": Side(dut.read[1].response, count=count),
        "write": Side(dut.write[0].write, items=[item | {"data": [0] * 4} for item in items]),
    }
    exchange(dut, sides)
    assert sides["response"].cycles[0] == GranuleReader.LATENCY
    assert sides["response"].gapless


@pytest.mark.parametrize("crowded", [False, True])
@pytest.mark.parametrize("seed", seeds(2, 10))
def test_a_read_taken_when_a_write_is_counted_sees_it(crowded, seed):
    """Each writer has places of its own; its reader asks in the very cycle in which a write is counted.

    Crowded: all go to one bank, where the later writers wait, and the later readers do not.
    """
    shape = small(rows=32)
    dut = built(GranuleScratchpad, shape, PLACER, readers=3, writers=3)
    rng = random.Random(hash_seed(seed, "counted"))
    # Granules of two words, or of one word of bank 1.
    places = [4 * word for word in range(shape.words) if shape.bank_of(word) == 1]
    if not crowded:
        places = [8 * pair + rng.randrange(5) for pair in range(32)]
    rng.shuffle(places)
    writes = [
        [
            {
                "address": place,
                "enable": rng.choice([15, 15, 1, 8, 0]),
                "data": [rng.getrandbits(32) for _ in range(4)],
            }
            for place in places[n::3]
        ]
        for n in range(3)
    ]

    def follow(n):
        async def send(ctx):
            await put(ctx, dut.write[n].write, writes[n], stall=0.6 - 0.3 * n, seed=hash_seed(seed, f"{n}"))

        async def ask(ctx):
            request = dut.read[2 - n].request
            for write in writes[n]:
                while not ctx.get(dut.write[n].written):
                    await ctx.tick()
                ctx.set(request.payload, {name: write[name] for name in ("address", "enable")})
                ctx.set(request.valid, 1)
                assert ctx.get(request.ready)
                await ctx.tick()
                ctx.set(request.valid, 0)

        async def check(ctx):
            words = await get(ctx, dut.read[2 - n].response, len(writes[n]))
            seen[n] = [shown(word) for word in words]

        return send, ask, check

    seen = {}
    simulate(dut, *(bench for n in range(3) for bench in follow(n)))
    assert seen == {n: [shown(write) for write in each] for n, each in enumerate(writes)}


def test_a_writer_is_busy_from_the_cycle_after_a_write_until_its_grant():
    dut = GranuleScratchpad(small(), InlinePlacer(), readers=1, writers=1)
    port = dut.write[0]
    busy, counted = [], []

    async def bench(ctx):
        for address in (4, 6):
            assert ctx.get(port.idle)
            await put(ctx, port.write, [{"address": address, "enable": 15, "data": [1, 2, 3, 4]}])
            cycles = 0
            while not ctx.get(port.idle):
                cycles += 1
                await ctx.tick()
            busy.append(cycles)

    async def count(ctx):
        while True:
            _, _, written = await ctx.tick().sample(port.written)
            counted.append(written)

    async def settle(ctx):
        await ctx.tick().repeat(20)

    simulate(dut, bench, settle, background=[count])
    assert busy == [3, 3]  # register, queue, head
    assert sum(counted) == 2


def test_words_without_granules_keep_their_place():
    shape = small()
    dut = GranuleScratchpad(shape, InlinePlacer(), readers=1, writers=1)
    enables = [0, 15, 0, 0, 8, 1, 0, 15]
    sides = {
        "request": Side(dut.read[0].request, items=[{"address": 5, "enable": each} for each in enables]),
        "response": Side(dut.read[0].response, count=len(enables)),
    }
    exchange(dut, sides)
    assert [word["enable"] for word in sides["response"].received] == enables


def test_a_writer_sends_a_word_a_cycle():
    shape = small(banks=8, rows=8)
    dut = GranuleScratchpad(shape, InlinePlacer(), readers=1, writers=1)
    taken = []

    async def watch(ctx):
        port = dut.write[0].write
        while True:
            _, _, valid, ready = await ctx.tick().sample(port.valid, port.ready)
            taken.append(valid and ready)

    items = [{"address": 5 * n % 256, "enable": 15, "data": [n] * 4} for n in range(80)]
    exchange(dut, {"write": Side(dut.write[0].write, items=items)}, background=[watch])
    assert taken[:80] == [1] * 80
