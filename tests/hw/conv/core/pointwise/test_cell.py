"""A cell against the formula; tiles are adopted as early as allowed, each with its own parameters."""

import random

import pytest

from hw.conv.core.pointwise.cell import PointwiseCell, cell_columns
from hw.conv.core.pointwise.weights import TileShape
from tests.hw.conv.core.plain import small
from tests.support.gateware.play import play
from tests.support.gateware.streams import seeds

CONFIGS = {"int8": small(), "int4": small(weight_bits=4), "sums": small(inputs=16, samples=False)}


def random_parameters(rng, config):
    most = config.inputs << (7 + config.weight_bits - 1)
    shift = rng.randint(12, 20)
    return {
        "bias": rng.randint(-most, most),
        "multiplier": rng.randint(1, 1 << 11),
        "post": rng.randint(-90, 90),
        "shift": shift,
    }


class Played:
    """The inputs of each cycle, and the results expected of them."""

    def __init__(self, unit, config, columns, beat_bits, rng):
        self.unit, self.config, self.columns, self.rng = unit, config, columns, rng
        self.shape = TileShape(config, beat_bits)
        self.inputs, self.expected = [], {}
        self.sums = {}
        self.settings = self.parameters = None

    def at(self, cycle, signal, value):
        while len(self.inputs) <= cycle:
            self.inputs.append([(signal, {}) for signal in (self.unit.control, *self.unit.load)])
        self.inputs[cycle].append((signal, value))

    def tile(self, start, least, pixels, *, first, digit):
        """Load a tile in the cycles before ``start``, and sweep it."""
        rng, config = self.rng, self.config
        most = (1 << (config.weight_bits - 1)) - 1
        lowest = -most - (config.weight_bits == 8)
        weights = [
            [rng.choice([lowest, most, rng.randint(lowest, most)]) for _ in range(config.inputs)]
            for _ in range(self.columns)
        ]
        fresh = first or self.parameters is None
        if fresh:
            self.parameters = [random_parameters(rng, config) for _ in range(self.columns)]
            self.settings = {"zero": 0, "low": rng.randint(-128, -60), "high": rng.randint(60, 127)}
            self.settings["raw"] = rng.random() < 0.2
        shape, pieces = self.shape, self.shape.pieces
        for n, column in enumerate(weights):
            bits = sum((w & (2 * most + 1)) << (i * config.weight_bits) for i, w in enumerate(column))
            for piece in range(pieces):
                cycle = rng.randint(start - least + 2, start) if pieces == 1 else start - piece
                part = bits >> (piece * shape.piece_bits) & ((1 << shape.piece_bits) - 1)
                load = {"weights": part, "pieces": 1 << piece, "parameters": fresh and piece == 0}
                load["record"] = self.parameters[n]
                self.at(cycle, self.unit.load[n], load)
        for n in range(pixels):
            x = [rng.choice([-128, 127, rng.randint(-128, 127)]) for _ in range(config.inputs)]
            step = {"valid": 1, "first": first, "pixel": n}
            if config.samples:
                step["digit"] = digit
            control = {"step": step, "adopt": n == 0, "parameters": fresh, "settings": self.settings}
            self.at(start + n, self.unit.x, x)
            self.at(start + n, self.unit.control, control)
            dots = [sum(w * value for w, value in zip(column, x, strict=True)) for column in weights]
            before = [given["bias"] for given in self.parameters] if first else self.sums[n]
            self.sums[n] = [a + (b << 8 * digit) for a, b in zip(before, dots, strict=True)]
            self.expected[start + n] = [
                self._scaled(value, given) for value, given in zip(self.sums[n], self.parameters, strict=True)
            ]

    def _scaled(self, value, given):
        if self.settings["raw"]:
            byte = ((value * given["multiplier"] >> given["shift"]) + given["post"]) & 0xFF
            return byte - 256 * (byte > 127)
        half = 1 << given["shift"] >> 1
        result = ((value * given["multiplier"] + half) >> given["shift"]) + given["post"]
        return min(max(result, self.settings["low"]), self.settings["high"])


OTHERS = [("int4", 1), ("int4", 2), ("sums", 2)]


@pytest.mark.parametrize("seed", seeds(1, 8))
@pytest.mark.parametrize("beat_bits", [32, pytest.param(256, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("name", "columns"),
    [("int8", 2), ("int4", 3), *(pytest.param(*case, marks=pytest.mark.soak) for case in OTHERS)],
)
def test_tiles(name, columns, beat_bits, seed):
    config, rng = CONFIGS[name], random.Random(f"{name} {columns} {beat_bits} {seed}")
    unit = PointwiseCell(config, columns=columns, beat_bits=beat_bits)
    played = Played(unit, config, columns, beat_bits, rng)
    least = PointwiseCell.least_sweep(config)
    start, pixels = 2 * least, 0
    for n in range(14):
        first = n == 0 or rng.random() < 0.6
        pixels = rng.choice([least, rng.randint(1, 16)]) if first else pixels
        played.tile(start, least, pixels, first=first, digit=rng.randrange(4) if config.samples else 0)
        start += max(least, pixels) + rng.choice([0, 0, 3])
    found = play(unit, played.inputs, list(unit.o), PointwiseCell.latency(config))
    assert {cycle: found[cycle] for cycle in played.expected} == played.expected


def test_columns_of_cells():
    assert cell_columns(small(outputs=16)) == [2] * 8
    assert cell_columns(small(outputs=16, weight_bits=4)) == [3] * 5 + [1]
    assert cell_columns(small(outputs=8, weight_bits=4)) == [3, 3, 2]
