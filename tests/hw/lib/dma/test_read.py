# amaranth: UnusedElaboratable=no
"""The read DMA against bytes in a dictionary."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise

import pytest

from hw.errors import InputError
from hw.lib.dma.read import ReadDMA
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import STALLS, built, get, put, rule_checker, seeds, simulate


@dataclass
class Outcome:
    """What a run showed; ``cycles`` are those of the words, ``commanded`` of the commands."""

    memory: AxiMemory
    cycles: list[int]
    commanded: list[int]
    bytes_useful: int
    bytes_bus: int
    error: int


def expected_words(memory, commands, size):
    """Naive model: the bytes of each command, cut into words, with the mark of the last one."""
    words = []
    for command in commands:
        content = memory.content(command["address"], command["length"])
        pieces = [content[n : n + size] for n in range(0, len(content), size)]
        words += [(piece, n == len(pieces) - 1) for n, piece in enumerate(pieces)]
    return words


def received_words(received, size):
    """Bring what came out into the model's form; ``keep`` must mark low bytes without a hole."""
    words = []
    for word in received:
        count = word["keep"].bit_count()
        assert word["keep"] == (1 << count) - 1
        words.append((word["data"].to_bytes(size, "little")[:count], bool(word["last"])))
    return words


def run(dut, commands, *, stall=0.0, stall_o=None, stall_command=None, seed=0, limit=60_000, **model):
    memory = AxiMemory(dut.axi, stall=stall, seed=seed, **model)
    size = memory.beat_bytes
    expected = expected_words(memory, commands, size)
    cycles, commanded, outcome = [], [], []

    async def send(ctx):
        await put(
            ctx, dut.command, commands, stall=stall if stall_command is None else stall_command, seed=seed
        )

    async def receive(ctx):
        words = await get(
            ctx, dut.o, len(expected), stall=stall if stall_o is None else stall_o, seed=seed, cycles=cycles
        )
        assert received_words(words, size) == expected
        await ctx.tick()
        assert not ctx.get(dut.busy)
        counters = (dut.bytes_useful, dut.bytes_bus, dut.error)
        outcome.append(Outcome(memory, cycles, commanded, *map(ctx.get, counters)))

    async def watch_commands(ctx):
        cycle = 0
        while True:
            _, _, valid, ready, busy = await ctx.tick().sample(dut.command.valid, dut.command.ready, dut.busy)
            assert busy == (len(commanded) > sum(cycle > c for c in last_cycles()))
            if valid and ready:
                commanded.append(cycle)
            cycle += 1

    def last_cycles():
        return [cycle for cycle, (_, last) in zip(cycles, expected, strict=False) if last]

    checkers = [rule_checker(dut.o, "o"), rule_checker(dut.command, "command")]
    simulate(dut, send, receive, background=[*memory.testbenches(), watch_commands, *checkers], limit=limit)
    assert outcome[0].bytes_useful == sum(command["length"] for command in commands)
    assert outcome[0].bytes_bus == size * sum(beats for _, beats in memory.reads)
    return outcome[0]


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
    run(built(ReadDMA, data_width=64, fifo_beats=32, commands=8), commands, stall=stall, seed=seed)


