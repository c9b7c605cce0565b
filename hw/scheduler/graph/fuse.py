"""Elementwise operators merged into their neighbours: an activation function is no step of its own.

An elementwise operator with one operand (an activation function, a normalization with constants, a scale)
joins the producer of its operand.  If the operand has other readers, it joins the only reader of its own
result.  Both save a tensor and a step and change no value.  A sum of two activations stays an operator: it
has two operands that must lie in the scratchpad, and published figures count it.
"""

from dataclasses import replace

from hw.scheduler.graph.graph import Graph, TensorKind

#: Kinds that map element by element when they have one operand.
_POINTWISE = frozenset(
    (
        "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atanh", "batch_normalization", "cast",
        "ceil", "celu", "clip", "cos", "cosh", "dequantize_linear", "div", "dropout", "elu", "erf", "exp",
        "floor", "gelu", "hard_sigmoid", "hard_swish", "leaky_relu", "log", "mish", "mul", "neg", "pow",
        "prelu", "quantize_linear", "reciprocal", "relu", "round", "selu", "shrink", "sigmoid", "sign", "sin",
        "sinh", "softplus", "softsign", "sqrt", "sub", "swish", "tan", "tanh", "thresholded_relu", "trilu",
    )
)  # fmt: skip


def fuse_elementwise(graph: Graph) -> Graph:
    """Merge elementwise operators into their neighbours.

    Inputs, outputs and multiply-accumulates stay; the names of merged operators are in ``Operator.fused``.
    """
    merging = _Merging(graph)
    for operator in graph.operators:
        merging.merge(operator.name)
    operators = merging.operators
    used = {tensor for operator in operators.values() for tensor in (*operator.inputs, *operator.outputs)}
    tensors = tuple(tensor for tensor in graph.tensors if tensor.name in used)
    return replace(graph, tensors=tensors, operators=tuple(operators.values()))


class _Merging:
    """The remaining operators, by name, and the producer and readers of each tensor."""

    def __init__(self, graph: Graph) -> None:
        self.operators = {operator.name: operator for operator in graph.operators}
        self._tensor = graph.tensor
        self._maker = {name: operator.name for operator in graph.operators for name in operator.outputs}
        self._readers = {
            name: {operator.name for operator in readers} for name, readers in graph.consumers.items()
        }

    def merge(self, name: str) -> None:
        """Merge an operator into its neighbour, if it can be."""
        operator = self.operators[name]
        if operator.kind not in _POINTWISE or len(operator.inputs) != 1 or len(operator.outputs) != 1:
            return
        (source,), (result,) = operator.inputs, operator.outputs
        before, after = self._tensor[source], self._tensor[result]
        if before.shape != after.shape or (not before.shape and before.size_bytes != after.size_bytes):
            return
        maker = self.operators[self._maker[source]] if source in self._maker else None
        users, readers = self._readers[source], self._readers[result]
        if maker and not maker.members and len(users) == 1 and before.kind is TensorKind.ACTIVATION:
            into, old, new = maker, source, result
            self._maker[result] = maker.name
        elif after.kind is TensorKind.ACTIVATION and len(readers) == 1:
            (reader,) = readers
            into, old, new = self.operators[reader], result, source
            if source in into.inputs or into.members:
                return
            self._readers[source] = (users - {name}) | {reader}
        else:
            return
        self.operators[into.name] = replace(
            into,
            inputs=tuple(new if tensor == old else tensor for tensor in into.inputs),
            outputs=tuple(new if tensor == old else tensor for tensor in into.outputs),
            accesses={new if tensor == old else tensor: access for tensor, access in into.accesses.items()},
            macs=into.macs + operator.macs,
            least_cycles=into.least_cycles + operator.least_cycles,
            weight_bytes=into.weight_bytes + operator.weight_bytes,
            fused=(*into.fused, operator.name, *operator.fused),
        )
        del self.operators[name]
