"""What the rules of a transformer's graph share: constants, tensors so far, and the blocks made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from hw.network.graph.refs import Array, Constant
from hw.network.graph.transformer.blocks import (
    POOLS,
    Attention,
    Block,
    Dense,
    Floats,
    Function,
    Mean,
    Norm,
    Parameters,
    Quantization,
    Rows,
    Sum,
    real,
)
from hw.network.graph.transformer.refs import (
    Mixed,
    Normal,
    Product,
    Ref,
    Shifted,
    Tokens,
    Total,
)
from hw.network.graph.views import UnsupportedError, attributes_of
from hw.scheduler.graph.importers.onnx_constants import evaluate
from hw.scheduler.graph.importers.onnx_learned import Learned

#: Largest error of a mean that is written as a sum and a factor.
_MEAN_ERROR = 1e-5


class Context:
    """Tensors of a graph by name, as far as it is read.

    ``tokens``: the number of tokens that shapes have.
    """

    def __init__(self, graph: onnx.GraphProto, learned: Learned, tokens: int) -> None:
        self.learned, self.tokens = learned, tokens
        self.refs: dict[str, Ref] = {}
        #: Of a view of a whole tensor: the tensor.
        self.roots: dict[str, str] = {}
        self.blocks: list[Block] = []
        self._single: set[str] = set()  # tensors of one row
        self.channels: dict[str, int] = {}
        self.quantizations: dict[str, Quantization] = {}
        #: Constants that are stored as integers, with their scales.
        self.stored: dict[str, Constant] = {}
        self._parameters = {each.name: each for each in graph.initializer}
        self._makers = {name: node for node in learned.nodes for name in node.output if name}
        self._known: dict[str, Array] = {}

    def is_constant(self, name: str) -> bool:
        """Return whether a tensor follows from the model's parameters alone."""
        return name in self.learned.constants

    def constant(self, name: str) -> Array:
        """Return the values of a constant."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._constant(name)
        return found

    def _constant(self, name: str) -> Array:
        learned = self.learned.constants.get(name)
        if learned is not None:
            return np.asarray(learned)
        if name in self.stored:
            return self.stored[name].real
        if name in self._parameters:
            return numpy_helper.to_array(self._parameters[name])
        node = self._makers.get(name)
        if node is None:
            raise UnsupportedError(f"constant {name} has no values in the model")
        if node.op_type == "DequantizeLinear":
            return self.dequantized(node).real
        if node.op_type == "Constant":
            return numpy_helper.to_array(node.attribute[0].t)
        values = [self.constant(each) if each else None for each in node.input]
        found = evaluate(node, values, self.learned.opsets.get(name, self.learned.opset))
        if found is None:
            raise UnsupportedError(f"constant {name} is not computed: its operator is {node.op_type}")
        for each, array in zip(node.output, found, strict=True):
            self._known[each] = array
        return self._known[name]

    def dequantized(self, node: onnx.NodeProto) -> Constant:
        """Return the constant that a DequantizeLinear makes of another."""
        stored = self.constant(node.input[0])
        scales = self.constant(node.input[1])
        zeros = self.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros(1)
        axis = attributes_of(node).get("axis", 1) % max(1, stored.ndim)
        found = Constant(
            stored=stored, scales=scales.reshape(-1), zeros=zeros.astype(np.int64).reshape(-1), axis=axis
        )
        self.stored[node.output[0]] = found
        return found

    def parameters(self, name: str) -> Parameters:
        """Return a constant as parameters, with its scales where it is stored as integers."""
        if not self.is_constant(name):
            raise UnsupportedError(f"operand {name} is no constant")
        node = self._makers.get(name)
        if name not in self.stored and node is not None and node.op_type == "DequantizeLinear":
            self.dequantized(node)
        return self.stored[name] if name in self.stored else self.constant(name).astype(np.float64)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return tuple(self.learned.shape(name))

    def ref(self, name: str) -> Ref | None:
        """Return the reference of a tensor; None for a constant."""
        return self.refs.get(self.roots.get(name, name))

    def value(self, name: str) -> str:
        """Return the tensor of a name as one that blocks make and read."""
        name = self.roots.get(name, name)
        ref = self.refs.get(name)
        if ref is None or name not in self._makers:
            raise UnsupportedError(f"operand {name} is no tensor of tokens")
        if isinstance(ref, Tokens) and ref.function is None:
            return ref.value
        block = self._block(name, ref)
        self.add(block, self._made(ref))
        self.refs[name] = Tokens(value=name)
        return name

    def add(self, block: Block, channels: int) -> None:
        """Add a block that makes a tensor of so many channels."""
        if self._single.intersection(block.inputs):
            raise UnsupportedError(
                f"{block.name} reads the mean or the first of the tokens, which is an output"
            )
        if isinstance(block, POOLS):
            self._single.add(block.output)
        self.blocks.append(block)
        self.channels[block.output] = channels

    def _made(self, ref: Ref) -> int:
        if isinstance(ref, Product):
            return int(real(ref.weights).shape[1])
        if isinstance(ref, Mixed):
            return self.channels[ref.values]
        assert isinstance(ref, (Tokens, Shifted, Normal, Total))
        return self.channels[ref.value]

    def _block(self, name: str, ref: Ref) -> Block:
        node = self._makers[name]
        words: dict[str, Any] = {"name": node.name or name, "op": node.op_type, "output": name}
        if isinstance(ref, Tokens):
            assert ref.function is not None
            return Function(inputs=(ref.value,), real=ref.function, **words)
        if isinstance(ref, Product):
            columns = real(ref.weights).shape[1]
            bias = np.zeros(columns) if ref.bias is None else ref.bias
            return Dense(inputs=(ref.value,), weights=ref.weights, bias=bias, **words)
        if isinstance(ref, Shifted):
            rows = f"{name}:rows"
            self.add(
                Rows(name=rows, op="Constant", inputs=(), output=rows, rows=ref.rows),
                self.channels[ref.value],
            )
            if isinstance(ref.rows, Constant):
                self.quantizations[rows] = of_constant(ref.rows)
            return Sum(inputs=(ref.value, rows), **words)
        if isinstance(ref, Normal):
            channels = self.channels[ref.value]
            gain = np.ones(channels) if ref.gain is None else ref.gain
            bias = np.zeros(channels) if ref.bias is None else ref.bias
            return Norm(inputs=(ref.value,), gain=gain, bias=bias, epsilon=ref.epsilon, **words)
        if isinstance(ref, Mixed) and ref.order == "THD":
            scores = ref.scores
            return Attention(
                inputs=(scores.queries, scores.keys, ref.values),
                heads=scores.heads,
                scale=scores.factor,
                causal=scores.causal,
                **words,
            )
        if isinstance(ref, Total) and abs(ref.factor * self.tokens - 1) < _MEAN_ERROR:
            return Mean(inputs=(ref.value,), **words)
        raise UnsupportedError(f"operand {name} is {type(ref).__name__.lower()}, no whole tensor of tokens")

    def attributes(self, node: onnx.NodeProto) -> Mapping[str, Any]:
        """Return a node's attributes by name."""
        return attributes_of(node)


def of_constant(constant: Constant) -> Quantization:
    """Return how a constant of one scale is stored."""
    kinds = {"int8": (8, False), "uint8": (8, True), "int16": (16, False)}
    if constant.stored.dtype.name not in kinds or constant.zeros.size > 1:
        raise UnsupportedError(f"a constant of type {constant.stored.dtype.name}, or of several zero points")
    bits, unsigned = kinds[constant.stored.dtype.name]
    return Quantization(
        scales=constant.scales, zero=int(constant.zeros.reshape(-1)[0]), bits=bits, unsigned=unsigned
    )


def vector(constant: Array, channels: int) -> Floats | None:
    """Return a constant as a number for each channel, or None if it is no such."""
    if constant.size == 1 or (constant.size == channels and constant.shape[-1] == channels):
        return np.broadcast_to(constant.astype(np.float64).reshape(-1), (channels,)).copy()
    return None


def scalar(constant: Array) -> float | None:
    """Return the one number that all elements of a constant are, or None."""
    numbers = constant.reshape(-1)
    return float(numbers[0]) if numbers.size and bool((numbers == numbers[0]).all()) else None
