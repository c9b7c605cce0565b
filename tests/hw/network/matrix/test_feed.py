# amaranth: UnusedElaboratable=no
"""The pixel feed: every word that of a naive gather, on the scratchpad itself, whatever holds it back."""

import itertools
import random

import numpy as np
import pytest
from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import Out, connect

from hw.lib.place import InlinePlacer
from hw.network.matrix.feed import PixelFeed
from hw.network.matrix.layouts import SHIFT_BITS
from hw.network.scratchpad.scratchpad import GranuleScratchpad
from hw.network.scratchpad.shape import GranuleShape
from tests.hw.network.matrix.layers import FeedLayer, kernel_tiles
from tests.support.gateware.streams import Side, exchange_within, hash_seed, put, seeds, simulate

SHAPE = GranuleShape(banks=4, rows=32, granule_bits=32, memory="block")
GRANULES = SHAPE.words * SHAPE.granules


class Bench(wiring.Component):
    """Feeds on a scratchpad, the first ports its readers; a word has its shift above it."""

    def __init__(self, feeds):
        self.feeds = [PixelFeed(SHAPE) for _ in range(feeds)]
        self.scratchpad = GranuleScratchpad(SHAPE, InlinePlacer(), readers=feeds + 1, writers=1)
        word = stream.Signature(SHAPE.word_bits + SHIFT_BITS)
        super().__init__({"o": Out(word).array(feeds)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.scratchpad = self.scratchpad
        for n, feed in enumerate(self.feeds):
            m.submodules[f"feed_{n}"] = feed
            connect(m, feed.read, self.scratchpad.read[n])
            m.d.comb += [
                self.o[n].valid.eq(feed.o.valid),
                self.o[n].payload.eq(Cat(feed.o.payload, feed.shift)),
                feed.o.ready.eq(self.o[n].ready),
            ]
        return m


BENCHES = {feeds: Bench(feeds) for feeds in (1, 2)}


def drawn_layer(rng, feeds, **fields):
    """Draw a layer that fits the scratchpad, with its kernel, and the granules of a pixel that it reads."""
    while True:
        kernel = rng.choice([(1, 1), (3, 3), (2, 3), (1, 5), (3, 1), (5, 2)])
        dilations = rng.choice([(1, 1), (1, 1), (2, 2), (1, 3), (3, 1)])
        strides = rng.choice([(1, 1), (2, 2), (1, 2), (3, 1)])
        height, width = rng.randint(1, 9), rng.randint(1, 9)
        before = rng.randint(0, kernel[0] * dilations[0]), rng.randint(0, kernel[1] * dilations[1])
        after = rng.randint(0, 2), rng.randint(0, 2)
        out = [
            (size + a + b - (taps - 1) * apart - 1) // stride + 1
            for size, a, b, taps, apart, stride in zip(
                (height, width), before, after, kernel, dilations, strides, strict=True
            )
        ]
        granules, groups = rng.choice([(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (1, 2), (2, 2)])
        pixel = granules * groups + rng.choice([0, 0, 1, 3])
        row = pixel * width + rng.choice([0, 0, 1, 5])
        if min(out) < 1 or height * row > GRANULES or out[0] * out[1] > 60:
            continue
        tiles = kernel_tiles(
            kernel=kernel, dilations=dilations, granules=granules, pixel_pitch=pixel, row_pitch=row
        )
        layer = {
            "base": rng.randrange(GRANULES - height * row + 1),
            "pixel_pitch": pixel, "row_pitch": row, "height": height, "width": width,
            "out_height": out[0], "out_width": out[1], "strides": strides, "pads": before,
            "zero": rng.randint(-128, 127), "feeds": feeds, "steps": rng.choice([1, 2, 5, 16, 512]),
            "k_tiles": len(tiles), "n_tiles": rng.choice([1, 2, 3]) * groups,
            "group_tiles": 1, "group_pitch": granules if groups > 1 else 0,
        }  # fmt: skip
        layer["group_tiles"] = layer["n_tiles"] // groups
        layer = FeedLayer(**layer | fields)
        if layer.words <= 600:
            return layer, tiles, dilations


def gathered(layer, tiles, dilations, memory, feed):
    """Return the words that a feed sends: taps looked up in the padded input, one by one."""
    padding = np.full(4, layer.zero, np.int8)

    def granule(y, x, at, group):
        row = y * layer.strides[0] - layer.pads[0] + at.row * dilations[0]
        column = x * layer.strides[1] - layer.pads[1] + at.column * dilations[1]
        if not (0 <= row < layer.height and 0 <= column < layer.width):
            return padding
        pixel = layer.base + row * layer.row_pitch + column * layer.pixel_pitch
        return memory[pixel + group * layer.group_pitch + at.channels]

    words = []
    for block in layer.blocks():
        for n in range(layer.n_tiles):
            for tile in tiles:
                for pixel in block[feed :: layer.feeds]:
                    y, x = divmod(pixel, layer.out_width)
                    parts = [
                        padding
                        if at is None or pixel >= layer.pixels
                        else granule(y, x, at, n // layer.group_tiles)
                        for at in tile.granules
                    ]
                    word = int.from_bytes(np.concatenate(parts).tobytes(), "little")
                    shift = tile.entry(addresses=GRANULES)["shift"]
                    words.append(word | shift << SHAPE.word_bits)
    return words


def run_layers(feeds, layers, *, stall, entry_stall, busy, seed):
    """Run layers one after the other; return each feed's words and cycles of each layer."""
    dut = BENCHES[feeds]
    rng = np.random.default_rng(seed)
    memory = rng.integers(-128, 128, (GRANULES, 4), dtype=np.int8)
    numbers = memory.view(np.uint32)[:, 0].tolist()
    result = []

    async def bench(ctx):
        writes = [{"address": at, "enable": 15, "data": numbers[at : at + 4]} for at in range(0, GRANULES, 4)]
        await put(ctx, dut.scratchpad.write[0].write, writes)
        while not ctx.get(dut.scratchpad.write[0].idle):
            await ctx.tick()
        sides = {}
        other = random.Random(seed)
        asked = [{"address": other.randrange(GRANULES), "enable": 15} for _ in range(busy)]
        port = dut.scratchpad.read[feeds]
        sides["asked"] = Side(port.request, items=asked)
        sides["answered"] = Side(port.response, count=busy)
        for n, feed in enumerate(dut.feeds):
            commands = [layer.command(SHAPE, feed=n) for layer, *_ in layers]
            entries = [tile.entry(addresses=GRANULES) for _, tiles, _ in layers for tile in tiles]
            sides[f"command {n}"] = Side(feed.command, items=commands)
            sides[f"entry {n}"] = Side(feed.entry, items=entries, stall=entry_stall)
            sides[f"word {n}"] = Side(dut.o[n], count=sum(layer.words for layer, *_ in layers), stall=stall)
        await exchange_within(ctx, sides, seed=seed)
        result.extend(sides[f"word {n}"] for n in range(feeds))

    simulate(dut, bench)
    return memory, result


@pytest.mark.sample(2)
@pytest.mark.parametrize("feeds", [1, 2])
@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("seed", seeds(2, 40))
def test_words_are_those_of_a_naive_gather(feeds, stall, seed):
    rng = random.Random(hash_seed(seed, f"layers {feeds} {stall}"))
    layers = [drawn_layer(rng, feeds) for _ in range(3)]
    # Several of one tile are known ahead of the walk over pixels.
    ones = (drawn_layer(rng, feeds, n_tiles=1, group_tiles=1, steps=512) for _ in itertools.count())
    layers += itertools.islice((each for each in ones if len(each[1]) == 1), 3)
    memory, sides = run_layers(
        feeds, layers, stall=stall, entry_stall=rng.choice([0.0, 0.8]), busy=rng.choice([0, 500]), seed=seed
    )
    for feed, side in enumerate(sides):
        wanted = [word for layer in layers for word in gathered(*layer, memory, feed)]
        assert side.received == wanted


def test_a_pixel_behind_the_last_is_none_even_inside_the_input():
    tiles = kernel_tiles(kernel=(1, 1), granules=4, pixel_pitch=4, row_pitch=16)
    layer = FeedLayer(
        base=8, pixel_pitch=4, row_pitch=16, height=4, width=4, out_height=3, out_width=3, zero=-7, feeds=2,
        steps=2, k_tiles=1, n_tiles=2,
    )  # fmt: skip
    memory, sides = run_layers(2, [(layer, tiles, (1, 1))], stall=0.0, entry_stall=0.0, busy=0, seed=1)
    for feed, side in enumerate(sides):
        assert side.received == gathered(layer, tiles, (1, 1), memory, feed)
    assert sides[1].received[-1] % (1 << SHAPE.word_bits) == int.from_bytes(bytes([256 - 7]) * 16, "little")


@pytest.mark.parametrize("feeds", [1, 2])
@pytest.mark.parametrize("steps", [1, 16])
def test_a_word_a_cycle_from_tile_to_tile(feeds, steps):
    tiles = kernel_tiles(kernel=(3, 3), granules=1, pixel_pitch=1, row_pitch=12)
    layer = FeedLayer(
        base=3, pixel_pitch=1, row_pitch=12, height=6, width=12, out_height=4, out_width=12, pads=(0, 1),
        feeds=feeds, steps=steps, k_tiles=len(tiles), n_tiles=2,
    )  # fmt: skip
    layers = [(layer, tiles, (1, 1))] * 2
    _, sides = run_layers(feeds, layers, stall=0.0, entry_stall=0.0, busy=0, seed=1)
    waits = [b - a for a, b in itertools.pairwise(sides[0].cycles)]
    # To the next layer.
    assert waits.pop(layer.words - 1) == (1 if steps > PixelFeed.TURN else 1 + PixelFeed.TURN)
    assert set(waits) == {1}
