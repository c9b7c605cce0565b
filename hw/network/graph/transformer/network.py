"""The network of integers that a quantized transformer is, for sentences of given lengths."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hw.errors import InputError, check_range
from hw.network.graph import network as graph
from hw.network.graph.network import (
    GROUP_CHANNELS,
    ModelTensor,
    Network,
    Operator,
    Value,
)
from hw.network.graph.norms import norm_rows
from hw.network.graph.plain import check_sums
from hw.network.graph.refs import Array, Constant, quantize
from hw.network.graph.transformer.blocks import (
    POOLS,
    Attention,
    Block,
    Blocks,
    Dense,
    First,
    Floats,
    Function,
    Lookup,
    Norm,
    Quantization,
    Rows,
    Sum,
)
from hw.network.graph.transformer.reader import read_blocks
from hw.network.graph.views import UnsupportedError

#: Tokens of all sentences together.
MOST_TOKENS = 4096


def read_tokens(source: Path | bytes, segments: Sequence[int], *, name: str = "") -> Network:
    """Read a quantized transformer for sentences of so many tokens each, one behind the other.

    Raises `InputError` for a model that is not quantized or not supported, and for lengths that exceed its
    rows of positions.
    """
    for tokens in segments:
        check_range("tokens of a sentence", tokens, 1, MOST_TOKENS)
    check_range("tokens of all sentences", sum(segments), 1, MOST_TOKENS)
    return network_of(read_blocks(source, tokens=max(segments), name=name), segments)


def network_of(blocks: Blocks, segments: Sequence[int]) -> Network:
    """Return the network of quantized blocks."""
    made = _Builder(blocks, tuple(segments))
    for block in blocks.blocks:
        try:
            made.take(block)
        except UnsupportedError as error:
            raise InputError(
                f"operator {block.name!r}", block.op, f"one that integers compute ({error})"
            ) from error
    outputs = tuple(
        ModelTensor(name=name, value=tensor, shape=made.values[tensor].shape, order="NWC", real=True)
        for name, tensor in blocks.outputs.items()
    )
    ids = ModelTensor(name=blocks.ids, value=blocks.ids, shape=(1, sum(segments)), order="NW", real=False)
    return Network(
        name=blocks.name,
        values=made.values,
        operators=tuple(made.operators),
        inputs=(blocks.ids,),
        outputs=tuple(dict.fromkeys(each.value for each in outputs)),
        constants=made.constants,
        model_inputs=(ids,),
        model_outputs=outputs,
    )


class _Builder:
    """Makes values and operators of blocks."""

    def __init__(self, blocks: Blocks, segments: tuple[int, ...]) -> None:
        self._blocks, self._segments = blocks, segments
        self._tokens = sum(segments)
        ids = Value(name=blocks.ids, shape=(1, self._tokens, 1), scale=1.0, zero=0, bits=32)
        self.values: dict[str, Value] = {ids.name: ids}
        self.constants: dict[str, Array] = {}
        self.operators: list[Operator] = []

    def take(self, block: Block) -> None:
        """Add a block's operator and its result."""
        rows = len(self._segments) if isinstance(block, POOLS) else self._tokens
        value = self._value(block.output, rows)
        self.values[value.name] = value
        if isinstance(block, Rows):
            self.constants[value.name] = self._rows(block)
            return
        names = {"name": block.name, "inputs": block.inputs, "output": block.output}
        low, high = value.bounds
        self.operators.append(self._operator(block, value, {**names, "low": low, "high": high}))

    def _value(self, name: str, rows: int) -> Value:
        if name not in self._blocks.quantizations:
            raise UnsupportedError("its result is not quantized: see `loomwork quantize`")
        found = self._blocks.quantizations[name]
        scale, shifts = _scale(found, self._blocks.channels[name])
        return Value(
            name=name,
            shape=(1, rows, self._blocks.channels[name]),
            scale=scale,
            zero=found.zero - 128 * found.unsigned,
            unsigned=found.unsigned,
            bits=found.bits,
            group_shifts=shifts,
        )

    def _rows(self, block: Rows) -> Array:
        """Return the rows of each sentence's positions."""
        rows = _integers(block.rows, "rows of positions")
        if max(self._segments) > len(rows):
            raise UnsupportedError(f"a sentence of {max(self._segments)} tokens: rows for {len(rows)}")
        return np.concatenate([rows[:tokens] for tokens in self._segments])[np.newaxis]

    def _operator(self, block: Block, value: Value, names: dict) -> Operator:
        before = [self.values[name] for name in block.inputs]
        if isinstance(block, Lookup):
            table = _integers(block.table, "a table")
            assert isinstance(block.table, Constant)
            if float(block.table.scales[0]) != value.scale or value.bits != 16:
                raise UnsupportedError("its result has another scale than its table, or 8 bits")
            return graph.Gather(table=table.astype(np.int16), **names)
        if isinstance(block, Sum):
            return graph.Sum(**names)
        if isinstance(block, Norm):
            gain, bias = (each.astype(np.float32) for each in (block.gain, block.bias))
            norm = graph.LayerNorm(gain=gain, bias=bias, epsilon=float(np.float32(block.epsilon)), **names)
            norm_rows(norm, before[0], value)
            return norm
        if isinstance(block, Dense):
            return self._product(block, before[0], value, names)
        if isinstance(block, Function):
            return graph.Table(function=block.op, results=_results(block, before[0], value), **names)
        if isinstance(block, Attention):
            return graph.Attention(
                heads=block.heads,
                softmax_scale=float(np.float32(block.scale)),
                segments=self._segments,
                causal=block.causal,
                **names,
            )
        assert isinstance(block, POOLS)
        return graph.TokenMean(segments=self._segments, first=isinstance(block, First), **names)

    def _product(self, block: Dense, before: Value, after: Value, names: dict) -> Operator:
        if before.bits != 8:
            raise UnsupportedError("its operand has 16 bits")
        if not isinstance(block.weights, Constant) or block.weights.stored.dtype != np.int8:
            raise UnsupportedError("its weights are not int8")
        weights = block.weights
        if weights.zeros.any() or (weights.scales.size > 1 and weights.axis != 1):
            raise UnsupportedError("its weights have a zero point, or other scales than one a column")
        columns = weights.stored.shape[1]
        scales = np.broadcast_to(weights.scales.reshape(-1).astype(np.float32), (columns,)).copy()
        bias = np.rint(block.bias.astype(np.float32) / (before.finest_scale * scales.astype(np.float64)))
        if np.abs(bias).max(initial=0) > 2**31 - 1:
            raise UnsupportedError("its bias exceeds int32")
        made = graph.Convolution(
            weights=weights.stored[np.newaxis, np.newaxis],
            bias=bias.astype(np.int32),
            weight_scales=scales,
            **names,
        )
        check_sums(made, before, after)
        return made


