# amaranth: UnusedElaboratable=no
"""A slice: every read returns the granule last written, the first ports never wait, all as a naive model."""

import random

import pytest
from amaranth.hdl import Cat

from hw.errors import InputError
from hw.lib.place import InlinePlacer
from hw.network.scratchpad.shape import GranuleShape
from hw.network.scratchpad.slice import ScratchpadSlice
from tests.hw.network.scratchpad.naive import NaivePort, granted
from tests.support.gateware.streams import Side, exchange, get, grid, hash_seed, put, simulate


def small(banks=4, rows=4):
    return GranuleShape(banks=banks, rows=rows, granule_bits=32, memory="block")


class Watched:
    """Follows every cycle of a slice: the grants of a naive model, and a dict as its memory."""

    def __init__(self, dut, shape):
        self.dut, self.shape = dut, shape
        self.readers = [NaivePort() for _ in dut.read]
        self.writers = [NaivePort(credits=None) for _ in dut.write]
        self.memory = {}
        self.data = [[] for _ in dut.write]
        self.expected = [[] for _ in dut.read]
        self.conflicts = 0
        self.first_waits = 0

    async def watch(self, ctx):
        dut = self.dut
        pins = []
        for port in dut.read:
            pins += [port.request.valid, port.request.ready, port.request.payload]
            pins += [port.response.valid, port.response.ready]
        for port in dut.write:
            pins += [port.write.valid, port.write.ready, port.write.payload.address, port.write.payload.data]
            pins += [port.idle]
        tick = ctx.tick().sample(dut.read_grants, dut.write_grants, *pins)
        while True:
            _, _, reads, writes, *seen = await tick
            self.see(reads, writes, seen)

    def see(self, reads, writes, seen):
        bank_of = self.shape.bank_of
        wins = granted(self.readers, bank_of), granted(self.writers, bank_of)
        assert wins == ([bool(reads >> n & 1) for n in range(len(self.readers))],
                        [bool(writes >> n & 1) for n in range(len(self.writers))])  # fmt: skip
        for ports, won in zip((self.readers, self.writers), wins, strict=True):
            self.conflicts += sum(port.eligible() and not win for port, win in zip(ports, won, strict=True))
            self.first_waits += ports[0].eligible() and not won[0]
        for n, port in enumerate(self.readers):
            valid, ready, word, answer, taken = seen[5 * n : 5 * n + 5]
            if wins[0][n]:
                self.expected[n].append(self.memory.get(port.head, 0))
            port.edge(wins[0][n], word if valid and ready else None, bool(answer and taken))
        for n, port in enumerate(self.writers):
            valid, ready, word, datum, idle = seen[5 * len(self.readers) + 5 * n :][:5]
            assert idle == (port.head is None and not port.waiting)
            if wins[1][n]:
                self.memory[port.head] = self.data[n].pop(0)
            if valid and ready:
                self.data[n].append(datum)
            port.edge(wins[1][n], word if valid and ready else None, False)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("shape", "stall", "answer_stall", "seed"),
    grid([(5, 3, 4, 4), (1, 1, 2, 4), (3, 2, 8, 8), (2, 4, 4, 16)], (0.0, 0.3, 0.7), (0.0, 0.3, 0.9)),
)
def test_reads_return_what_was_granted_before(shape, stall, answer_stall, seed):
    readers, writers, banks, rows = shape
    shape = small(banks, rows)
    dut = ScratchpadSlice(shape, InlinePlacer(), readers=readers, writers=writers)
    rng = random.Random(seed)
    watched = Watched(dut, shape)
    # Few words at a time, so that reads and writes of one word meet.
    near = [rng.randrange(shape.words) for _ in range(4)]

    def words(count):
        return [rng.choice(near) if rng.random() < 0.5 else rng.randrange(shape.words) for _ in range(count)]

    sides = {}
    for n, port in enumerate(dut.write):
        items = [{"address": word, "data": rng.getrandbits(32)} for word in words(120)]
        sides[f"write {n}"] = Side(port.write, items=items, stall=stall)
    for n, port in enumerate(dut.read):
        sides[f"request {n}"] = Side(port.request, items=words(150), stall=stall)
        sides[f"response {n}"] = Side(port.response, count=150, stall=answer_stall)
    exchange(dut, sides, seed=seed, background=[watched.watch])
    assert [sides[f"response {n}"].received for n in range(readers)] == watched.expected
    assert not watched.first_waits
    assert watched.conflicts or readers == writers == 1


