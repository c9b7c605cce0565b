"""Elementwise operators merged into their neighbours: an activation function is no step of its own.

An operator with one operand that it maps element by element (an activation function, a normalization with
constants, a scale) is applied where its operand is made, or, where that has other users too, where its own
result is used.  Both save a tensor and a step and change no value.  A sum of two activations stays an
operator: it has two operands that must lie in the scratchpad, and published figures count it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hw.scheduler.graph.graph import Access, Graph, Operator, TensorKind

#: Kinds that map element by element when they have one operand.
_POINTWISE = frozenset(
    (
        "abs", "add", "batch_normalization", "cast", "ceil", "clip", "cos", "dequantize_linear", "div",
        "dropout", "elu", "erf", "exp", "floor", "gelu", "hard_sigmoid", "hard_swish", "leaky_relu", "log",
        "mish", "mul", "neg", "p_relu", "pow", "quantize_linear", "reciprocal", "relu", "round", "selu",
        "sigmoid", "sign", "sin", "softplus", "softsign", "sqrt", "sub", "swish", "tanh", "thresholded_relu",
    )
)  # fmt: skip


def fuse_elementwise(graph: Graph) -> Graph:
    """Merge what can be merged.

    Inputs, outputs and multiply-accumulates stay; the names of merged operators are in ``Operator.fused``.
    """
    operators = {operator.name: operator for operator in graph.operators}
    for name in list(operators):
        _merge(name, operators, graph)
    used = {tensor for operator in operators.values() for tensor in (*operator.inputs, *operator.outputs)}
    tensors = tuple(tensor for tensor in graph.tensors if tensor.name in used)
    return Graph(name=graph.name, tensors=tensors, operators=tuple(operators.values()), made_by=graph.made_by)


def _merge(name: str, operators: dict[str, Operator], graph: Graph) -> None:
    operator = operators[name]
    if operator.kind not in _POINTWISE or len(operator.inputs) != 1 or len(operator.outputs) != 1:
        return
    (source,), (result,) = operator.inputs, operator.outputs
    before, after = graph.tensor[source], graph.tensor[result]
    if before.shape != after.shape or (not before.shape and before.size_bytes != after.size_bytes):
        return
    users = [other for other in operators.values() if source in other.inputs]
    maker = next((other for other in operators.values() if source in other.outputs), None)
    single = len(users) == 1 and before.kind is TensorKind.ACTIVATION
    if maker is not None and single and not maker.members:
        outputs = tuple(result if tensor == source else tensor for tensor in maker.outputs)
        operators[maker.name] = replace(_joined(maker, operator), outputs=outputs)
        del operators[name]
        return
    readers = [other for other in operators.values() if result in other.inputs]
    if after.kind is not TensorKind.ACTIVATION or len(readers) != 1:
        return
    reader = readers[0]
    if source in reader.inputs or reader.members:
        return
    inputs = tuple(source if tensor == result else tensor for tensor in reader.inputs)
    accesses: Mapping[str, Access] = {
        source if tensor == result else tensor: access for tensor, access in reader.accesses.items()
    }
    operators[reader.name] = replace(_joined(reader, operator), inputs=inputs, accesses=accesses)
    del operators[name]


def _joined(into: Operator, operator: Operator) -> Operator:
    """Give ``into`` with the other's work added."""
    return replace(
        into,
        macs=into.macs + operator.macs,
        weight_bytes=into.weight_bytes + operator.weight_bytes,
        fused=(*into.fused, operator.name, *operator.fused),
    )