def _scale(quantization: Quantization, channels: int) -> tuple[float, tuple[int, ...]]:
    """Return the coarsest scale, and the exponents of the powers of two that divide it, by group."""
    scales = quantization.scales.reshape(-1)
    if scales.size == 1:
        return float(scales[0]), ()
    coarsest = float(scales.max())
    exponents = np.log2(coarsest / scales.astype(np.float64))
    shifts = np.rint(exponents[::GROUP_CHANNELS]).astype(np.int64)
    every = np.repeat(shifts, GROUP_CHANNELS)[:channels]
    if scales.size != channels or not np.array_equal(every, exponents):
        raise UnsupportedError(f"scales of channels: powers of two apart, one a group of {GROUP_CHANNELS}")
    return coarsest, tuple(int(each) for each in shifts)


def _integers(parameters: Floats | Constant, what: str) -> Array:
    if not isinstance(parameters, Constant) or parameters.scales.size != 1 or parameters.zeros.any():
        raise UnsupportedError(f"{what} without one scale, or with a zero point")
    return parameters.stored


def _results(block: Function, before: Value, after: Value) -> Array:
    """Return the 256 results of a function, or those of each group of channels."""
    if before.bits != 8 or before.group_shifts:
        raise UnsupportedError("its operand has 16 bits, or groups")
    numbers = (np.arange(-128, 128) - before.zero).astype(np.float32) * np.float32(before.scale)
    real = block.real(numbers)
    if not after.group_shifts:
        return quantize(real, after)
    return np.stack(
        [quantize(np.ldexp(np.asarray(real, np.float32), shift), after) for shift in after.group_shifts]
    )
