# amaranth: UnusedElaboratable=no
"""The write DMA against bytes in a dictionary, with guard bytes around every write."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise

import pytest

from hw.errors import InputError
from hw.lib.dma.write import WriteDMA
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import STALLS, built, get, put, rule_checker, seeds, simulate


@dataclass
class Outcome:
    """What a run showed; ``cycles`` are those of the words taken, ``tokens`` the ``done`` payloads."""

    memory: AxiMemory
    cycles: list[int]
    tokens: list[int]
    error: int


def word_count(command, size):
    return -(-command["length"] // size)


def packed(commands, size, rng):
    """Return the words of ``commands``, all bytes random, and the bytes each command is to write."""
    words, content = [], []
    for command in commands:
        own = [rng.randbytes(size) for _ in range(word_count(command, size))]
        words += [{"data": int.from_bytes(word, "little")} for word in own]
        content.append(b"".join(own)[: command["length"]])
    return words, content


def run(dut, commands, *, stall=0.0, stall_i=None, stall_done=None, seed=0, limit=60_000, **model):
    memory = AxiMemory(dut.axi, stall=stall, seed=seed, **model)
    size = memory.beat_bytes
    words, content = packed(commands, size, random.Random(seed))
    cycles, tokens, outcome = [], [], []

    async def send_commands(ctx):
        await put(ctx, dut.command, commands, stall=stall, seed=seed)

    async def send_words(ctx):
        await put(ctx, dut.i, words, stall=stall if stall_i is None else stall_i, seed=seed + 1)

    async def receive(ctx):
        stall_tokens = stall if stall_done is None else stall_done
        tokens.extend(await get(ctx, dut.done, len(commands), stall=stall_tokens, seed=seed))
        await ctx.tick()
        assert not ctx.get(dut.busy)
        assert ctx.get(dut.bytes_useful) == sum(command["length"] for command in commands)
        assert ctx.get(dut.bytes_bus) == size * sum(beats for _, beats in memory.writes)
        outcome.append(Outcome(memory, cycles, tokens, ctx.get(dut.error)))

    async def watch(ctx):
        """Note when words are taken; a token must not be on ``done`` before its command's last response."""
        cycle, taken, pending = 0, 0, 0
        while True:
            sampled = (dut.i.valid, dut.i.ready, dut.done.valid, dut.done.ready, dut.busy)
            started = (dut.command.valid, dut.command.ready)
            _, _, valid, ready, d_valid, d_ready, busy, c_valid, c_ready = await ctx.tick().sample(
                *sampled, *started
            )
            assert busy == (pending > 0)
            pending += (c_valid and c_ready) - (d_valid and d_ready)
            if valid and ready:
                cycles.append(cycle)
            if d_valid:
                bursts = sum(
                    burst_count(command, size, memory.burst_beats) for command in commands[: taken + 1]
                )
                assert sum(c < cycle for c in memory.cycles["b"]) >= bursts
            taken += d_valid and d_ready
            cycle += 1

    simulate(
        dut,
        send_commands,
        send_words,
        receive,
        background=[*memory.testbenches(), watch, rule_checker(dut.done, "done")],
        limit=limit,
    )
    written = {}
    for command, piece in zip(commands, content, strict=True):
        written.update({command["address"] + n: byte for n, byte in enumerate(piece)})
    # Equality of the whole dictionary: no byte beside a command, before or behind, was touched.
    assert memory.bytes == written
    return outcome[0]


def burst_count(command, size, burst_beats):
    block = size * burst_beats
    last = command["address"] + command["length"] - 1
    return last // block - command["address"] // block + 1


