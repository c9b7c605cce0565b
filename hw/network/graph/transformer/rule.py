"""Chooses how each tensor of a transformer is stored, from measured ranges.

* Sums, what is added, and what LayerNorm reads: int16.
* What a product reads behind a LayerNorm: int8, each channel divided by a factor.  The gain is divided by it
  and the weights are multiplied.
* What a product reads behind a function: int8, groups of channels with scales divided by powers of two.
* Queries, keys, values, attention's results, what a function reads: int8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from hw.errors import InputError
from hw.network.graph.network import GROUP_CHANNELS, MOST_GROUP_SHIFT
from hw.network.graph.refs import Constant
from hw.network.graph.transformer.blocks import (
    Attention,
    Block,
    Blocks,
    Dense,
    Floats,
    Function,
    Lookup,
    Norm,
    Quantization,
    Rows,
    real,
)
from hw.network.graph.transformer.functions import operator_of
from hw.network.graph.transformer.ranges import Range

#: Readers whose operands have 8 bits.
_NARROW = (Dense, Attention, Function)
#: Least magnitude that a channel counts with.
_LEAST = 1e-6
#: Share of a function's range that its flat end may lose.
_FLAT = 2.0**-12
#: Points at which a function's flat end is looked for.
_POINTS = 4096


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What is chosen, so that each choice can be left out."""

    residual_bits: int = 16  #: Of sums, of results that are added, and of what LayerNorm reads.
    #: Share of a channel's range that its factor takes; weights have the rest.  0: no factors.
    equalize: float = 0.75
    groups: bool = True  #: Whether groups of channels behind a function have scales of their own.
    margin: float = 1.25  #: Of int16 ranges, beyond what is measured.


def quantized(blocks: Blocks, ranges: Mapping[str, Range], rule: Rule) -> Blocks:
    """Return the same model with parameters in integers and all tensors quantized.

    Raises `InputError` for a tensor that needs 8 and 16 bits and is no LayerNorm's, and for a function that
    has no ONNX operator.
    """
    made = _Quantizer(blocks, ranges, rule)
    for block in blocks.blocks:
        made.take(block)
    return replace(
        blocks, blocks=tuple(made.blocks), channels=made.channels, quantizations=made.quantizations
    )


class _Quantizer:
    def __init__(self, blocks: Blocks, ranges: Mapping[str, Range], rule: Rule) -> None:
        self._given, self._ranges, self._rule = blocks, ranges, rule
        self.blocks: list[Block] = []
        self.channels = dict(blocks.channels)
        self.quantizations: dict[str, Quantization] = {}
        #: By a LayerNorm's tensor: the tensor that products read, and the factors of its channels.
        self._equalized: dict[str, tuple[str, Floats]] = {}

    def take(self, block: Block) -> None:
        """Add a block with its parameters in integers and its result quantized."""
        name = block.output
        wide, narrow = self._widths(name)
        if isinstance(block, Norm):
            self._norm(block, wide=wide, narrow=narrow)
            return
        if isinstance(block, Lookup):
            scale = self._symmetric(name, 16, margin=1.0)
            self.blocks.append(replace(block, table=_stored(real(block.table), scale)))
        elif isinstance(block, Rows):
            scale = self._symmetric(name, 16, margin=1.0)
            self.blocks.append(replace(block, rows=_stored(real(block.rows), scale)))
        elif isinstance(block, Dense):
            self.blocks.append(self._dense(block))
            scale = self._of_result(name, wide=wide, narrow=narrow)
        elif isinstance(block, Function):
            self.blocks.append(replace(block, op=operator_of(block)))
            scale = self._of_function(block, wide=wide)
        else:
            self.blocks.append(block)
            scale = self._of_result(name, wide=wide, narrow=narrow)
        if wide and narrow:
            legal = "read by products alone, or by sums and LayerNorm alone: only a LayerNorm has two forms"
            raise InputError("tensor of the model", name, legal)
        self.quantizations[name] = scale

    def _widths(self, name: str) -> tuple[bool, bool]:
        """Return whether readers want many bits, and whether they want few."""
        readers = self._given.readers.get(name, [])
        wide = name in self._given.outputs.values() or any(not isinstance(each, _NARROW) for each in readers)
        return wide, any(isinstance(each, _NARROW) for each in readers)

    def _symmetric(self, name: str, bits: int, *, margin: float | None = None) -> Quantization:
        if margin is None:
            margin = self._rule.margin if bits > 8 else 1.0
        top = max(self._ranges[name].top, _LEAST) * margin
        return Quantization(scales=_scales(top / ((1 << bits - 1) - 1)), zero=0, bits=bits)

    def _of_result(self, name: str, *, wide: bool, narrow: bool) -> Quantization:
        """Return how a result is stored, by its readers."""
        if wide or not narrow:
            return self._symmetric(name, self._rule.residual_bits)
        functions = [each for each in self._given.readers[name] if isinstance(each, Function)]
        if len(functions) != len(self._given.readers[name]):
            return self._symmetric(name, 8)
        found = self._ranges[name]
        low, high = float(found.low.min()), float(found.high.max())
        for function in functions:
            low = min(_flat_end(function, low, high), high - _LEAST)
        return _asymmetric(low, high)

    def _of_function(self, block: Function, *, wide: bool) -> Quantization:
        found = self._ranges[block.output]
        readers = self._given.readers.get(block.output, [])
        products = [each for each in readers if isinstance(each, Dense)]
        if wide:
            return self._symmetric(block.output, self._rule.residual_bits)
        if not self._rule.groups or len(products) != len(readers):
            return _asymmetric(float(found.low.min()), float(found.high.max()))
        powers = sum((real(each.weights) ** 2).sum(axis=1) for each in products)
        return _grouped(found, np.asarray(powers))

    def _dense(self, block: Dense) -> Dense:
        """Return a product with weights in int8, a scale a column."""
        source, weights = block.inputs[0], real(block.weights)
        if source in self._equalized:
            source, factors = self._equalized[source]
            weights = weights * factors[:, np.newaxis]
        made = _columns(weights)
        units = made.scales.astype(np.float64) * float(self.quantizations[source].scales.min())
        return replace(block, inputs=(source,), weights=made, bias=np.rint(block.bias / units) * units)

    def _norm(self, block: Norm, *, wide: bool, narrow: bool) -> None:
        """Add a LayerNorm once for each number of bits that its readers want."""
        name, channels = block.output, self.channels[block.output]
        if wide:
            self.blocks.append(block)
            self.quantizations[name] = self._symmetric(name, self._rule.residual_bits)
        if not narrow:
            return
        readers = self._given.readers[name]
        products = [each for each in readers if isinstance(each, Dense)]
        tops = np.maximum(self._ranges[name].channel_tops, _LEAST)
        factors = np.ones(channels)
        if self._rule.equalize and len(products) == len(
            [each for each in readers if isinstance(each, _NARROW)]
        ):
            rows = np.max([np.abs(real(each.weights)).max(axis=1) for each in products], axis=0)
            factors = _factors(tops, rows, self._rule.equalize)
        own = f"{name}:equalized" if wide else name
        self.blocks.append(
            replace(block, output=own, name=own, gain=block.gain / factors, bias=block.bias / factors)
        )
        self.channels[own] = channels
        self._equalized[name] = own, factors
        self.quantizations[own] = Quantization(
            scales=_scales(float((tops / factors).max()) / 127), zero=0, bits=8
        )