def test_latency_and_a_word_a_cycle():
    shape = small()
    dut = ScratchpadSlice(shape, InlinePlacer(), readers=2, writers=1)
    count = 60
    sides = {
        "request": Side(dut.read[1].request, items=[n % shape.words for n in range(count)]),
        "response": Side(dut.read[1].response, count=count),
    }
    exchange(dut, sides)
    assert sides["response"].cycles[0] == dut.REQUEST_LATENCY + dut.RESPONSE_LATENCY
    assert sides["response"].gapless


def test_all_ports_on_one_bank_are_served_by_importance():
    shape = small()
    dut = ScratchpadSlice(shape, InlinePlacer(), readers=3, writers=1)
    order = []

    async def watch(ctx):
        while True:
            _, _, grants = await ctx.tick().sample(dut.read_grants)
            order.extend(n for n in range(3) if grants >> n & 1)

    sides = {f"request {n}": Side(port.request, items=[5] * 10) for n, port in enumerate(dut.read)}
    sides |= {f"response {n}": Side(port.response, count=10) for n, port in enumerate(dut.read)}
    exchange(dut, sides, background=[watch])
    assert order == [0] * 10 + [1] * 10 + [2] * 10


def test_a_port_without_room_leaves_its_bank_to_the_others():
    shape = small()
    dut = ScratchpadSlice(shape, InlinePlacer(), readers=2, writers=1)

    async def bench(ctx):
        for word in range(40):
            await put(ctx, dut.read[0].request, [word % shape.words])  # nobody takes the responses
        await put(ctx, dut.read[1].request, list(range(16)) * 2)
        assert await get(ctx, dut.read[1].response, 32) == [0] * 32
        assert await get(ctx, dut.read[0].response, 40) == [0] * 40

    simulate(dut, bench)


@pytest.mark.parametrize("gap", range(4))
def test_a_read_granted_behind_a_write_sees_it(gap):
    shape = small()
    dut = ScratchpadSlice(shape, InlinePlacer(), readers=1, writers=1)
    rng = random.Random(hash_seed(gap, "values"))

    async def bench(ctx):
        old = 0
        for _ in range(20):
            new = rng.getrandbits(32)
            # Both are taken in one cycle, or the read ``gap`` cycles later.
            ctx.set(Cat(dut.write[0].write.payload.address, dut.write[0].write.payload.data), 7 | new << 4)
            ctx.set(dut.write[0].write.valid, 1)
            ctx.set(dut.read[0].request.payload, 7)
            ctx.set(dut.read[0].request.valid, gap == 0)
            await ctx.tick()
            ctx.set(dut.write[0].write.valid, 0)
            for cycle in range(gap):
                ctx.set(dut.read[0].request.valid, cycle == gap - 1)
                await ctx.tick()
            ctx.set(dut.read[0].request.valid, 0)
            assert await get(ctx, dut.read[0].response, 1) == [new if gap else old]
            old = new

    simulate(dut, bench)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"banks": 3}, r"banks must be a power of two from 2 to 32, not 3"),
        ({"rows": 8}, r"rows must be a power of two from 16 to 4096, not 8"),
        ({"granules": 1}, r"granules must be a power of two from 2 to 8, not 1"),
        ({"granule_bits": 48}, r"granule_bits must be a multiple of 32, not 48"),
        ({"memory": "flash"}, r"ram_style must be one of distributed, block, ultra, not 'flash'"),
    ],
)
def test_shapes_that_cannot_be(fields, message):
    with pytest.raises(InputError, match=message):
        GranuleShape(**fields)