@pytest.mark.parametrize("stall", STALLS)
def test_whole_beats(stall):
    drawn = some_commands(random.Random(3), 12, 300 if stall < 0.9 else 60)
    commands = [{"address": each["address"] & ~7, "length": -(-each["length"] // 8) * 8} for each in drawn]
    dut = built(ReadDMA, data_width=64, fifo_beats=32, commands=8, whole=True)
    outcome = run(dut, commands, stall=stall, seed=3)
    assert stall or outcome.cycles[-1] - outcome.cycles[0] == len(outcome.cycles) - 1


@pytest.mark.sample(3)
@pytest.mark.parametrize("stall_o", STALLS)
@pytest.mark.parametrize("stall", STALLS)
def test_backpressure_of_consumer_and_memory_apart(stall, stall_o):
    commands = some_commands(random.Random(5), 8, 120)
    dut = built(ReadDMA, data_width=32, fifo_beats=16, commands=4)
    run(dut, commands, stall=stall, stall_o=stall_o, stall_command=0.0, seed=5)


@pytest.mark.parametrize("length", range(1, 10))
def test_every_alignment_of_short_commands(length):
    commands = [{"address": 4096 - 8 + offset, "length": length} for offset in range(16)]
    run(built(ReadDMA, data_width=32, fifo_beats=16), commands, seed=length)


@pytest.mark.parametrize("length", [1, 31, 32, 33, 500, 4095, 4096, 5000])
def test_wide_bus(length):
    commands = [{"address": (1 << 40) + 4096 - offset, "length": length} for offset in (0, 1, 17, 31)]
    run(built(ReadDMA), commands, seed=length)


@pytest.mark.parametrize(
    ("burst_beats", "fifo_beats", "commands"), [(1, 1, 1), (2, 2, 1), (4, 5, 3), (16, 16, 2)]
)
def test_small_configurations(burst_beats, fifo_beats, commands):
    dut = ReadDMA(data_width=32, burst_beats=burst_beats, fifo_beats=fifo_beats, commands=commands)
    run(dut, some_commands(random.Random(1), 8, 100), stall=0.3, seed=1, burst_beats=burst_beats)


def gaps(cycles):
    return [b - a for a, b in pairwise(cycles) if b - a > 1]


@pytest.mark.parametrize("address", [0, 5], ids=["aligned", "unaligned"])
def test_one_beat_a_cycle_across_bursts_and_commands(address):
    """Commands of whole blocks, the next one queued while the last is in flight: no bubble on the bus."""
    commands = [{"address": address + 2048 * n, "length": 2048} for n in range(3)]
    result = run(ReadDMA(data_width=64, fifo_beats=128), commands, latency=(40, 40))
    assert gaps(result.memory.cycles["r"]) == []
    # An unaligned command has one beat more than it has words; that cycle, at each change, is the bus's own.
    assert gaps(result.cycles) == ([] if address == 0 else [2, 2])


def test_unaligned_command_as_long_as_its_words_has_no_gap():
    """Offset and tail that fit into the same beats: words and beats are as many, and none is lost between."""
    commands = [{"address": 256 * n + 5, "length": 251} for n in range(6)]
    result = run(ReadDMA(data_width=64, fifo_beats=128), commands, latency=(40, 40))
    assert gaps(result.memory.cycles["r"]) == []
    assert gaps(result.cycles) == []


def test_alternating_alignments_leave_no_gap_on_the_bus():
    commands = [{"address": 256 * n + (n % 2) * 3, "length": 250 + (n % 2) * 3} for n in range(8)]
    result = run(ReadDMA(data_width=64, fifo_beats=128), commands, latency=(40, 40))
    assert gaps(result.memory.cycles["r"]) == []


def test_single_beat_commands_one_a_cycle():
    commands = [{"address": 1000 * n & ~7, "length": 8} for n in range(40)]
    result = run(ReadDMA(data_width=64, fifo_beats=128), commands, latency=(20, 20))
    assert gaps(result.memory.cycles["ar"]) == []
    assert gaps(result.cycles) == []


@pytest.mark.parametrize(("address", "latency"), [(64, 2), (67, 3)])
def test_latency(address, latency):
    result = run(ReadDMA(), [{"address": address, "length": 320}], latency=(7, 7))
    assert result.memory.cycles["ar"][0] - result.commanded[0] == 2
    assert result.cycles[0] - result.memory.cycles["r"][0] == latency


def test_asks_only_for_what_the_fifo_holds():
    """A consumer that takes nothing: addresses stop at the FIFO's size, and every beat asked for is taken."""
    dut = ReadDMA(data_width=64, fifo_beats=40, burst_beats=16)
    memory = AxiMemory(dut.axi)

    async def send(ctx):
        await put(ctx, dut.command, [{"address": 0, "length": 4096}])
        for _ in range(200):
            await ctx.tick()
            assert ctx.get(dut.axi.rready)
        assert [beats for _, beats in memory.reads] == [16, 16]
        assert len(memory.cycles["r"]) == 32

    simulate(dut, send, background=memory.testbenches())


def test_stall_of_many_cycles_loses_nothing():
    dut = ReadDMA(data_width=64, fifo_beats=64)
    memory = AxiMemory(dut.axi)
    command = {"address": 3, "length": 2000}

    async def send(ctx):
        await put(ctx, dut.command, [command])

    async def receive(ctx):
        words = await get(ctx, dut.o, 20)
        for _ in range(3_000):
            await ctx.tick()
        words += await get(ctx, dut.o, 230)
        assert received_words(words, 8) == expected_words(memory, [command], 8)

    simulate(dut, send, receive, background=memory.testbenches())


@pytest.mark.parametrize("faulty", [None, 0x80, 0x17F])
def test_error_stays(faulty):
    commands = [{"address": 0x80, "length": 256}, {"address": 0x400, "length": 256}]
    faults = frozenset() if faulty is None else frozenset({faulty})
    result = run(ReadDMA(data_width=64, fifo_beats=32), commands, faulty=faults)
    assert result.error == (faulty is not None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"burst_beats": 3}, "burst_beats must be a power of two from 1 to 16, not 3"),
        ({"burst_beats": 32}, "burst_beats must be a power of two from 1 to 16, not 32"),
        ({"burst_beats": 0}, "burst_beats must be a power of two from 1 to 16, not 0"),
        ({"fifo_beats": 15}, r"fifo_beats must be at least burst_beats \(16\), not 15"),
        ({"commands": 0}, "commands must be at least 1, not 0"),
        ({"data_width": 48}, "data_width must be a power of two from 32 to 1024, not 48"),
        ({"addr_width": 65}, "addr_width must be from 13 to 64, not 65"),
        ({"id_width": 0}, "id_width must be from 1 to 16, not 0"),
    ],
)
def test_refused(options, words):
    with pytest.raises(InputError, match=f"^{words}$"):
        ReadDMA(**options)