def _scales(scale: float | Floats) -> np.ndarray:
    return np.atleast_1d(np.asarray(scale, np.float32))


def _factors(tops: Floats, rows: Floats, share: float) -> Floats:
    """Return the factor of each channel from its range and that of its weights; their geometric mean is 1."""
    found = tops**share / np.maximum(rows, _LEAST) ** (1 - share)
    return np.asarray(found / np.exp(np.log(found).mean()))


def _stored(parameters: Floats, quantization: Quantization) -> Constant:
    """Return real numbers as integers of one scale."""
    kind = np.int16 if quantization.bits == 16 else np.int8
    low, high = quantization.bounds
    stored = np.clip(np.rint(parameters / float(quantization.scales[0])), low, high).astype(kind)
    return Constant(stored=stored, scales=quantization.scales, zeros=np.zeros(1, np.int64), axis=1)


def _columns(weights: Floats) -> Constant:
    """Return weights as int8 with a scale a column."""
    tops = np.abs(weights).max(axis=0)
    scales = np.where(tops > 0, tops / 127, 1.0).astype(np.float32)
    stored = np.clip(np.rint(weights / scales), -127, 127).astype(np.int8)
    return Constant(stored=stored, scales=scales, zeros=np.zeros(1, np.int64), axis=1)


def _asymmetric(low: float, high: float) -> Quantization:
    low, high = min(low, 0.0), max(high, 0.0, low + _LEAST)
    scales = _scales((high - low) / 255)
    zero = int(np.clip(np.rint(-128 - low / float(scales[0])), -128, 127))
    return Quantization(scales=scales, zero=zero, bits=8)


def _flat_end(block: Function, low: float, high: float) -> float:
    """Return where a function begins to change by more than it may lose."""
    points = np.linspace(low, high, _POINTS)
    results = np.asarray(block.real(points), np.float64)
    allowed = _FLAT * float(results.max() - results.min())
    flat = np.abs(np.maximum.accumulate(results) - np.minimum.accumulate(results)) <= allowed
    return float(points[max(0, int(flat.sum()) - 1)])


def _grouped(found: Range, powers: Floats) -> Quantization:
    """Return scales of groups that are a power of two apart, and the zero point with the least error.

    ``powers``: by channel, how much the product that follows amplifies the square of an error.
    """
    low, high = (_by_group(each, least) for each, least in ((found.low, True), (found.high, False)))
    low, high = np.minimum(low, 0), np.maximum(high, _LEAST)
    weights = np.add.reduceat(powers, np.arange(0, len(powers), GROUP_CHANNELS))
    best: tuple[float, int, Floats] | None = None
    for zero in range(-128, 1):
        below = -low / (zero + 128) if zero > -128 else np.where(low < 0, np.inf, 0.0)
        needed = np.maximum(high / (127 - zero), below)
        if not np.isfinite(needed).all():
            continue
        coarsest = float(np.float32(needed.max()))
        exponents = np.clip(np.floor(np.log2(coarsest / needed)), 0, MOST_GROUP_SHIFT)
        scales = coarsest * 0.5**exponents
        error = float((scales**2 * weights).sum())
        if best is None or error < best[0]:
            best = error, zero, scales
    assert best is not None
    every = np.repeat(best[2], GROUP_CHANNELS)[: len(powers)]
    return Quantization(scales=_scales(every), zero=best[1], bits=8)


def _by_group(channels: Floats, least: bool) -> Floats:
    rule = np.minimum if least else np.maximum
    return np.asarray(rule.reduceat(channels, np.arange(0, len(channels), GROUP_CHANNELS)))
