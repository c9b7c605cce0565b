"""Rules of operators on each element: biases, sums, functions, and LayerNorm written out."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from hw.network.graph.plain import Call
from hw.network.graph.refs import Array, Constant
from hw.network.graph.transformer.blocks import Sum, real
from hw.network.graph.transformer.context import Context, scalar, vector
from hw.network.graph.transformer.dynamic import scaled
from hw.network.graph.transformer.heads import masked, where_masked
from hw.network.graph.transformer.refs import (
    Flags,
    Heads,
    Normal,
    Probabilities,
    Product,
    Ref,
    Scores,
    Shifted,
    Stage,
    Step,
    Tokens,
    Total,
)
from hw.network.graph.unary import FUNCTIONS
from hw.network.graph.views import UnsupportedError

_RULES: dict[str, Callable[[Any, Any], Array]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": operator.truediv,
    "Pow": operator.pow,
}
#: What a product of two steps of a LayerNorm is, by their stages, and a quotient.
_PRODUCTS = {(Stage.CENTERED, Stage.RECIPROCAL), (Stage.RECIPROCAL, Stage.CENTERED)}
_QUOTIENT = (Stage.CENTERED, Stage.DEVIATION)


def binary(context: Context, node: onnx.NodeProto) -> Ref:
    """Return the result of an operator on two operands."""
    first, second = node.input
    if node.op_type == "Mul" and (made := scaled(context, first, second)) is not None:
        return made
    if context.is_constant(second):
        found = _with_constant(context, node.op_type, first, second, swapped=False)
    elif context.is_constant(first):
        found = _with_constant(context, node.op_type, second, first, swapped=True)
    else:
        found = _of_two(context, node, first, second)
    if found is None:
        raise UnsupportedError(f"of operands {first} and {second}")
    return found


def _with_constant(context: Context, op: str, name: str, other: str, *, swapped: bool) -> Ref | None:
    ref, constant = context.ref(name), context.constant(other)
    number = scalar(constant)
    if isinstance(ref, Scores) and op in ("Add", "Sub") and number is None:
        return masked(context, ref, constant if op == "Add" else -constant)
    if op == "Add" or (op == "Sub" and not swapped):
        added = _added(context, name, constant if op == "Add" else -constant, other, op)
        if added is not None:
            return added
    if op == "Mul" and isinstance(ref, Normal) and ref.bias is None:
        gain = vector(constant, context.channels[ref.value])
        if gain is not None:
            return replace(ref, gain=gain if ref.gain is None else ref.gain * gain)
    if number is None:
        return None
    if isinstance(ref, (Heads, Scores, Total)) and (op == "Mul" or (op == "Div" and not swapped)):
        return replace(ref, factor=ref.factor * (number if op == "Mul" else 1 / number))
    if isinstance(ref, Scores) and op in ("Add", "Sub"):
        return ref  # softmax does not see it
    if isinstance(ref, Step):
        square = op == "Pow" and number == 2 and ref.stage is Stage.CENTERED and not swapped
        return replace(ref, stage=Stage.SQUARED) if square else None
    return _function(context, name, op, number, swapped=swapped)


def _added(context: Context, name: str, constant: Array, other: str, op: str) -> Ref | None:
    """Return a tensor with a constant added, where that is a bias, an epsilon or rows."""
    ref, number = context.ref(name), scalar(constant)
    if isinstance(ref, Step):
        fits = ref.stage is Stage.VARIANCE and number is not None
        return replace(ref, epsilon=ref.epsilon + (number or 0.0)) if fits else None
    if isinstance(ref, Product):
        bias = vector(constant, real(ref.weights).shape[1])
        if bias is not None:
            return replace(ref, bias=bias if ref.bias is None else ref.bias + bias)
    if isinstance(ref, Normal) and (bias := vector(constant, context.channels[ref.value])) is not None:
        return replace(ref, bias=bias if ref.bias is None else ref.bias + bias)
    if number is not None or isinstance(ref, (Heads, Scores, Total)):
        return None
    if isinstance(ref, Shifted):
        return Shifted(value=ref.value, rows=real(ref.rows) + _rows(context, ref.value, constant))
    value = context.value(name)
    stored = context.parameters(other) if op == "Add" else None
    if isinstance(stored, Constant):
        rows = stored.stored.reshape(-1, stored.stored.shape[-1])
        return Shifted(value=value, rows=replace(stored, stored=rows, axis=1))
    return Shifted(value=value, rows=_rows(context, value, constant))


def _rows(context: Context, value: str, constant: Array) -> Array:
    """Return a constant as a row for each token."""
    shape = (context.tokens, context.channels[value])
    if constant.size != np.prod(constant.shape[-2:]):
        raise UnsupportedError(f"a constant of shape {constant.shape} beside tokens of {shape[1]} channels")
    rows = constant.astype(np.float64).reshape(constant.shape[-2:])
    try:
        return np.broadcast_to(rows, shape).copy()
    except ValueError as error:
        raise UnsupportedError(f"a constant of shape {constant.shape} beside tokens: {shape}") from error


def _function(context: Context, name: str, op: str, number: float, *, swapped: bool) -> Ref:
    """Return a function of a tensor: its elements and a number."""
    ref = _tokens(context, name)
    if (op in ("Mul", "Div") and number == 1 and not (swapped and op == "Div")) or (
        op == "Add" and not number
    ):
        return ref
    rule, before = _RULES[op], ref.function

    def function(elements: Array) -> Array:
        inner = elements if before is None else before(elements)
        return rule(number, inner) if swapped else rule(inner, number)

    return Tokens(value=ref.value, function=function, factor=0.0)


def _tokens(context: Context, name: str) -> Tokens:
    """Return a tensor as tokens, which any other form becomes."""
    ref = context.ref(name)
    return ref if isinstance(ref, Tokens) else Tokens(value=context.value(name))


def _of_two(context: Context, node: onnx.NodeProto, first: str, second: str) -> Ref | None:
    """Return the result of an operator on two tensors that are no constants."""
    one, other, op = context.ref(first), context.ref(second), node.op_type
    if isinstance(one, Step) or isinstance(other, Step):
        return _steps(context, op, first, second)
    if any(isinstance(each, (Heads, Scores, Total)) for each in (one, other)):
        return None
    left, right = _tokens(context, first), _tokens(context, second)
    if left.value == right.value and not (left.function is right.function is None and op == "Add"):
        rule, before, after = _RULES[op], left.function, right.function

        def function(elements: Array) -> Array:
            return rule(
                elements if before is None else before(elements),
                elements if after is None else after(elements),
            )

        return Tokens(value=left.value, function=function, factor=0.0)
    if op != "Add":
        return None
    inputs = (context.value(first), context.value(second))
    name = node.output[0]
    if context.channels[inputs[0]] != context.channels[inputs[1]]:
        return None
    block = Sum(name=node.name or name, op=op, inputs=inputs, output=name)
    context.add(block, context.channels[inputs[0]])
    return Tokens(value=name)


def _steps(context: Context, op: str, first: str, second: str) -> Ref | None:
    """Return the next step of a LayerNorm."""
    one, other = context.ref(first), context.ref(second)
    if op == "Sub" and isinstance(other, Step) and other.stage is Stage.MEAN:
        return Step(value=other.value, stage=Stage.CENTERED) if context.value(first) == other.value else None
    if not (isinstance(one, Step) and isinstance(other, Step)) or one.value != other.value:
        return None
    stages = one.stage, other.stage
    if op == "Mul" and stages == (Stage.CENTERED, Stage.CENTERED):
        return replace(one, stage=Stage.SQUARED)
    if (op == "Div" and stages == _QUOTIENT) or (op == "Mul" and stages in _PRODUCTS):
        return Normal(value=one.value, epsilon=max(one.epsilon, other.epsilon))
    return None


def unary(context: Context, node: onnx.NodeProto) -> Ref:
    """Return a function of each element."""
    op, name = node.op_type, node.input[0]
    ref = context.ref(name)
    if isinstance(ref, Step):
        after = {
            ("Sqrt", Stage.VARIANCE): Stage.DEVIATION,
            ("Reciprocal", Stage.DEVIATION): Stage.RECIPROCAL,
        }.get((op, ref.stage))
        if after is None:
            raise UnsupportedError(f"of {ref.stage.value}")
        return replace(ref, stage=after)
    call = Call(
        node=node,
        operands=(),
        values={},
        constants=context.learned.constants,
        output=(),
        opset=context.learned.opset,
        constant=lambda constant, shape: "",
    )
    made = _MORE.get(op) or FUNCTIONS[op](call)
    tokens = _tokens(context, name)
    before = tokens.function
    return Tokens(
        value=tokens.value,
        function=made if before is None else lambda elements: made(before(elements)),
        factor=0.0,
    )


_MORE: dict[str, Callable[[Array], Array]] = {
    "Sqrt": np.sqrt,
    "Reciprocal": np.reciprocal,
    "Identity": lambda elements: elements,
}
#: Operators on each element of one tensor.
UNARY = {*FUNCTIONS, "Sqrt", "Reciprocal"}


def is_nan(context: Context, node: onnx.NodeProto) -> Ref:
    """Return the flags of a guard against NaN."""
    if not isinstance(context.ref(node.input[0]), Probabilities):
        raise UnsupportedError("of another tensor than probabilities of attention")
    return Flags()


def where(context: Context, node: onnx.NodeProto) -> Ref:
    """Return the operand that a guard or a mask passes on."""
    condition, yes, no = node.input
    if isinstance(context.ref(condition), Flags):
        kept = context.ref(no)
        if kept is not None:
            return kept
    if context.is_constant(condition):
        chosen = scalar(context.constant(condition))
        if chosen is not None and (kept := context.ref(yes if chosen else no)) is not None:
            return kept
        return where_masked(context, node)
    raise UnsupportedError("its condition depends on tokens")


def mean(context: Context, node: onnx.NodeProto) -> Ref:
    """Return a mean or a sum over the channels or the tokens."""
    name, op = node.input[0], node.op_type
    axes = context.attributes(node).get("axes")
    if axes is None and len(node.input) > 1 and node.input[1]:
        axes = context.constant(node.input[1]).reshape(-1)
    rank = len(context.shape(name))
    over = [] if axes is None else [int(axis) % rank for axis in axes]
    ref = context.ref(name)
    if over == [rank - 1] and op == "ReduceMean":
        if isinstance(ref, Step) and ref.stage is Stage.SQUARED:
            return replace(ref, stage=Stage.VARIANCE)
        return Step(value=context.value(name), stage=Stage.MEAN)
    if over == [rank - 2] and rank in (2, 3):
        return Total(value=context.value(name), factor=1 / context.tokens if op == "ReduceMean" else 1.0)
    raise UnsupportedError("over other dimensions than the channels, or than the tokens")
