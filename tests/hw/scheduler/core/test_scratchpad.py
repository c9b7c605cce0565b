# amaranth: UnusedElaboratable=no
"""The scratchpad: every port reads the last word written, at a word a cycle each."""

import random

import pytest

from hw.errors import InputError
from hw.lib.place import InlinePlacer
from hw.scheduler.core import scratchpad as scratchpad_module
from hw.scheduler.core.bank_arbiter import BankArbiter
from hw.scheduler.core.scratchpad import READ_LATENCY, Scratchpad
from tests.hw.scheduler.core.benches import config_for
from tests.support.gateware.streams import Side, exchange, get, grid, hash_seed, put, seeds, simulate


def run_ports(config, *, stall, seed, per_port=60):
    """Let every port go through its own share of the addresses in random order, all at once."""
    dut = Scratchpad(config, InlinePlacer())
    ports = config.cores + 1
    own = [[address for address in range(config.words) if address % ports == port] for port in range(ports)]

    def user(port):
        async def bench(ctx):
            rng = random.Random(hash_seed(seed, f"user {port}"))
            content = {}
            for _ in range(4):
                chosen = [rng.choice(own[port]) for _ in range(per_port // 4)]
                content |= {address: rng.getrandbits(config.word_bits) for address in chosen}
                writes = [{"address": address, "data": content[address]} for address in dict.fromkeys(chosen)]
                await put(ctx, dut.write[port], writes, stall=stall, seed=hash_seed(seed, f"w{port}"))
                asked = [rng.choice(list(content)) for _ in range(per_port // 4)]
                requests[port] += asked
                expected[port] += [content[address] for address in asked]
                await put(ctx, dut.read[port].request, asked, stall=stall, seed=hash_seed(seed, f"r{port}"))

        async def answers(ctx):
            count = per_port // 4 * 4
            received[port] += await get(
                ctx, dut.read[port].response, count, stall=stall, seed=hash_seed(seed, f"a{port}")
            )

        return bench, answers

    requests, expected, received = ({port: [] for port in range(ports)} for _ in range(3))
    simulate(dut, *(bench for port in range(ports) for bench in user(port)))
    assert received == expected


@pytest.mark.parametrize(
    ("shape", "stall", "seed"), grid([(1, 2, 8), (4, 4, 64), (1, 4, 64), (2, 8, 64)], (0.0, 0.7, 0.95, 0.3))
)
def test_each_port_reads_what_it_wrote(shape, stall, seed):
    cores, banks, words = shape
    run_ports(config_for(words=words, cores=cores, banks=banks, word_bytes=4), stall=stall, seed=seed)


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_several_tiles(seed, monkeypatch):
    monkeypatch.setattr(scratchpad_module, "TILE_ROWS", 4)
    run_ports(config_for(words=40, cores=1, banks=2, word_bytes=4), stall=0.3, seed=seed, per_port=120)


def test_a_word_a_cycle_each_way_on_every_port():
    config = config_for(words=64, cores=2, banks=8)
    dut = Scratchpad(config, InlinePlacer())
    count = 48
    sides = {
        f"write {port}": Side(dut.write[port], items=[{"address": n, "data": n} for n in range(count)])
        for port in range(3)
    }
    ends = {}

    def reader(port):
        async def ask(ctx):
            await put(ctx, dut.read[port].request, range(count))

        async def answers(ctx):
            cycles = []
            await get(ctx, dut.read[port].response, count, cycles=cycles)
            ends[port] = cycles

        return ask, answers

    exchange(dut, sides)
    dut = Scratchpad(config, InlinePlacer())
    simulate(dut, *(bench for port in range(3) for bench in reader(port)))
    # They start in the same bank: the second waits a cycle, the third two, and then nobody waits.
    for port in range(3):
        assert ends[port][0] == READ_LATENCY + port
        assert ends[port][-1] == READ_LATENCY + port + count - 1


def test_a_read_right_behind_a_write_sees_it():
    dut = Scratchpad(config_for(words=8, banks=2), InlinePlacer())

    async def bench(ctx):
        for number in range(20):
            await put(ctx, dut.write[0], [{"address": number % 8, "data": 1000 + number}])
            await put(ctx, dut.read[1].request, [number % 8])
            assert await get(ctx, dut.read[1].response, 1) == [1000 + number]

    simulate(dut, bench)


@pytest.mark.parametrize("inputs", [0, -1, 1.5])
def test_turns_need_an_input(inputs):
    with pytest.raises(InputError, match=r"^inputs must be an integer of at least 1, not"):
        BankArbiter(1, inputs=inputs)


def test_who_comes_together_is_served_lowest_first_and_before_who_comes_later():
    dut = BankArbiter(8, inputs=3)
    order = []

    def user(port, when, count):
        async def bench(ctx):
            await ctx.tick().repeat(when)
            for _ in range(count):
                await put(ctx, dut.i[port], [port])

        return bench

    async def watch(ctx):
        while True:
            _, _, valid, payload = await ctx.tick().sample(dut.valid, dut.payload)
            if valid:
                order.append(payload)

    async def settle(ctx):
        await ctx.tick().repeat(14)

    simulate(dut, user(0, 3, 3), user(1, 2, 1), user(2, 2, 2), settle, background=[watch])
    # 1 and 2 come first; 0 comes while 2 waits and is not of its round.
    assert order == [1, 2, 0, 2, 0, 0]
