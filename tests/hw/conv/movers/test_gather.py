"""Single pixels from all ports' memories, beside a map that is read through the same ports."""

import random

import pytest

from hw.conv.movers.map_reader import MapReader
from tests.hw.conv.core.plain import small
from tests.hw.conv.movers.maps import read_command, slices, units, words
from tests.hw.conv.movers.test_maps import POINTS, joined, pixels_of
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import get, put, simulate


@pytest.mark.parametrize(("lanes", "ports", "width", "stall"), POINTS)
def test_requests(lanes, ports, width, stall):
    rng = random.Random(f"{lanes} {ports} {width} {stall}")
    config = small(lanes=lanes, ports=ports, gather_words=64)
    unit = MapReader(config, data_width=width, streams=1)
    memories = [AxiMemory(unit.axi[p], stall=stall / 2, seed=p) for p in range(ports)]
    maps, requests, expected = [], [], []
    for number in range(3):
        channels = rng.choice([rng.randint(1, lanes), rng.randint(1, 3 * lanes)])
        rows, columns = rng.randint(1, 5), rng.randint(1, 5)
        pixels = pixels_of(rng, channels, rows * columns)
        base = [(number + 1 << 40) + rng.randrange(64) for _ in range(ports)]
        for p, content in enumerate(slices(config, pixels)):
            memories[p].bytes.update({base[p] + n: value for n, value in enumerate(content)})
        maps.append(
            {
                "words": words(config, channels),
                "ports": [
                    {
                        "address": base[p],
                        "pitch": columns * units(config, channels, p),
                        "units": units(config, channels, p),
                    }
                    for p in range(ports)
                ],
            }
        )
        for _ in range(40):
            row, column = rng.randrange(rows), rng.randrange(columns)
            two = column + 1 < columns and rng.random() < 0.5
            requests.append({"row": row, "column": column, "two": two, "ends": 0})
            for n in range(1 + two):
                expected += joined(config, pixels[row * columns + column + n])
        requests.append({"row": 0, "column": 0, "two": 0, "ends": 1})
    # The last map, row by row.
    whole = read_command(config, channels, rows, columns, columns, columns, base)
    beside = [word for pixel in pixels for word in joined(config, pixel)]
    received, row_words = [], []

    async def feed(ctx):
        await put(ctx, unit.gather, maps, stall=stall)

    async def ask(ctx):
        await put(ctx, unit.requests, requests, stall=stall)

    async def feed_map(ctx):
        await put(ctx, unit.i[0], [whole])

    async def take(ctx):
        received.extend(await get(ctx, unit.gathered, len(expected), stall=stall))

    async def take_map(ctx):
        row_words.extend(await get(ctx, unit.o[0], len(beside)))

    simulate(
        unit,
        feed,
        ask,
        feed_map,
        take,
        take_map,
        background=[b for memory in memories for b in memory.testbenches()],
    )
    for found, wanted in ((received, expected), (row_words, beside)):
        assert [word & mask for word, (_, mask) in zip(found, wanted, strict=True)] == [w for w, _ in wanted]
