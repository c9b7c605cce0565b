"""Random layers for the pointwise unit: their commands and streams, and results by plain loops."""

import random
from dataclasses import dataclass, field

import numpy as np

from hw.conv.core.packets import Record, TileHeader
from hw.conv.core.pointwise.weights import TileShape


@dataclass(kw_only=True)
class Layer:
    """A layer of ``blocks`` blocks of rows; sizes as in the commands of `hw.conv.core.pointwise.commands`."""

    config: object
    seed: object
    rows: int
    last_rows: int
    columns: int
    blocks: int
    words: int  #: Words of an input pixel, without its digits.
    out_words: int  #: Words of a part.
    digits: int = 1
    parts: int = 1
    split: int = 0
    double: int = 0
    shuffle: int = 0
    odd: int = 0  #: The last word of a part is left out, if shuffled.
    raw: int = 0
    asked: int = 0
    input_tiles: int = 0  #: Of each digit, if not all slices of all words.
    settings: dict = field(init=False)

    def __post_init__(self):
        config, self.rng = self.config, random.Random(f"layer {self.seed}")
        rng = self.rng
        self.pixels = [self.columns * self.rows] * (self.blocks - 1) + [self.columns * self.last_rows]
        total = sum(self.pixels)
        assert (
            max(self.pixels) * max(self.words * self.digits, self.parts * self.out_words)
            <= config.block_words
        )
        wild = np.random.default_rng(rng.getrandbits(32))
        self.x = wild.integers(-128, 128, (total, self.words * self.digits * config.lanes))
        self.bypass = wild.integers(-128, 128, (total, self.parts * self.out_words, config.lanes))
        low = rng.randint(-128, 0)
        self.settings = {"zero": 0, "low": low, "high": rng.randint(1, 127), "raw": self.raw}
        places = [
            (word, part)
            for word in range(self.words)
            for part in range(config.lanes // config.inputs)
        ]  # fmt: skip
        places = places[: self.input_tiles or None]
        most = 1 << (config.weight_bits - 1)
        least = -most if config.weight_bits == 8 else 1 - most
        self.tiles = []  # (headers' members, weights or None, parameters)
        for out_word in range(self.parts * self.out_words):
            for out_slice in range(config.lanes // config.outputs):
                for digit in range(self.digits):
                    for word, part in places:
                        weights = wild.integers(least, most, (config.outputs, config.inputs))
                        header = {
                            "kind": Record.TILE,
                            "digit": digit,
                            "word": digit * self.words + word,
                            "slice": part,
                            "out_word": out_word,
                            "out_slice": out_slice,
                            "first": digit == 0 and (word, part) == places[0],
                            "last": digit == self.digits - 1 and (word, part) == places[-1],
                            "ends": 0,
                        }
                        header["parameters"] = header["first"]
                        self.tiles.append((header, weights, [self._parameters() for _ in weights]))
        self.tiles[-1][0]["ends"] = 1

    def _parameters(self):
        rng = self.rng
        if self.raw:
            return {"bias": rng.getrandbits(20), "multiplier": 1, "post": 0, "shift": rng.choice([0, 8, 16])}
        sum_bits = 15 + 8 * (self.digits - 1) + self.config.weight_bits - 8
        shift = sum_bits + rng.randint(-1, 1)
        bias = rng.randint(-(1 << sum_bits), 1 << sum_bits)
        return {"bias": bias, "multiplier": rng.getrandbits(9), "post": rng.randint(-90, 90), "shift": shift}

    @property
    def block(self):
        """`BlockCommand` of the input."""
        return self._block(self.words * self.digits)

    @property
    def bypass_block(self):
        """`BlockCommand` of the bypass."""
        return self._block(self.parts * self.out_words)

    def _block(self, words):
        return {
            "block": self.pixels[0] if self.blocks > 1 else self.config.block_pixels,
            "last_block": self.pixels[-1],
            "blocks": self.blocks,
            "words": words,
            "asked": self.asked,
        }

    @property
    def sweep(self):
        """`SweepCommand`."""
        return {"blocks": self.block, "out_words": self.parts * self.out_words, "settings": self.settings}

    @property
    def drain(self):
        """`DrainCommand`."""
        return {
            "blocks": self.blocks,
            "rows": self.rows,
            "last_rows": self.last_rows,
            "columns": self.columns,
            "words": self.out_words,
            "parts": self.parts,
            "split": self.split,
            "double": self.double,
            "shuffle": self.shuffle,
            "part_words": self.part_words,
        }

    @property
    def part_words(self):
        """Words of a part that leave."""
        return 2 * self.out_words - self.odd if self.shuffle else self.out_words

    def words_in(self):
        """Words of the input."""
        lanes = self.config.lanes
        return [pack(pixel[n : n + lanes]) for pixel in self.x for n in range(0, len(pixel), lanes)]

    def bypass_words(self):
        """Words of the bypass."""
        return [pack(word) for pixel in self.bypass for word in pixel]

    def beats(self, beat_bits):
        """Tiles as beats of ``beat_bits``, once for each block."""
        shape, config, mask = TileShape(self.config, beat_bits), self.config, (1 << beat_bits) - 1
        beats = []
        for header, weights, parameters in self.tiles:
            beats.append(TileHeader().const(header).as_bits())
            stream = 0
            if header["parameters"]:
                for column, given in enumerate(parameters):
                    record = given["bias"] & ((1 << 48) - 1) | given["multiplier"] << 48
                    record |= (given["post"] & 0xFFFF) << 64 | given["shift"] << 80
                    stream |= record << (128 * column)
                beats += [stream >> (beat_bits * n) & mask for n in range(shape.parameter_beats)]
            stream = 0
            for n, weight in enumerate(weights.ravel().tolist()):
                bits = config.weight_bits
                stream |= (weight & ((1 << bits) - 1)) << (bits * n)
            beats += [stream >> (beat_bits * n) & mask for n in range(shape.weight_beats)]
        return beats * self.blocks

    def results(self):
        """Results by the formula: [pixel][word][lane]."""
        config = self.config
        out = np.zeros((len(self.x), self.parts * self.out_words, config.lanes), int)
        for header, weights, parameters in self.tiles:
            if header["first"]:
                sums = np.array([given["bias"] for given in parameters], object) + np.zeros(
                    (len(self.x), 1), object
                )
                scale = parameters
            start = header["word"] * config.lanes + header["slice"] * config.inputs
            inputs = self.x[:, start : start + config.inputs]
            sums = sums + (256 ** header["digit"]) * (inputs @ weights.T).astype(object)
            if header["last"]:
                first = header["out_slice"] * config.outputs
                for column, given in enumerate(scale):
                    out[:, header["out_word"], first + column] = [
                        self._scaled(int(value), given) for value in sums[:, column]
                    ]
        return out

    def _scaled(self, value, given):
        if self.raw:
            byte = value >> given["shift"] & 0xFF
            return byte - 256 * (byte > 127)
        half = 1 << given["shift"] >> 1
        result = ((value * given["multiplier"] + half) >> given["shift"]) + given["post"]
        return min(max(result, self.settings["low"]), self.settings["high"])

    def words_out(self):
        """Words in the order in which they leave."""
        results, words, first = self.results(), [], 0
        for pixels in self.pixels:
            for row in range(pixels // self.columns):
                start = first + row * self.columns
                row_pixels = [n for n in range(start, start + self.columns) for _ in range(1 + self.double)]
                one = []
                if self.split:
                    for part in range(self.parts):
                        for n in row_pixels:
                            one += self._part(results[n], self.bypass[n], part)
                else:
                    for n in row_pixels:
                        for part in range(self.parts):
                            one += self._part(results[n], self.bypass[n], part)
                words += one * (1 + self.double)
            first += pixels
        return words

    def _part(self, result, bypass, part):
        these = slice(part * self.out_words, (part + 1) * self.out_words)
        lanes = result[these].ravel()
        if self.shuffle:
            lanes = np.stack([bypass[these].ravel(), lanes], axis=1).ravel()
        words = lanes.reshape(-1, self.config.lanes)
        return [pack(word) for word in words[: self.part_words]]


def pack(lanes):
    """Join int8 lanes to a word."""
    return int.from_bytes(np.asarray(lanes).astype(np.int8).tobytes(), "little")


def random_layer(config, seed, **fixed):
    """Return a small layer of any kind, with the values of ``fixed``."""
    rng = random.Random(f"random {seed}")
    columns = rng.randint(1, 6)
    rows = rng.randint(1, 12 // columns)
    given = {
        "rows": rows,
        "last_rows": rng.randint(1, rows),
        "columns": columns,
        "blocks": rng.randint(1, 2),
        "words": rng.randint(1, 2),
        "out_words": rng.choice([1, 1, 2]),
        "digits": 1,
        "parts": rng.choice([1, 2]),
        "split": rng.randrange(2),
        "double": rng.randrange(2),
        "odd": rng.randrange(2),
        "asked": rng.randrange(2),
        "input_tiles": rng.choice([0, 1]),
    }
    return Layer(config=config, seed=seed, **(given | fixed))
