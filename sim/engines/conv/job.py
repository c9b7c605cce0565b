"""A launch of the convolution engine: a layer of tensors, or a table of layers."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hw.conv.config import ConvConfig
from hw.conv.driver.formats import quantized_map
from hw.conv.driver.program import ConvProgram
from hw.conv.driver.tensors import RESULT, SUMS, QuantizedLayer, joined_sums, read_tensors
from hw.launch import Tensor, Tensors
from sim.engines.conv.execute import sums

Int8 = NDArray[np.int8]
#: Name of the sums, and of their number of units in ``w (x - x_zero)``.
TOTAL, TOTAL_SCALE = "acc", "acc_scale"


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkJob:
    """A table of layers: every map that is written is compared."""

    program: ConvProgram

    def integers(self, maps: Mapping[str, Int8]) -> dict[str, Tensor]:
        """Return the maps unchanged."""
        return dict(maps)

    def maps(self, integers: Tensors) -> dict[str, Tensor]:
        """Return the maps of `integers`."""
        return dict(integers)

    def results(self, integers: Tensors) -> dict[str, Tensor]:
        """Return the maps unchanged."""
        return dict(integers)

    def errors(self, integers: Tensors) -> dict[str, float]:
        """Return nothing: seeded weights have no real values."""
        return {}


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerJob:
    """A layer, with the real values of its numbers."""

    program: ConvProgram  #: The layer, then a step for each byte of its sums, if asked for.
    bytes: int  #: Number of these bytes.
    #: Fraction bits of the sums: those of samples and masks; none where samples are pixels.
    sum_bits: int
    #: ``y_scale``, ``y_zero``: ``y_float = (y - y_zero) * y_scale``.
    y_scale: float
    y_zero: int
    given: QuantizedLayer

    @cached_property
    def exact(self) -> NDArray[np.float64]:
        """Real values of the sums, float64 ``[Cout, oH, oW]``: the layer of the quantized map, weights and
        offsets without rounding.
        """
        return _exact(self.given)

    def integers(self, maps: Mapping[str, Int8]) -> dict[str, Tensor]:
        """Return ``y`` int8, and ``acc`` int64 if it was asked for."""
        found: dict[str, Tensor] = {RESULT: maps[RESULT]}
        if self.bytes:
            found[TOTAL] = joined_sums(maps, self.bytes)
        return found

    def maps(self, integers: Tensors) -> dict[str, Tensor]:
        """Return the maps of `integers`: ``y``, and one for each byte of the sums."""
        found = {RESULT: integers[RESULT]}
        for n in range(self.bytes):
            found[f"{SUMS}{n}"] = (integers[TOTAL] >> (8 * n) & 255).astype(np.uint8).view(np.int8)
        return found

    def results(self, integers: Tensors) -> dict[str, Tensor]:
        """Return ``y`` and ``acc`` unchanged, ``y_float``, and with ``acc`` its ``acc_scale``."""
        scale = {TOTAL_SCALE: np.array(1 << self.sum_bits)} if self.bytes else {}
        return {**integers, **scale, "y_float": self._reals(integers)}

    def errors(self, integers: Tensors) -> dict[str, float]:
        """Return the distance of ``y_float`` from the sums, relative to their root mean square."""
        size = float(np.sqrt(np.mean(self.exact**2))) or 1.0
        wrong = float(np.sqrt(np.mean((self._reals(integers) - self.exact) ** 2)))
        return {"relative_rms": wrong / size}

    def _reals(self, integers: Tensors) -> NDArray[np.float64]:
        reals: NDArray[np.float64] = (integers[RESULT].astype(np.float64) - self.y_zero) * self.y_scale
        return reals


def layer_job(tensors: Tensors, config: ConvConfig) -> LayerJob:
    """Read a layer; without a ``y_scale``, the range of the result is that of its golden sums.

    Raises `InputError`, as `read_tensors`.
    """
    given = read_tensors(tensors, config)
    return _layer_job(given, *(given.result_scale or quantized_map(_exact(given))[1:]))


def control_layer_job(tensors: Tensors, config: ConvConfig) -> LayerJob:
    """Read a layer as `layer_job` does, but for the scale of its result: cycles do not depend on it."""
    given = read_tensors(tensors, config)
    return _layer_job(given, *(given.result_scale or (float(given.sum_unit.max()), 0)))


def _layer_job(given: QuantizedLayer, y_scale: float, y_zero: int) -> LayerJob:
    return LayerJob(
        program=given.program(y_scale, y_zero),
        bytes=given.sum_bytes,
        sum_bits=given.sum_bits,
        y_scale=y_scale,
        y_zero=y_zero,
        given=given,
    )


def _exact(given: QuantizedLayer) -> NDArray[np.float64]:
    total = sums(given.layer, given.x, given.config, given.route)
    real: NDArray[np.float64] = total * given.sum_unit.reshape(-1, 1, 1)
    return real
