"""Tiles of the matrix array: drawn weights and parameters, their packets, and results of the definition."""

from dataclasses import dataclass, field

import numpy as np

from hw.lib.arithmetic.float_scale import float_scale_fields
from hw.network.matrix.config import BEAT_INPUTS, RESULT_BITS
from hw.network.matrix.layouts import ScaleBeat, WeightBeat, ZeroBeat
from sim.golden.float_scale import float_scaled


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Biases, scales and zero points of columns."""

    bias: np.ndarray
    scale: np.ndarray
    zero: np.ndarray
    small: np.ndarray  #: Columns whose weights are -1, 0 and 1: a sum that is off by one shows.


def drawn_parameters(rng, columns, tiles, inputs):
    """Draw parameters; most results are neither at a bound nor 0."""
    most = np.sqrt(inputs * tiles) * 74 * 74
    bias = rng.integers(-int(most), int(most), columns)
    bias[rng.random(columns) < 0.1] = rng.choice([-(1 << 30), 1 << 30])
    scale = np.exp2(rng.uniform(10, 17, columns)) / most
    scale[rng.random(columns) < 0.2] = 2.0 ** rng.integers(-9, -5)  # many ties
    scale[rng.random(columns) < 0.1] = 0
    small = rng.random(columns) < 0.3
    bias[small] %= 128
    scale[small] = 0.5
    zero = rng.integers(-128, 128, columns)
    return Parameters(bias=bias, scale=scale.astype(np.float32), zero=zero, small=small)


def drawn_weights(rng, inputs, parameters):
    """Draw a tile's weights."""
    large = drawn_bytes(rng, inputs, len(parameters.small))
    return np.where(parameters.small, rng.integers(-1, 2, large.shape), large)


def drawn_bytes(rng, *shape):
    """Draw int8 with many of the extreme ones."""
    drawn = rng.integers(-128, 128, shape)
    return np.where(rng.random(shape) < 0.1, rng.choice([-128, 127], shape), drawn)


def word_of(values):
    """Return the word of some int8, the first one lowest."""
    return int.from_bytes(np.asarray(values, np.int8).tobytes(), "little")


def beats(weights, parameters=None):
    """Return the beats of two columns: ``weights`` [inputs, 2], and parameters or none."""
    inputs = len(weights)
    found = []
    for last in range(inputs, 0, -BEAT_INPUTS):
        part = weights[last - BEAT_INPUTS : last].T.tolist()
        found.append(WeightBeat().const(part).as_bits())
    if parameters is not None:
        for bias, scale in zip(parameters.bias, parameters.scale, strict=True):
            multiplier, exponent = float_scale_fields(float(scale))
            fields = {"bias": int(bias), "multiplier": multiplier, "exponent": exponent}
            found.append(ScaleBeat().const(fields).as_bits())
        found.append(ZeroBeat().const(parameters.zero.tolist()).as_bits())
    return found


def packet(weights, parameters=None):
    """Return the words of a packet: ``weights`` [inputs, columns]."""
    cells = []
    for first in range(0, weights.shape[1], 2):
        pair = slice(first, first + 2)
        own = parameters and Parameters(**{name: value[pair] for name, value in vars(parameters).items()})
        cells.append(beats(weights[:, pair], own))
    return [sum(beat << (64 * n) for n, beat in enumerate(word)) for word in zip(*cells, strict=True)]


@dataclass(kw_only=True)
class Sums:
    """Sums of pixels by their places, as the definition has them."""

    parameters: Parameters
    of_pixel: dict = field(default_factory=dict)

    def add(self, place, x, weights, shift):
        """Add a tile's products, shifted to the left; return the results that would leave now."""
        before = self.of_pixel.get(place, self.parameters.bias)
        total = self.of_pixel[place] = before + (x @ weights << shift)
        return [
            int(float_scaled(np.array([value]), scale, zero, bits=RESULT_BITS)[0])
            for value, scale, zero in zip(total, self.parameters.scale, self.parameters.zero, strict=True)
        ]
