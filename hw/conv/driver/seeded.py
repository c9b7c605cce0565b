"""Seeded tensors of a network's layers: results have the spread of a map, whatever the depth."""

import numpy as np

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import Offsets
from hw.conv.driver.layer import ConvLayer
from hw.conv.driver.program import LayerTensors
from hw.conv.driver.weight_streams import ChannelParameters, DotTensors
from hw.launch import Int8

#: Target spread of maps: most of int8, with some values clamped.
_SPREAD = 48.0


class SeededTensors:
    """Draws maps, weights, offsets and parameters in the order of the calls."""

    def __init__(self, config: ConvConfig, seed: int) -> None:
        self._config = config
        self._rng = np.random.default_rng(seed)

    def map(self, channels: int, size: tuple[int, int]) -> Int8:
        """Draw a map ``[C, H, W]`` over all of int8."""
        return self._rng.integers(-128, 128, (channels, *size), dtype=np.int8)

    def weights(self, shape: tuple[int, ...]) -> Int8:
        """Draw weights ``[Cout, C / group, kH, kW]`` of the engine's bits."""
        top = 7 if self._config.weight_bits == 4 else 127
        return self._rng.integers(-top, top + 1, shape, dtype=np.int8)

    def layer(self, layer: ConvLayer, w: Int8) -> LayerTensors:
        """Draw the other tensors of a layer."""
        offset = None
        if layer.offsets is not Offsets.NONE and not layer.dot:
            assert layer.bound is not None
            reach = layer.bound << self._config.fraction_bits
            offset = self._rng.integers(-reach, reach + 1, layer.out_size, dtype=np.int16)
        return LayerTensors(
            layer=layer,
            w=w,
            parameters=self._parameters(layer, w),
            offset=offset,
            dot=self._dot(layer) if layer.dot else None,
        )

    def _parameters(self, layer: ConvLayer, w: Int8) -> ChannelParameters:
        """Scale sums, whose spread grows with the root of the number of products, to the spread of a map."""
        count = len(w)
        products = max(1.0, float(np.square(w.astype(np.float64)).sum(axis=(1, 2, 3)).mean()))
        bits = 0 if layer.offsets is Offsets.NONE else 2 * self._config.fraction_bits
        shift = 15
        while True:
            multiplier = _SPREAD / 74.0 / products**0.5 / 2.0**bits * 2.0**shift
            if multiplier >= 1 << 14:
                break
            shift += 1
        return ChannelParameters(
            bias=np.zeros(count, np.int64),
            multiplier=np.full(count, round(multiplier)),
            shift=np.full(count, shift),
            post=self._rng.integers(-8, 9, count),
        )

    def _dot(self, layer: ConvLayer) -> DotTensors:
        """Draw the layer that computes offsets of a few pixels: one a pixel, or one for each tap and axis."""
        numbers = 1 if layer.offsets is Offsets.SQUARE else 2 * layer.taps
        w = self._rng.integers(-127, 128, (numbers, layer.channels), dtype=np.int8)
        spread = 74.0 * 74.0 * layer.channels**0.5
        shift = 24
        multiplier = 3.0 * 2.0**self._config.fraction_bits / spread * 2.0**shift
        while multiplier >= 1 << 16:
            shift, multiplier = shift - 1, multiplier / 2
        return DotTensors(
            w=w,
            bias=np.zeros(numbers, np.int64),
            multiplier=np.full(numbers, round(multiplier)),
            shift=np.full(numbers, shift),
        )
