"""Operators that onnxruntime's optimizer writes, in place of each the ONNX operators that it stands for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hw.network.graph.refs import Array
from hw.network.graph.views import attributes_of

#: Operators whose result may have a bias beside it.
_PRODUCTS = ("MatMul", "FusedMatMul", "MatMulIntegerToFloat", "Gemm")
#: Default epsilon of onnxruntime's fused LayerNorms.
_EPSILON = 1e-12


def expand(model: onnx.ModelProto) -> None:
    """Replace fused operators of onnxruntime by operators of ONNX, in place.

    Inner tensors have names of their own.  A node with a form that has no counterpart stays as it is.
    """
    made = _Expansion(model.graph)
    nodes = [each for node in model.graph.node for each in made.of(node)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


class _Expansion:
    """Expands nodes one by one, and adds the constants that they need to the graph."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._graph = graph
        self._makers = {name: node.op_type for node in graph.node for name in node.output if name}
        self._read = {name for node in graph.node for name in node.input} | {
            each.name for each in graph.output
        }
        self._known = {each.name for each in graph.initializer}

    def of(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
        """Yield the operators that a node stands for, or the node."""
        rule = _RULES.get(node.op_type)
        nodes = _Nodes(self, node)
        if rule is None or node.domain in ("", "ai.onnx") or not rule(nodes):
            yield node
            return
        yield from nodes.made

    def is_read(self, name: str) -> bool:
        """Return whether an operator reads a tensor, or the model's users do."""
        return name in self._read

    def is_product(self, name: str) -> bool:
        """Return whether a product makes a tensor."""
        return self._makers.get(name) in _PRODUCTS

    def keep(self, name: str, numbers: Array) -> str:
        """Add a constant once."""
        if name not in self._known:
            self._known.add(name)
            self._graph.initializer.append(numpy_helper.from_array(numbers, name))
        return name


class _Nodes:
    """The operators that one node stands for."""

    def __init__(self, expansion: _Expansion, node: onnx.NodeProto) -> None:
        self.expansion, self.node = expansion, node
        self.made: list[onnx.NodeProto] = []

    def input(self, number: int) -> str:
        """Return the name of an operand; empty without it."""
        return self.node.input[number] if number < len(self.node.input) else ""

    def output(self, number: int) -> str:
        """Return the name of a result that is read; empty for another."""
        name = self.node.output[number] if number < len(self.node.output) else ""
        return name if name and self.expansion.is_read(name) else ""

    def add(self, op: str, *inputs: str, output: str = "", **attributes: object) -> str:
        """Add an operator, and return its result."""
        name = output or f"{self.node.output[0]}:{op}{len(self.made)}"
        named = f"{self.node.name or self.node.output[0]}:{op}{len(self.made)}"
        self.made.append(helper.make_node(op, inputs, [name], name=named, **attributes))
        return name

    def number(self, number: float) -> str:
        """Return a constant of one number."""
        return self.expansion.keep(f"loomwork:{number!r}", np.array(number, np.float32))

    def whole(self, *numbers: int) -> str:
        """Return a constant of whole numbers."""
        return self.expansion.keep(f"loomwork:whole:{numbers}", np.array(numbers, np.int64))

    def norm(self, source: str, gain: str, bias: str) -> None:
        """Add the LayerNorm that makes the node's first result."""
        epsilon = attributes_of(self.node).get("epsilon", _EPSILON)
        inputs = (source, gain, bias) if bias else (source, gain)
        self.add("LayerNormalization", *inputs, output=self.node.output[0], axis=-1, epsilon=epsilon)


def _skip(nodes: _Nodes) -> bool:
    """SkipLayerNormalization: LayerNorm of a sum, of which a product has a bias."""
    if nodes.output(1) or nodes.output(2):
        return False
    first, second, bias = nodes.input(0), nodes.input(1), nodes.input(4)
    if bias and not nodes.expansion.is_product(first):
        first, second = second, first
    if bias:
        first = nodes.add("Add", first, bias)
    total = nodes.add("Add", first, second, output=nodes.output(3))
    nodes.norm(total, nodes.input(2), nodes.input(3))
    return True


def _embed(nodes: _Nodes) -> bool:
    """EmbedLayerNormalization: LayerNorm of rows by numbers, by positions and by types."""
    ids, types, words, positions, segments = (nodes.input(number) for number in range(5))
    if nodes.output(1) or not positions or bool(types) != bool(segments):
        return False
    total = nodes.add("Gather", words, ids, axis=0)
    if numbers := nodes.input(8):
        rows = nodes.add("Gather", positions, numbers, axis=0)
    else:
        count = nodes.add("Gather", nodes.add("Shape", ids), nodes.whole(1), axis=0)
        rows = nodes.add("Slice", positions, nodes.whole(0), count)
    total = nodes.add("Add", total, rows, output="" if segments else nodes.output(2))
    if segments:
        rows = nodes.add("Gather", segments, types, axis=0)
        total = nodes.add("Add", total, rows, output=nodes.output(2))
    nodes.norm(total, nodes.input(5), nodes.input(6))
    return True


def _bias_gelu(nodes: _Nodes) -> bool:
    """BiasGelu: ``x (1 + erf(x / sqrt(2))) / 2`` of a sum."""
    x = nodes.add("Add", nodes.input(0), nodes.input(1))
    inner = nodes.add("Erf", nodes.add("Mul", x, nodes.number(math.sqrt(0.5))))
    return _half(nodes, x, inner)


def _fast_gelu(nodes: _Nodes) -> bool:
    """FastGelu: ``x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2``, x with a bias if it has one."""
    x = nodes.input(0)
    if nodes.input(1):
        x = nodes.add("Add", x, nodes.input(1))
    cube = nodes.add("Mul", nodes.add("Pow", x, nodes.number(3.0)), nodes.number(0.044715))
    inside = nodes.add("Mul", nodes.add("Add", x, cube), nodes.number(math.sqrt(2 / math.pi)))
    return _half(nodes, x, nodes.add("Tanh", inside))


def _half(nodes: _Nodes, x: str, inner: str) -> bool:
    whole = nodes.add("Add", inner, nodes.number(1.0))
    nodes.add("Mul", x, nodes.add("Mul", whole, nodes.number(0.5)), output=nodes.node.output[0])
    return True


#: Each adds its operators and returns whether the node has that form.
_RULES: Mapping[str, Callable[[_Nodes], bool]] = {
    "SkipLayerNormalization": _skip,
    "EmbedLayerNormalization": _embed,
    "BiasGelu": _bias_gelu,
    "FastGelu": _fast_gelu,
}