def some_commands(rng, count, longest):
    return [
        {
            "address": rng.choice([0, 4096, 1 << 33]) + rng.randrange(4096 * 2),
            "length": rng.choice([rng.randint(1, 9), rng.randint(1, longest)]),
        }
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", seeds(2, 10))
@pytest.mark.parametrize("stall", STALLS)
def test_any_address_and_length(stall, seed):
    rng = random.Random(seed)
    commands = some_commands(rng, 12, 300 if stall < 0.9 else 60)
    dut = built(WriteDMA, data_width=64, fifo_beats=32, commands=8, outstanding=4)
    run(dut, commands, stall=stall, seed=seed)


@pytest.mark.parametrize("stall_i", STALLS)
@pytest.mark.parametrize("stall", STALLS)
def test_backpressure_of_producer_and_memory_apart(stall, stall_i):
    commands = some_commands(random.Random(7), 8, 120)
    dut = built(WriteDMA, data_width=32, fifo_beats=16, commands=4, outstanding=8)
    run(dut, commands, stall=stall, stall_i=stall_i, stall_done=0.3, seed=7)


@pytest.mark.parametrize("length", range(1, 10))
def test_every_alignment_of_short_commands(length):
    commands = [{"address": 4096 - 8 + 4096 * n + n, "length": length} for n in range(16)]
    run(built(WriteDMA, data_width=32, fifo_beats=16), commands, seed=length)


@pytest.mark.parametrize("length", [1, 31, 32, 33, 500, 4095, 4096, 5000])
def test_wide_bus(length):
    commands = [
        {"address": (1 << 40) + (2 * n + 1) * 8192 - offset, "length": length}
        for n, offset in enumerate((0, 1, 17, 31))
    ]
    run(built(WriteDMA), commands, seed=length)


@pytest.mark.parametrize(
    ("burst_beats", "fifo_beats", "commands", "outstanding"),
    [(1, 1, 1, 1), (2, 2, 1, 1), (4, 5, 3, 2), (16, 16, 2, 1)],
)
def test_small_configurations(burst_beats, fifo_beats, commands, outstanding):
    dut = WriteDMA(
        data_width=32,
        burst_beats=burst_beats,
        fifo_beats=fifo_beats,
        commands=commands,
        outstanding=outstanding,
    )
    run(dut, some_commands(random.Random(1), 8, 100), stall=0.3, seed=1, burst_beats=burst_beats)


@pytest.mark.parametrize("stall", [0.0, 0.7])
def test_memory_that_takes_an_address_only_after_its_data(stall):
    commands = some_commands(random.Random(3), 8, 200)
    dut = WriteDMA(data_width=32, fifo_beats=64)
    run(dut, commands, stall=stall, seed=3, address_after_data=True)


def gaps(cycles):
    return [b - a for a, b in pairwise(cycles) if b - a > 1]


@pytest.mark.parametrize("offset", [0, 5], ids=["aligned", "unaligned"])
def test_one_beat_a_cycle_across_bursts_and_commands(offset):
    commands = [{"address": 4096 * n + offset, "length": 1024} for n in range(3)]
    result = run(WriteDMA(data_width=64, fifo_beats=64), commands, latency=(30, 30))
    # An unaligned command has one beat more than words: the input waits one cycle for it at each change.
    assert gaps(result.cycles) == ([] if offset == 0 else [2, 2])
    if offset == 0:
        assert gaps(result.memory.cycles["w"]) == []
        assert len(result.memory.cycles["w"]) == 3 * 128


def test_single_word_commands_one_a_cycle():
    commands = [{"address": 1000 * n & ~7, "length": 8} for n in range(40)]
    result = run(WriteDMA(data_width=64, fifo_beats=64), commands, latency=(10, 10))
    assert gaps(result.cycles) == []
    assert gaps(result.memory.cycles["w"]) == []
    assert result.tokens == [0] * 40


def test_address_waits_for_the_whole_burst():
    """Fifteen of sixteen words: nothing on the bus; the sixteenth: the address three cycles later."""
    dut = WriteDMA(data_width=64, fifo_beats=32)
    memory = AxiMemory(dut.axi)

    async def send(ctx):
        await put(ctx, dut.command, [{"address": 0, "length": 128}])
        await put(ctx, dut.i, [{"data": n} for n in range(15)])
        for _ in range(50):
            await ctx.tick()
            assert not ctx.get(dut.axi.awvalid)
            assert not ctx.get(dut.axi.wvalid)
        await put(ctx, dut.i, [{"data": 15}])
        waited = 1
        while not ctx.get(dut.axi.awvalid):
            await ctx.tick()
            waited += 1
        assert waited == 3
        await get(ctx, dut.done, 1)

    simulate(dut, send, background=memory.testbenches())
    assert memory.writes == [(0, 16)]


def test_tokens_nobody_takes_hold_the_responses():
    dut = WriteDMA(data_width=32, fifo_beats=16, commands=2, outstanding=2)
    memory = AxiMemory(dut.axi)
    commands = [{"address": 8 * n, "length": 4} for n in range(12)]

    async def send_commands(ctx):
        await put(ctx, dut.command, commands)

    async def send_words(ctx):
        await put(ctx, dut.i, [{"data": n} for n in range(12)])

    async def receive(ctx):
        for _ in range(200):
            await ctx.tick()
        assert len(memory.cycles["b"]) == 2
        assert await get(ctx, dut.done, 12) == [0] * 12

    simulate(dut, send_commands, send_words, receive, background=memory.testbenches())


@pytest.mark.parametrize(
    ("faulty", "tokens"),
    [(None, [0, 0, 0]), (0x100, [0, 1, 0]), (0x1FF, [0, 1, 0]), (0x80, [1, 0, 0]), (0x400, [0, 0, 1])],
)
def test_error_stays_and_marks_its_command(faulty, tokens):
    commands = [
        {"address": 0x80, "length": 8},
        {"address": 0x100, "length": 256},
        {"address": 0x400, "length": 64},
    ]
    faults = frozenset() if faulty is None else frozenset({faulty})
    result = run(WriteDMA(data_width=64, fifo_beats=32), commands, faulty=faults)
    assert result.error == (faulty is not None)
    assert result.tokens == tokens


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"burst_beats": 12}, "burst_beats must be a power of two from 1 to 16, not 12"),
        ({"fifo_beats": 15}, r"fifo_beats must be at least burst_beats \(16\), not 15"),
        ({"commands": 0}, "commands must be at least 1, not 0"),
        ({"outstanding": 0}, "outstanding must be at least 1, not 0"),
        ({"data_width": 2048}, "data_width must be a power of two from 32 to 1024, not 2048"),
    ],
)
def test_refused(options, words):
    with pytest.raises(InputError, match=f"^{words}$"):
        WriteDMA(**options)
