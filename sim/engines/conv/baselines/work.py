"""The compared work, layers with their offsets, and its cost under a schedule."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hw.conv.core.layouts import Offsets
from hw.conv.driver.layer import ConvLayer


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of a schedule."""

    cycles: float  #: From the first operation to the last.
    moved_bytes: int  #: Across the memory ports, both ways.
    #: Useful multiply-accumulates, and the most in a cycle.
    useful_macs: int
    macs: int
    microjoules: float | None = None  #: Energy of kernel, device and memory; None of a formula.

    @property
    def utilization(self) -> float:
        """Share of multiplier slots that hold a useful multiplication."""
        return self.useful_macs / (self.cycles * self.macs)


@dataclass(frozen=True, kw_only=True)
class LayerOffsets:
    """Offsets of a layer in pixels: of each tap up or down and left or right, exact multiples of 2^-F."""

    #: ``dy``, ``dx``: float64 ``[K, oH, oW]``
    dy: NDArray[np.float64]
    dx: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Work:
    """Layers one after another."""

    name: str
    layers: tuple[ConvLayer, ...]  #: At least one.
    #: Samples lie outside any line buffer of `BUFFERED_ROWS` rows; maps have three times as many.
    outside: bool = False

    @cached_property
    def useful_macs(self) -> int:
        """Multiply-accumulates that the results need."""
        return sum(layer.useful_macs for layer in self.layers)

    def offsets(self, fraction_bits: int, *, seed: int = 0) -> Sequence[LayerOffsets | None]:
        """Return offsets of all layers; None for those without."""
        rng = np.random.default_rng(seed)
        return [random_offset(layer, fraction_bits, rng, outside=self.outside) for layer in self.layers]


#: Rows of the line buffer that samples lie outside.
BUFFERED_ROWS = 16
#: Pixels that an offset without a bound may reach, both ways on both axes.
_REACH = 16


def random_offset(
    layer: ConvLayer, fraction_bits: int, rng: np.random.Generator, *, outside: bool = False
) -> LayerOffsets | None:
    """Return offsets spread evenly over the range that the layer allows."""
    if layer.offsets is Offsets.NONE:
        return None
    unit, taps = 2.0**-fraction_bits, layer.taps
    reach = _REACH if layer.bound is None else layer.bound

    def even(*shape: int) -> NDArray[np.float64]:
        steps = reach << fraction_bits
        return rng.integers(-steps, steps + 1, shape).astype(np.float64) * unit

    if layer.offsets is Offsets.SQUARE:
        one = even(*layer.out_size)
        rows, columns = (np.arange(size) - size // 2 for size in layer.kernel)
        i, j = (part.reshape(taps, 1, 1) for part in np.meshgrid(rows, columns, indexing="ij"))
        return LayerOffsets(dy=i * one, dx=j * one)
    shape = (taps, *layer.out_size)
    dy, dx = even(*shape), even(*shape)
    if outside:
        # Any row farther than the line buffer reaches, on the side where the map has more rows.
        apart = BUFFERED_ROWS + 4
        row = np.arange(layer.out_size[0]).reshape(1, -1, 1) * layer.strides[0]
        above = row >= layer.rows // 2
        low, high = np.where(above, 1, row + apart), np.where(above, row - apart, layer.rows - 2)
        target = np.round((low + rng.random(shape) * (high - low)) / unit) * unit
        tap = np.repeat(np.arange(layer.kernel[0]), layer.kernel[1]) * layer.dilations[0] - layer.pads[0]
        dy = target - (row + tap.reshape(-1, 1, 1))
    return LayerOffsets(dy=dy, dx=dx)
