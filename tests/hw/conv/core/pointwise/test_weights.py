"""Tiles on their way to the columns: each column is written its own records and pieces only."""

import random

import pytest

from hw.conv.core.packets import Record, TileHeader
from hw.conv.core.pointwise.weights import TileLoader, TileShape
from tests.hw.conv.core.plain import small
from tests.support.gateware.streams import get, put, rule_checker, seeds, simulate

CONFIGS = {
    "columns a beat": (small(), 256),
    "a column": (small(inputs=16), 128),
    "beats a column": (small(lanes=32, inputs=32, outputs=8), 128),
    "one beat": (small(weight_bits=4), 512),
}


def test_places():
    """Every bit of a tile has one place."""
    for config, beat_bits in CONFIGS.values():
        shape = TileShape(config, beat_bits)
        places = set()
        for column in range(config.outputs):
            beats, low = shape.piece(column)
            bits = [(beat, low + bit) for beat in beats for bit in range(shape.piece_bits)]
            flat = [beat * beat_bits + bit for beat, bit in bits]
            start = column * shape.column_bits
            assert flat == list(range(start, start + shape.column_bits))
            places.add(shape.record(column))
        assert len(places) == config.outputs
        assert max(places) < (shape.parameter_beats, 0)


@pytest.mark.parametrize("seed", seeds(1, 8))
@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("name", CONFIGS)
def test_tiles(name, stall, seed):
    config, beat_bits = CONFIGS[name]
    rng, shape = random.Random(f"{name} {stall} {seed}"), TileShape(config, beat_bits)
    unit = TileLoader(config, beat_bits=beat_bits)
    beats, wanted, headers, ends = [], [], [], []
    for n in range(8):
        parameters = rng.randrange(2)
        header = {
            "kind": Record.TILE,
            "parameters": parameters,
            "first": 0,
            "last": 1,
            "ends": 0,
            "digit": n % 4,
        }
        headers.append(header | {"word": 77 + n, "slice": 1, "out_word": 5, "out_slice": 2})
        word = TileHeader().const(headers[-1]).as_bits()
        data = [
            rng.getrandbits(beat_bits) for _ in range(parameters * shape.parameter_beats + shape.weight_beats)
        ]
        beats += [word, *data]
        for index, value in enumerate(data, start=0 if parameters else shape.parameter_beats):
            wanted.append((1 << index, value))
        ends.append(len(wanted))
    found, taken = [], []  # beats, and their number as each tile was taken

    async def send(ctx):
        await put(ctx, unit.i, beats, stall=stall)

    async def take(ctx):
        for n, header in enumerate(headers):
            assert await get(ctx, unit.o, 1, stall=stall, seed=n) == [header]
            taken.append(len(found))

    async def watch(ctx):
        while True:
            strobes = ctx.get(unit.parameters) | ctx.get(unit.weights) << shape.parameter_beats
            if strobes:
                found.append((strobes, ctx.get(unit.beat)))
            await ctx.tick()

    simulate(unit, send, take, background=[watch, rule_checker(unit.o, "tiles")])
    assert found == wanted
    assert taken == ends
