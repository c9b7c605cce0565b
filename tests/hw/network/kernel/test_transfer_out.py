"""Transfers to memory: every word at its place, begun and complete when the sequencer may count on it."""

import random
from collections import deque
from dataclasses import replace

import pytest

from hw.network.kernel.transfer_out import TransferOut
from hw.network.program.program import Transfer
from tests.hw.network.kernel.transfers import (
    BASE,
    drawn_transfers,
    may_run,
    payload,
    raise_counts,
    set_counts,
)
from tests.hw.network.program.example import CONFIG
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import Side, exchange_within, simulate

PORTS = {16: 4, 32: 2, 64: 1}
DUTS = {size: TransferOut(replace(CONFIG, port_bytes=size, weight_ports=PORTS[size])) for size in PORTS}

#: Probabilities that memory and scratchpad pause, and a seed.
STALLED = [
    (0.0, 0.0, 0),
    (0.5, 0.7, 1),
    *(pytest.param(0.5, 0.0, n, marks=pytest.mark.soak) for n in range(9)),
]


def word_of(address):
    return random.Random(address).getrandbits(512)


def scratchpad(dut, stall, seed, allowed):
    """Return a testbench that answers reads, in order, some cycles later."""

    async def serve(ctx):
        rng, pending, offered = random.Random(seed), deque(), None
        port = dut.read
        request, response = port.request, port.response
        tick = ctx.tick().sample(
            request.valid, request.payload.address, request.payload.enable, response.ready, dut.counts
        )
        while True:
            takes = len(pending) < 32 and rng.random() >= stall
            if offered is None and pending and rng.random() >= stall:
                offered = word_of(pending.popleft())
            ctx.set(request.ready, takes)
            ctx.set(response.valid, offered is not None)
            if offered is not None:
                parts = [offered >> 128 * n & (1 << 128) - 1 for n in range(4)]
                ctx.set(response.payload, {"data": parts, "enable": 15})
            _, _, valid, address, enable, ready, counts = await tick
            if valid and takes:
                assert (enable, address % 4) == (15, 0)
                assert may_run(allowed(address // 4), counts), "read before its counts"
                pending.append(address // 4)
            if offered is not None and ready:
                offered = None

    return serve


@pytest.mark.sample(2)
@pytest.mark.parametrize("port_bytes", PORTS)
@pytest.mark.parametrize(("stall", "read_stall", "seed"), STALLED)
def test_transfers(port_bytes, stall, read_stall, seed):
    dut, rng = DUTS[port_bytes], random.Random(seed)
    memory = AxiMemory(dut.axi, stall=stall, seed=seed)
    lists = [drawn_transfers(rng, count, CONFIG) for count in (1, 12, 5)]
    current = []

    def allowed(word):
        return next(each for each in current if each.address <= word < each.address + each.words)

    def complete():
        """Return the transfers all of whose bursts were answered."""
        left, found = len(memory.cycles["b"]), 0
        for each in current:
            own = range(BASE + 64 * each.dram_address, BASE + 64 * (each.dram_address + each.words))
            left -= sum(address in own for address, _ in memory.writes)
            beats = sum(count for address, count in memory.writes if address in own)
            if left < 0 or beats * port_bytes < 64 * each.words:
                break
            found += 1
        return found

    async def bench(ctx):
        ctx.set(dut.base, BASE)
        for transfers in lists:
            set_counts(ctx, dut, (0, 0, 0, 0))
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            assert ctx.get(dut.completed) == 0
            memory.bytes.clear()
            memory.writes.clear()
            memory.cycles["b"].clear()
            current[:] = transfers
            begun.append(transfers)
            await exchange_within(ctx, {"i": Side(dut.i, items=[payload(each) for each in transfers])})
            while (count := ctx.get(dut.completed)) < len(transfers):
                assert count <= complete()
                await ctx.tick()
            wanted = b"".join(
                word_of(each.address + k).to_bytes(64, "little")
                for each in transfers
                for k in range(each.words)
            )
            found = b"".join(
                memory.content(BASE + 64 * each.dram_address, 64 * each.words) for each in transfers
            )
            assert found == wanted
            assert len(memory.bytes) == len(wanted)
            assert not memory.under_way
            for _ in range(3):
                await ctx.tick()
            assert ctx.get(dut.completed) == len(transfers)

    begun = []

    async def steps(ctx):
        for n in range(len(lists)):
            while len(begun) <= n:
                await ctx.tick()
            await raise_counts(ctx, dut, lists[n][-1], rng)

    benches = [*memory.testbenches(), scratchpad(dut, read_stall, seed, allowed), steps]
    simulate(dut, bench, background=benches, limit=20_000)


def test_a_memory_that_stops_loses_no_word():
    """More words wait than the DMA holds."""
    dut = DUTS[16]
    memory = AxiMemory(dut.axi, stall=1.0)
    words = 240
    transfer = Transfer(dram_address=0, address=5, words=words)

    async def bench(ctx):
        ctx.set(dut.base, BASE)
        ctx.set(dut.start, 1)
        await ctx.tick()
        ctx.set(dut.start, 0)
        set_counts(ctx, dut, (0, 0, 0, 0))
        await exchange_within(ctx, {"i": Side(dut.i, items=[payload(transfer)])})
        for _ in range(1200):
            await ctx.tick()
        memory.stall = 0.0
        while not ctx.get(dut.completed):
            await ctx.tick()
        wanted = b"".join(word_of(5 + n).to_bytes(64, "little") for n in range(words))
        assert memory.content(BASE, len(wanted)) == wanted

    simulate(dut, bench, background=[*memory.testbenches(), scratchpad(dut, 0.0, 0, lambda word: transfer)])
