# amaranth: UnusedElaboratable=no
"""The drain: bytes in the scratchpad equal a naive drain's, whatever holds it back."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect

from hw.lib.place import InlinePlacer
from hw.network.commands import Addition, Bounds, MatrixCommand, Source, Target
from hw.network.graph.integers import rounded_shift
from hw.network.matrix.drain import Drain
from hw.network.matrix.drain_command import drain_command
from hw.network.scratchpad.scratchpad import GranuleScratchpad
from hw.network.scratchpad.shape import GranuleShape
from hw.network.tables.layouts import table_words
from tests.support.gateware.streams import Side, exchange_within, put, seeds, simulate

SHAPE = GranuleShape(banks=4, rows=32, granule_bits=32, memory="block")
BYTES = SHAPE.granule_bits // 8
GRANULES = SHAPE.words * SHAPE.granules
WORD = BYTES * SHAPE.granules
RESULTS = 40


class Bench(wiring.Component):
    """A drain on a scratchpad, beside another reader and writer; ``hold`` stops its writes."""

    def __init__(self):
        self.drain = Drain(SHAPE, InlinePlacer(), columns=WORD, results=RESULTS)
        self.scratchpad = GranuleScratchpad(SHAPE, InlinePlacer(), readers=2, writers=2)
        super().__init__({"hold": In(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.scratchpad = self.scratchpad
        m.submodules.drain = self.drain
        connect(m, self.drain.read, self.scratchpad.read[0])
        drain, pad = self.drain.write, self.scratchpad.write[0]
        m.d.comb += [
            pad.write.valid.eq(drain.write.valid & ~self.hold),
            pad.write.payload.eq(drain.write.payload),
            drain.write.ready.eq(pad.write.ready & ~self.hold),
            drain.idle.eq(pad.idle),
            drain.written.eq(pad.written),
        ]
        return m


BENCH = Bench()


def drawn_command(rng):
    """Return a command, its table, and results of the array of shape ``(pixels, elements of a pixel)``."""
    halves = rng.random() < 0.3
    bits = rng.choice([8, 16])
    granules = rng.choice([1, bits // 8, bits // 4]) if halves else rng.choice([1, 2, 4, 5, 7, 8, 11])
    elements = granules * BYTES * 8 // bits
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    rows, columns = rng.randint(1, 4), rng.randint(1, 5)
    if halves and rows * columns < 2:
        columns = 3
    pitch = granules if halves else granules + rng.choice([0, 0, 1, 4])
    pixels = rows * columns
    base = rng.randrange(GRANULES // 2 - pixels * pitch)
    target = Target(
        base=base,
        pitch=pitch,
        granules=granules,
        zero=rng.randint(-128, 127) if bits == 8 else 0,
        low=rng.choice([least, rng.randint(least, 0)]),
        high=rng.choice([most, rng.randint(0, most)]),
    )
    residual = addition = None
    if rng.random() < 0.5:
        across = granules if halves else granules + rng.choice([0, 3])
        residual = Source(
            base=GRANULES // 2 + rng.randrange(GRANULES // 2 - pixels * across - 4),
            across=across,
            down=across * columns,
            zero=rng.randint(-128, 127) if bits == 8 else 0,
        )
        factors = [rng.randrange(1 << 26) for _ in range(2)]
        if rng.random() < 0.5:  # many ties
            factors = [1 << rng.randint(22, 24) for _ in range(2)]
        addition = Addition(first=factors[0], second=factors[1], shift=24)
    command = MatrixCommand(
        rows=rows,
        columns=columns,
        source=Source(base=0),
        bounds=Bounds(height=1, width=1),
        first_tap=0,
        taps=1,
        column_tiles=1 if halves else -(-elements // WORD),
        target=target,
        halves=halves,
        weights=0,
        bits=bits,
        residual=residual,
        addition=addition,
        sum_target=(
            rng.randint(-128, 127) if bits == 8 else 0,
            rng.choice([least, -3]),
            rng.choice([most, 99]),
        ),
        table=rng.choice([-1, 0]) if bits == 8 else -1,
    )
    table = rng.randbytes(256)
    # Those of the array are int16, of any bits.
    results = np.random.default_rng(rng.randrange(1 << 32)).integers(-1 << 15, 1 << 15, (pixels, elements))
    results >>= rng.choice([0, 8]) if bits == 8 else 0
    return command, table, results


def drawn_memory(seed):
    """Return the granules before all commands, which write none of a residual."""
    return np.random.default_rng(seed).integers(-128, 128, (GRANULES, BYTES), dtype=np.int8)


def with_exceptions(command, results, memory, rng):
    """Return a command whose sum, if it has one, has up to two pairs that occur as exceptions."""
    source = command.residual
    if source is None or command.bits == 16:
        return command
    pairs = []
    for _ in range(rng.randint(0, 2)):
        pixel, byte = rng.randrange(len(results)), rng.randrange(results.shape[1])
        first = int(np.clip(results[pixel, byte], command.target.low, command.target.high))
        second = memory[source.base + pixel * source.across :].ravel()[byte]
        pairs.append((first, int(second)))
    return replace(command, addition=replace(command.addition, exceptions=tuple(pairs)))


def words_of(command, results):
    """Return the words of the array in its order: by column tile, then pixel or pair of pixels."""
    rng = random.Random(0)
    width = WORD // 2 if command.halves else WORD
    each = 2 if command.halves else 1
    words = []
    for tile in range(command.column_tiles):
        for first in range(0, len(results), each):
            word = []
            for pixel in range(first, first + each):
                part = (
                    results[pixel][tile * width : (tile + 1) * width].tolist() if pixel < len(results) else []
                )
                word += part + [rng.randint(-1 << 15, (1 << 15) - 1) for _ in range(width - len(part))]
            words.append(word)
    return words


def drain(command, table, results, memory):
    """Drain into ``memory``, granules of bytes."""
    target = command.target
    stored = np.clip(results, target.low, target.high)
    if command.residual is not None:
        source = command.residual
        pixels = [memory[source.base + p * source.across :][: target.granules] for p in range(len(results))]
        other = np.stack(pixels).reshape(len(results), -1).view(f"i{command.bits // 8}")
        zero, low, high = command.sum_target
        total = (stored - target.zero) * command.addition.first
        total += (other.astype(int) - source.zero) * command.addition.second + (zero << 24)
        rounded = rounded_shift(total, 24)
        for first, second in command.addition.exceptions:
            rounded += np.where((stored == first) & (other == second), 2 * ((total >> 24) - rounded) + 1, 0)
        stored = np.clip(rounded, low, high)
    if command.table >= 0:
        stored = np.frombuffer(table, np.int8)[stored + 128]
    for pixel, part in enumerate(stored.astype(f"i{command.bits // 8}")):
        at = target.base + pixel * target.pitch
        memory[at : at + target.granules] = part.view(np.int8).reshape(-1, BYTES)


async def send_results(ctx, words, *, stall, rng):
    """Send results some cycles after they were announced."""
    drain, pending = BENCH.drain, []
    words = list(words)
    while words or pending:
        announce = bool(words) and rng.random() >= stall and ctx.get(drain.room)
        ctx.set(drain.taken, announce)
        if announce:
            pending.append((7, words.pop(0)))
        arrives = bool(pending) and pending[0][0] == 0
        ctx.set(drain.valid, arrives)
        if arrives:
            ctx.set(drain.i, pending.pop(0)[1])
        pending = [(max(0, left - 1), word) for left, word in pending]
        await ctx.tick()
    ctx.set(drain.valid, 0)
    ctx.set(drain.taken, 0)


async def send_commands(ctx, commands):
    """Send each command as soon as it is taken, its table before it."""
    for command, table, _ in commands:
        while not ctx.get(BENCH.drain.command.ready):
            await ctx.tick()
        for row, word in enumerate(table_words(table) if command.table >= 0 else []):
            ctx.set(BENCH.drain.table, {"enable": 1, "row": row, "data": word})
            await ctx.tick()
        ctx.set(BENCH.drain.table, {"enable": 0, "row": 0, "data": 0})
        await put(ctx, BENCH.drain.command, [drain_command(command, tile_granules=SHAPE.granules)])


async def ends(ctx, counts):
    """Wait for the ends of commands of ``counts`` words; each comes when its words are in the scratchpad."""
    pad = BENCH.scratchpad.write[0]
    sent = written = wanted = 0
    for count in counts:
        wanted += count
        for waited in itertools.count():
            assert waited < 4000, "the drain is not done"
            written += ctx.get(pad.written)
            if ctx.get(BENCH.drain.done):
                assert sent >= wanted
                assert written >= wanted or ctx.get(pad.idle)
                break
            assert written < wanted or waited == 0
            sent += ctx.get(pad.write.valid) and ctx.get(pad.write.ready)
            await ctx.tick()
        sent += ctx.get(pad.write.valid) and ctx.get(pad.write.ready)
        await ctx.tick()


def run(commands, *, stall, held, seed):
    """Run commands on a scratchpad that is written elsewhere, too; return it before and after.

    ``held``: cycles in which no word is written, now and then.
    """
    dut = BENCH
    memory = drawn_memory(seed)
    numbers = memory.copy().view(np.uint32)[:, 0].tolist()
    rng = random.Random(seed)
    words = [words_of(command, results) for command, _, results in commands]
    writes = [{"address": at, "enable": 15, "data": numbers[at : at + 4]} for at in range(0, GRANULES, 4)]
    found, filled = [], []

    async def array(ctx):
        while not filled:
            await ctx.tick()
        await send_results(ctx, [word for some in words for word in some], stall=stall, rng=rng)

    async def source(ctx):
        while not filled:
            await ctx.tick()
        await send_commands(ctx, commands)

    async def holder(ctx):
        while not found:
            for hold in (1, 0):
                ctx.set(dut.hold, hold and held > 0)
                for _ in range(1 + rng.randrange(held + 1) // (1 if hold else 4)):
                    await ctx.tick()

    async def bench(ctx):
        first = dut.scratchpad.write[1]
        await put(ctx, first.write, writes)
        while not ctx.get(first.idle):
            await ctx.tick()
        filled.append(True)
        await ends(ctx, [len(some) * each[0].bits // 8 for some, each in zip(words, commands, strict=True)])
        port = dut.scratchpad.read[1]
        asked = [{"address": at, "enable": 15} for at in range(0, GRANULES, 4)]
        sides = {"asked": Side(port.request, items=asked), "answered": Side(port.response, count=len(asked))}
        await exchange_within(ctx, sides, seed=seed)
        found.extend(sides["answered"].received)

    async def other(ctx):
        """Write what is there, where no command writes."""
        while not filled:
            await ctx.tick()
        while not found:
            await put(ctx, dut.scratchpad.write[1].write, [writes[-1 - rng.randrange(2)]])
            for _ in range(rng.choice([0, 0, 0, 8])):
                await ctx.tick()

    simulate(dut, holder, source, array, bench, background=[other])
    after = np.array([word["data"] for word in found], np.uint32).reshape(-1, 1).view(np.int8)
    return memory, after.reshape(GRANULES, BYTES)


@pytest.mark.sample(1)
@pytest.mark.parametrize("stall", [0.0, 0.6])
@pytest.mark.parametrize("seed", seeds(2, 20))
def test_bytes_equal_a_naive_drain(stall, seed):
    rng = random.Random(seed)
    commands = [drawn_command(rng) for _ in range(8)]
    commands = [
        (with_exceptions(command, results, drawn_memory(seed), rng), table, results)
        for command, table, results in commands
    ]
    memory, after = run(commands, stall=stall, held=rng.choice([1, 60]), seed=seed)
    for command, table, results in commands:
        drain(command, table, results, memory)
    assert (after == memory).all()


def test_no_result_is_lost_while_the_scratchpad_waits():
    """More results than the drain holds wait for its room."""
    target = Target(base=3, pitch=1, granules=1)
    pixels = RESULTS + 80
    command = MatrixCommand(
        rows=1, columns=pixels, source=Source(base=0), bounds=Bounds(height=1, width=1), first_tap=0, taps=1,
        column_tiles=1, target=target, weights=0,
    )  # fmt: skip
    results = np.random.default_rng(0).integers(-128, 128, (pixels, BYTES))
    commands = [(command, b"", results)]
    memory, after = run(commands, stall=0.0, held=4 * RESULTS, seed=0)
    drain(*commands[0], memory)
    assert (after == memory).all()
