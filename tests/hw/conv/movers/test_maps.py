"""Maps of any number of channels are read from all ports' memories as words, and written back."""

import random

import pytest

from hw.conv.movers.map_reader import MapReader
from hw.conv.movers.map_writer import MapWriter
from tests.hw.conv.core.plain import small
from tests.hw.conv.movers.maps import read_command, slices, units, words, write_command
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import get, put, simulate

#: Lanes, ports, bits of a beat: slices narrower than a beat, as wide, and wider.
SHAPES = [(16, 1, 128), (32, 4, 128), (64, 2, 256), (64, 1, 128), (16, 2, 512)]
#: With the share of cycles in which the sides stall: in the soak each shape has both.
QUICK = [(32, 4, 128, 0.6), (64, 1, 128, 0.0)]
POINTS = [
    pytest.param(*shape, stall, marks=[] if (*shape, stall) in QUICK else [pytest.mark.soak])
    for shape in SHAPES
    for stall in (0.0, 0.6)
]


def layers(rng, config):
    yield config.lanes + config.lanes // 4, 2, 3  # the last slice ends with a beat
    for _ in range(3):
        channels = rng.choice([1, rng.randint(1, config.lanes), rng.randint(1, 3 * config.lanes)])
        yield channels, rng.randint(1, 4), rng.randint(1, 9)


def pixels_of(rng, channels, count):
    return [[rng.randrange(256) for _ in range(channels)] for _ in range(count)]


def joined(config, pixel):
    """Words of a pixel, with the valid lanes."""
    for first in range(0, len(pixel), config.lanes):
        part = pixel[first : first + config.lanes]
        yield sum(value << 8 * n for n, value in enumerate(part)), (1 << 8 * len(part)) - 1


@pytest.mark.parametrize(("lanes", "ports", "width", "stall"), POINTS)
def test_reader(lanes, ports, width, stall):
    rng = random.Random(f"{lanes} {ports} {width} {stall}")
    config = small(lanes=lanes, ports=ports)
    unit = MapReader(config, data_width=width, streams=1)
    memories = [AxiMemory(unit.axi[p], stall=stall / 2, seed=p) for p in range(ports)]
    commands, expected = [], []
    for number, (channels, rows, columns) in enumerate(layers(rng, config)):
        pitch = columns + rng.randint(0, 2)
        pixels = pixels_of(rng, channels, rows * pitch)
        base = [0x1000 * (number + 1) + rng.randrange(64) for _ in range(ports)]
        for p, content in enumerate(slices(config, pixels)):
            memories[p].bytes.update({base[p] + n: value for n, value in enumerate(content)})
        commands.append(read_command(config, channels, rows, columns, rng.randint(1, columns), pitch, base))
        expected += [
            word
            for row in range(rows)
            for pixel in pixels[row * pitch : row * pitch + columns]
            for word in joined(config, pixel)
        ]
    received = []

    async def feed(ctx):
        await put(ctx, unit.i[0], commands, stall=stall)

    async def take(ctx):
        received.extend(await get(ctx, unit.o[0], len(expected), stall=stall))

    simulate(unit, feed, take, background=[b for memory in memories for b in memory.testbenches()])
    assert [word & mask for word, (_, mask) in zip(received, expected, strict=True)] == [
        w for w, _ in expected
    ]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_maps_do_not_wait_for_each_other(seed):
    """Two streams of maps, chunk by chunk, through two ports that are slow in turn."""
    rng = random.Random(seed)
    config = small(lanes=32, ports=2)
    unit = MapReader(config, data_width=128)
    memories = [AxiMemory(unit.axi[p], stall=0.7, latency=(1, 60), seed=2 * seed + p) for p in range(2)]
    commands, expected, received = [[], []], [[], []], [[], []]
    for n in range(2):
        for number in range(2):
            pixels = pixels_of(rng, 32, 120)
            base = [0x10000 * (1 + 4 * n + number)] * 2
            for p, content in enumerate(slices(config, pixels)):
                memories[p].bytes.update({base[p] + at: value for at, value in enumerate(content)})
            commands[n].append(read_command(config, 32, 12, 10, 10, 10, base) | {"paired": n == 0})
            expected[n] += [word for pixel in pixels for word, _ in joined(config, pixel)]

    def feed(n):
        async def bench(ctx):
            await put(ctx, unit.i[n], commands[n])

        return bench

    def take(n):
        async def bench(ctx):
            received[n].extend(await get(ctx, unit.o[n], len(expected[n])))

        return bench

    benches = [bench(n) for n in range(2) for bench in (feed, take)]
    simulate(unit, *benches, background=[b for memory in memories for b in memory.testbenches()])
    assert received == expected


