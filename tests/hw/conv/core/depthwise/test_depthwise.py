"""The depthwise unit against sums of samples, written from the definition."""

import functools
import itertools
import random

import pytest

from hw.conv.core.depthwise.depthwise import Depthwise
from hw.conv.core.layouts import Offsets
from hw.conv.core.packets import Record
from hw.lib.place import InlinePlacer
from tests.hw.conv.core.depthwise.test_sampler import Layer
from tests.hw.conv.core.plain import offset_command, packets, scaled, small, tap_command
from tests.support.gateware.streams import get, put, simulate


class Weights:
    """Random weights and parameters of a layer, and their packets."""

    def __init__(self, layer, rng):
        config = layer.config
        top = 127 if config.weight_bits == 8 else 7
        channels = layer.words * config.lanes
        taps = layer.kernel[0] * layer.kernel[1]
        self.weights = [[rng.randint(-top, top) for _ in range(taps)] for _ in range(channels)]
        self.parameters = [
            {
                "bias": rng.randint(-(1 << 12), 1 << 12),
                "multiplier": rng.randrange(1 << 16),
                "post": rng.randint(-200, 200),
                "shift": rng.randint(12, 30) + (8 if layer.masked else 0),
            }
            for _ in range(channels)
        ]

    def packets(self, layer):
        config, lanes = layer.config, layer.config.cell_lanes
        taps = len(self.weights[0])

        def record(values):
            mask = (1 << config.weight_bits) - 1
            return sum((value & mask) << n * config.weight_bits for n, value in enumerate(values))

        def of_taps(channel, step):
            return [
                self.weights[channel + lane][step * config.taps + t] if step * config.taps + t < taps else 1
                for t in range(config.taps)
                for lane in range(lanes)
            ]

        if layer.strip:
            kind, records = Record.STRIPS, [record(weights) for weights in self.weights]
        else:
            kind = Record.TAPS
            records = [
                record(of_taps(word * config.lanes + cell * lanes, step))
                for word in range(layer.words)
                for step in range(layer.steps)
                for cell in range(config.lanes // lanes)
            ]
        parameters = [packed(channel) for channel in self.parameters]
        return [
            *getattr(layer, "packets_of_dot", []),
            (kind, False, records),
            (Record.PARAMETERS, True, parameters),
        ]


def packed(parameters):
    value, at = 0, 0
    for name, bits in (("bias", 48), ("multiplier", 16), ("post", 16), ("shift", 6)):
        value |= (parameters[name] & ((1 << bits) - 1)) << at
        at += bits
    return value


def results(layer, weights):
    """Return the words that leave."""
    config = layer.config
    slice_lanes = config.lanes // config.generators
    for row in range(layer.out[0]):
        for column in range(layer.out[1]):
            sums = []
            for word in range(layer.words):
                for g in range(config.generators):
                    total = [0] * slice_lanes
                    for tap in range(layer.kernel[0] * layer.kernel[1]):
                        samples, mask = layer.sample(row, column, word, g, tap)
                        for lane, sample in enumerate(samples):
                            channel = word * config.lanes + g * slice_lanes + lane
                            if layer.strip:
                                sample >>= 2 * config.fraction_bits
                            total[lane] += (
                                sample * weights.weights[channel][tap] * (mask if layer.masked else 1)
                            )
                    sums += total
            for word in range(layer.words):
                value = 0
                for lane in range(config.lanes):
                    channel = word * config.lanes + lane
                    total = sums[channel] + weights.parameters[channel]["bias"]
                    value |= (scaled(total, weights.parameters[channel]) & 0xFF) << 8 * lane
                yield value


def digits(layer):
    """Return the words of samples that leave."""
    config = layer.config
    slice_lanes = config.lanes // config.generators
    for row in range(layer.out[0]):
        for column in range(layer.out[1]):
            for digit in range(layer.digits):
                for tap in range(layer.kernel[0] * layer.kernel[1]):
                    for word in range(layer.words):
                        value = 0
                        for g in range(config.generators):
                            samples, mask = layer.sample(row, column, word, g, tap)
                            for lane, sample in enumerate(samples):
                                sample *= mask if layer.masked else 1
                                byte = ((sample + 0x80808080) >> 8 * digit & 0xFF) ^ 0x80
                                if layer.offsets == Offsets.NONE:
                                    # A plain pixel: the sample is the pixel, less the zero point, times 4^F.
                                    byte = (sample >> 2 * config.fraction_bits) + layer.zero & 0xFF
                                value |= byte << 8 * (g * slice_lanes + lane)
                        yield value


@functools.lru_cache(maxsize=1)
def unit_of(config, beat_bits):
    """Return the unit: `simulate` compiles it once for consecutive tests."""
    return Depthwise(config, InlinePlacer(), beat_bits=beat_bits)


def check(config, layers, rng, *, beat_bits=128, stall=0.0, seed=0):
    unit = unit_of(config, beat_bits)
    expected, beats = [], []
    for layer in layers:
        if layer.samples:
            expected += digits(layer)
        else:
            weights = Weights(layer, rng)
            expected += results(layer, weights)
            beats += packets(weights.packets(layer), beat_bits)
    bent = [layer for layer in layers if layer.offsets != Offsets.NONE]
    read = [layer for layer in bent if not getattr(layer, "dot", False)]
    feeds = [
        (unit.command, [tap_command(layer) for layer in layers]),
        (unit.i, [word for layer in layers for word in layer.fill_words()]),
        (unit.weights, beats),
        (unit.offset_command, [offset_command(layer) for layer in bent]),
        (unit.offsets, [entry for layer in read for entry in layer.entries()]),
    ]
    received, cycles = [], []

    def feed(stream, items):
        async def bench(ctx):
            await put(ctx, stream, items, stall=stall, seed=seed)

        return bench

    async def take(ctx):
        received.extend(await get(ctx, unit.o, len(expected), stall=stall, seed=seed, cycles=cycles))

    simulate(unit, *(feed(*side) for side in feeds), take, limit=300_000)
    assert received == expected
    return cycles


def strip_layer(config, rng, dilation=1, **sizes):
    return Layer(
        config,
        rng,
        **{
            "strip": True,
            "rows": rng.randint(2 * dilation + 1, 8),
            "columns": rng.randint(2 * dilation + 1, 8),
            "kernel": (3, 3),
            "dilation": (dilation, dilation),
            "stride": (rng.randint(1, 2),) * 2,
            "pads": [rng.randint(0, 2 * dilation) for _ in range(2)],
            "offsets": Offsets.NONE,
            "words": rng.randint(1, 2),
            **sizes,
        },
    )


class Dot:
    """Weights of the convolution that computes a layer's offsets; it sets the layer's offsets."""

    def __init__(self, layer, rng):
        config = layer.config
        taps = layer.kernel[0] * layer.kernel[1]
        layer.dot, layer.passes = True, 1 if layer.offsets == Offsets.SQUARE else taps
        layer.masked = False
        numbers = 2 * layer.passes
        channels = layer.words * config.lanes
        self.weights = [[rng.randint(-127, 127) for _ in range(channels)] for _ in range(numbers)]
        self.parameters = [
            {
                "bias": rng.randint(-(1 << 20), 1 << 20),
                "multiplier": rng.randrange(1 << 16),
                "shift": rng.randint(24, 32),
                "post": 0,
            }
            for _ in range(numbers)
        ]
        for row in range(layer.rows):
            for column in range(layer.columns):
                pixel = []
                for word in layer.pixels[row][column]:
                    bytes_ = word.to_bytes(config.lanes, "little")
                    pixel += [b - 256 if b > 127 else b for b in bytes_]
                values = [
                    scaled(
                        sum(w * x for w, x in zip(weights, pixel, strict=True)) + parameters["bias"],
                        parameters,
                        -(1 << 15),
                        (1 << 15) - 1,
                    )
                    for weights, parameters in zip(self.weights, self.parameters, strict=True)
                ]
                given = layer.given[row * layer.columns + column]
                for tap in range(layer.passes):
                    given[0][tap][:2] = values[2 * tap : 2 * tap + 2]
        layer.packets_of_dot = self.packets(layer)

    def packets(self, layer):
        config, lanes = layer.config, layer.config.cell_lanes
        records = []
        for word in range(layer.words):
            for step in range(layer.passes):
                for cell in range(config.lanes // lanes):
                    first = word * config.lanes + cell * lanes
                    values = [
                        self.weights[2 * step + n][first + lane] & 0xFF
                        for n in range(2)
                        for lane in range(lanes)
                    ]
                    records.append(sum(value << 8 * n for n, value in enumerate(values)))
        return [
            (Record.DOT, False, records),
            (Record.DOT_PARAMETERS, False, [packed(p) for p in self.parameters]),
        ]


@pytest.mark.parametrize("taps", [2, pytest.param(1, marks=pytest.mark.soak)])
def test_offsets_on_chip(taps):
    """Offsets computed while the map is read, square and free, between layers whose offsets are read."""
    rng = random.Random(taps)
    config = small(taps=taps, lanes=16, dot_words=64, offset_entries=512)
    shape = {
        "rows": 4, "columns": 5, "kernel": (3, 3), "stride": (1, 1), "dilation": (1, 1), "pads": [1, 1],
        "groups": 1, "bound": 2,
    }  # fmt: skip
    layers = [
        Layer(config, rng, **shape, words=words, offsets=offsets)
        for words, offsets in ((1, Offsets.SQUARE), (2, Offsets.FREE), (1, Offsets.FREE), (2, Offsets.SQUARE))
    ]
    for layer in (layers[0], layers[1], layers[3]):
        layer.pads, layer.out = [1, 1], [4, 5]
        Dot(layer, rng)
    check(config, layers, rng, stall=0.3)


@pytest.mark.parametrize(
    ("changes", "beat_bits", "stall"),
    [
        pytest.param({"taps": 2, "fraction_bits": 5}, 128, 0.0, marks=pytest.mark.soak),
        pytest.param({"taps": 1, "fraction_bits": 0, "mask": False}, 256, 0.7, marks=pytest.mark.soak),
        pytest.param(
            {"taps": 2, "fraction_bits": 3, "generators": 2, "weight_bits": 4},
            256,
            0.3,
            marks=pytest.mark.soak,
        ),
        pytest.param({"taps": 1, "fraction_bits": 8, "strip": False}, 512, 0.5, marks=pytest.mark.soak),
    ],
)
def test_layers(changes, beat_bits, stall):
    rng = random.Random(f"{changes}")
    config = small(**changes)
    layers = [
        Layer(config, rng, rows=rng.randint(1, 6), columns=rng.randint(1, 6), words=1) for _ in range(3)
    ]
    if config.strip:
        layers.insert(1, strip_layer(config, rng, dilation=1))
        layers.append(strip_layer(config, rng, dilation=rng.randint(1, 2)))
    if config.samples:
        for n, offsets in enumerate((Offsets.FREE, Offsets.NONE)):
            shape = {"rows": 4, "columns": 3, "words": 2, "samples": True, "offsets": offsets}
            layers.insert(2 + n, Layer(config, rng, **shape, digits=1 if n else 3))
    check(config, layers, rng, beat_bits=beat_bits, stall=stall)


@pytest.mark.parametrize("taps", [2, pytest.param(1, marks=pytest.mark.soak)])
def test_every_pattern_of_offsets_takes_the_same_cycles(taps):
    """``ceil(9 / T)`` cycles a word and one a row, for random offsets and for offsets that crowd one bank."""
    config = small(taps=taps, lanes=8, bank_words=64)
    shape = {
        "rows": 5, "columns": 4, "words": 1, "kernel": (3, 3), "stride": (1, 1), "dilation": (1, 1),
        "pads": [1, 1], "offsets": Offsets.FREE, "groups": 1, "bound": 2,
    }  # fmt: skip
    seen = []
    for pattern in range(4):
        rng = random.Random(pattern)
        layer = Layer(config, rng, **shape)
        one = 1 << config.fraction_bits
        for pixel in layer.given:
            for tap in pixel[0]:
                if pattern == 1:
                    tap[:2] = [2 * one, -2 * one]
                elif pattern == 2:
                    tap[:2] = [0, 0]
                elif pattern == 3:
                    tap[:2] = [one * rng.choice((-2, 0, 2)), one * rng.choice((-2, 0, 2))]
        cycles = check(config, [layer], rng)
        seen.append([later - earlier for earlier, later in itertools.pairwise(cycles)])
        words = list(cycles)
        steps, rows = -(-9 // taps), layer.out[0]
        assert words[-1] - words[0] == steps * (len(words) - 1) + rows - 1
    assert all(gaps == seen[0] for gaps in seen)
