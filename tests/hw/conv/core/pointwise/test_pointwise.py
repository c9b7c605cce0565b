"""The whole pointwise unit against the formula, and its cycles against their formulas."""

import random

import pytest

from hw.conv.core.pointwise.pointwise import PointwiseUnit
from hw.conv.core.pointwise.weights import TileShape
from tests.hw.conv.core.plain import small
from tests.hw.conv.core.pointwise.layers import Layer, random_layer
from tests.support.gateware.streams import Side, built, exchange, seeds

CONFIGS = {
    "int8": (small(block_words=128), 128),
    "int4": (small(block_words=128, weight_bits=4), 256),
    "whole": (small(inputs=16, outputs=16, weight_bits=4, samples=False), 128),
    "wide": (small(block_words=128, lanes=32, inputs=32, outputs=16), 512),
}


def sides(unit, layers, beat_bits, stalls):
    """Return all streams of the unit."""
    inputs = {
        "block": [layer.block for layer in layers],
        "i": [word for layer in layers for word in layer.words_in()],
        "bypass_block": [layer.bypass_block for layer in layers if layer.shuffle],
        "bypass": [word for layer in layers if layer.shuffle for word in layer.bypass_words()],
        "sweep": [layer.sweep for layer in layers],
        "weights": [beat for layer in layers for beat in layer.beats(beat_bits)],
        "drain": [layer.drain for layer in layers],
    }
    outputs = {
        "o": sum(len(layer.words_out()) for layer in layers),
        "token": sum(layer.blocks for layer in layers if layer.asked),
        "bypass_token": sum(layer.blocks for layer in layers if layer.asked and layer.shuffle),
    }
    given = {name: Side(getattr(unit, name), items, stall=stalls()) for name, items in inputs.items()}
    return given | {name: Side(getattr(unit, name), count=n, stall=stalls()) for name, n in outputs.items()}


#: Fixed features of each layer.
KINDS = [
    {"double": 0, "words": 1},
    {"parts": 2, "split": 1, "shuffle": 1},
    {"double": 1, "raw": 1, "words": 1, "parts": 1},
    {"blocks": 3, "shuffle": 1},
]


#: Shapes of `make test`; the soak has all.
QUICK = ("int8", "int4")


@pytest.mark.parametrize("seed", seeds(1, 20))
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.soak]) for name in CONFIGS]
)
def test_layers(name, seed):
    config, beat_bits = CONFIGS[name]
    digits = random.Random(f"{name} {seed}").choice([2, 3, 4]) if config.samples else 1
    kinds = [kind | {"digits": digits if n in (0, 2) else 1} for n, kind in enumerate(KINDS)]
    layers = [random_layer(config, f"{name} {seed} {n}", **kind) for n, kind in enumerate(kinds)]
    unit = built(PointwiseUnit, config, beat_bits=beat_bits)
    rng = layers[0].rng
    rng.shuffle(layers)
    found = sides(unit, layers, beat_bits, lambda: rng.choice([0, 0, 0.2, 0.6]))
    found["o"].stall = 0.9 if name == "int4" else 0.2
    exchange(unit, found, seed=seed)
    assert found["o"].received == [word for layer in layers for word in layer.words_out()]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("changes", "beat_bits", "columns", "rows", "last_rows", "out_words", "load_bound"),
    [
        ({}, 512, 4, 4, 3, 2, False),
        ({"outputs": 16}, 512, 16, 1, 1, 2, False),
        ({}, 512, 5, 1, 1, 2, False),
        ({"weight_bits": 4, "outputs": 16}, 512, 1, 1, 1, 2, False),
        ({"inputs": 16, "outputs": 16}, 128, 4, 4, 4, 2, True),
        ({"inputs": 16, "outputs": 16, "block_pixels": 32}, 512, 16, 2, 2, 1, False),
    ],
    ids=["short end", "whole", "least", "one", "weights", "one tile"],
)
def test_cycles(changes, beat_bits, columns, rows, last_rows, out_words, load_bound):
    """No cycle between sweeps, from layer to layer; each takes the cycles of its formula.

    Layers of one tile are tested alone: their words would have to enter without a gap between maps.
    """
    config = small(**changes)
    sizes = {"columns": columns, "rows": rows, "last_rows": last_rows, "out_words": out_words, "blocks": 4}
    layers = [Layer(config=config, seed=n, words=1, **sizes) for n in range(out_words)]
    unit = built(PointwiseUnit, config, beat_bits=beat_bits)
    busy = []

    async def watch(ctx):
        while True:
            busy.append(ctx.get(unit.busy))
            await ctx.tick()

    found = sides(unit, layers, beat_bits, lambda: 0)
    exchange(unit, found, background=[watch])
    assert found["o"].received == [word for layer in layers for word in layer.words_out()]
    shape = TileShape(config, beat_bits)
    sweeps = []  # pixels, and cycles to the next
    for layer in layers:
        for pixels in layer.pixels:
            tiles = [header for header, *_ in layer.tiles]
            for header in [*tiles[1:], tiles[0]]:  # the next tile, which loads meanwhile
                beats = 1 + shape.weight_beats + shape.parameter_beats * header["parameters"]
                cycles = PointwiseUnit.sweep_cycles(config, pixels=pixels, beats=beats)
                assert (cycles == beats + 4) == load_bound
                sweeps.append((pixels, cycles))
    expected = [n < pixels for pixels, cycles in sweeps for n in range(cycles)]
    first = busy.index(1)
    idle = sweeps[-1][1] - sweeps[-1][0]
    assert busy[first : first + len(expected) - idle] == expected[: len(expected) - idle]


@pytest.mark.parametrize(("slow", "cause"), [("i", "input"), ("weights", "weight"), ("o", "output")])
def test_waits(slow, cause):
    """The sweep stalls for the slow stream, and for others only a few cycles."""
    config, beat_bits = small(), 512
    sizes = {"columns": 5, "rows": 2, "last_rows": 2, "blocks": 6, "words": 1, "out_words": 1}
    layer = Layer(config=config, seed=slow, input_tiles=1, **sizes)
    unit = built(PointwiseUnit, config, beat_bits=beat_bits)
    waits = {"busy": 0, "wait_input": 0, "wait_weight": 0, "wait_output": 0}

    async def watch(ctx):
        while sum(waits.values()) < 1 or waits["busy"] < len(layer.tiles) * sum(layer.pixels):
            for name in waits:
                waits[name] += ctx.get(getattr(unit, name))
            await ctx.tick()

    found = sides(unit, [layer], beat_bits, lambda: 0)
    found[slow].stall = 0.85
    exchange(unit, found, background=[watch])
    assert found["o"].received == layer.words_out()
    others = [n for name, n in waits.items() if name not in ("busy", f"wait_{cause}")]
    assert waits[f"wait_{cause}"] > 100
    assert max(others) < 30