def test_maps_and_bypasses_are_asked_for_in_the_order_of_jobs():
    """A map that waits for tokens, then one with a bypass that waits for tokens, too, and one after."""
    config = small(lanes=16, ports=1)
    unit = MapReader(config, data_width=128)
    maps = [
        read_command(config, 16, 4, 2, 2, 2, [0x1000]) | {"token_chunks": 1, "by_row": 1},
        read_command(config, 16, 4, 2, 2, 2, [0x2000]) | {"paired": 1},
        read_command(config, 16, 4, 2, 2, 2, [0x4000]),
    ]
    bypass = [read_command(config, 16, 4, 2, 2, 2, [0x3000]) | {"token_chunks": 1}]
    asked = []

    def feed(n, commands):
        async def bench(ctx):
            await put(ctx, unit.i[n], commands)

        return bench

    async def watch(ctx):
        ctx.set(unit.axi[0].arready, 1)
        for cycle in range(180):
            ctx.set(unit.row_token.valid, cycle >= 60)
            ctx.set(unit.token[1].valid, cycle >= 120)
            ctx.set(unit.token[0].valid, 1)  # tokens of blocks, which the first map does not use
            if ctx.get(unit.axi[0].arvalid):
                asked.append((cycle, ctx.get(unit.axi[0].araddr)))
            await ctx.tick()

    simulate(unit, feed(0, maps), feed(1, bypass), watch, limit=300)
    firsts = {address & 0xF000: cycle for cycle, address in reversed(asked)}
    assert sorted(firsts, key=firsts.get) == [0x1000, 0x2000, 0x3000, 0x4000]
    assert 60 < firsts[0x1000] < firsts[0x2000] < 120 < firsts[0x3000]


@pytest.mark.parametrize(("lanes", "ports", "width", "stall"), POINTS)
def test_writer(lanes, ports, width, stall):
    rng = random.Random(f"{lanes} {ports} {width} {stall}")
    config = small(lanes=lanes, ports=ports)
    unit = MapWriter(config, data_width=width)
    memories = [AxiMemory(unit.axi[p], stall=stall / 2, seed=p) for p in range(ports)]
    jobs, sent, expected = [], [], [{} for _ in range(ports)]
    for number, (channels, rows, columns) in enumerate(layers(rng, config)):
        pitch = columns + rng.choice([0, 2])
        pixels = pixels_of(rng, channels, rows * columns)
        base = [0x1000 * (number + 1) + rng.randrange(64) for _ in range(ports)]
        for row in range(rows):
            for p, content in enumerate(slices(config, pixels[row * columns : (row + 1) * columns])):
                at = base[p] + row * pitch * units(config, channels, p)
                expected[p].update({at + n: value for n, value in enumerate(content)})
        jobs.append(
            (
                write_command(config, channels, rows, columns, pitch, base),
                len(pixels) * words(config, channels),
            )
        )
        sent += [word for pixel in pixels for word, _ in joined(config, pixel)]
    done = []

    async def feed(ctx):
        for command, total in jobs:
            ctx.set(unit.total, total)
            await put(ctx, unit.map, [command])

    async def give(ctx):
        await put(ctx, unit.i, sent, stall=stall)

    async def finish(ctx):
        while len(done) < len(jobs):
            _, _, pulse = await ctx.tick().sample(unit.done)
            if pulse:
                # All of this map is in memory.
                done.append([len(memory.bytes) for memory in memories])

    simulate(unit, feed, give, finish, background=[b for memory in memories for b in memory.testbenches()])
    for memory, wanted in zip(memories, expected, strict=True):
        assert memory.bytes == wanted
    assert done[-1] == [len(wanted) for wanted in expected]
