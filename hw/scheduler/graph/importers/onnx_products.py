"""Accesses and multiply-accumulates of operators that are several products in one: attention, Einsum."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from hw.errors import InputError
from hw.scheduler.graph.graph import Access
from hw.scheduler.graph.importers.onnx_operators import Accesses, Node, row_axis


class Product(NamedTuple):
    """What one of these operators needs by rows, and what it costs."""

    accesses: Callable[[Node], Accesses]
    macs: Callable[[Node], int]


def _attention(node: Node) -> Accesses:
    """Attention of ONNX: query and mask row by row, keys and values whole.

    Where keys and values of earlier runs are results, too, these come in other rows.
    """
    axis = row_axis(node.output)
    if axis is None or node.outputs > 1:
        return {}
    accesses: Accesses = {0: Access(axis=axis, output_axis=axis)}
    if len(node.shapes) > 3 and len(mask := node.shapes[3]) > 1 and mask[-2] == node.output[axis]:
        accesses[3] = Access(axis=len(mask) - 2, output_axis=axis)
    return accesses


def _attention_macs(node: Node) -> int:
    """Each query with each key, then with each value, of all heads; masked pairs count."""
    past = node.shapes[4] if len(node.shapes) > 4 else ()
    # [B, heads, L, D], or [B, L, heads * D]; what is kept of earlier runs always has four dimensions.
    keys = node.shapes[1][-2] + (past[2] if past else 0)
    return keys * (math.prod(node.input) + math.prod(node.output))


def _projected_macs(node: Node) -> int:
    """Of onnxruntime's attention with its projections: input, weights, and mask and past behind a bias."""
    past = node.shapes[4] if len(node.shapes) > 4 else ()
    keys = node.input[1] + (past[3] if past else 0)
    widths = node.attributes.get("qkv_hidden_sizes") or [node.output[-1]] * 3
    tokens = math.prod(node.input[:2])
    return math.prod(node.input) * node.shapes[1][1] + tokens * keys * (int(widths[0]) + int(widths[2]))


def _rotary(node: Node) -> Accesses:
    """Token by token; ``input`` is [B, heads, S, D] or [B, S, heads * D]."""
    axis = row_axis(node.input)
    return {} if axis is None else {0: Access(axis=axis, output_axis=axis)}


class _Labels(NamedTuple):
    """The labels of the dimensions of Einsum's operands and result, and the extent of each."""

    operands: list[str]
    result: str
    extents: Mapping[str, int]


def _labels(node: Node) -> _Labels:
    equation = node.attributes["equation"].decode().replace(" ", "")
    left, arrow, result = equation.partition("->")
    operands = left.split(",")
    if len(operands) > 2:
        legal = "of two operands at the most: write the products one after the other"
        raise InputError("equation of Einsum", equation, legal)
    named = Counter(left.replace(",", "").replace(".", ""))
    if not arrow:
        once = "".join(sorted(label for label, count in named.items() if count == 1))
        result = ("..." if "..." in left else "") + once
    # Capital letters of their own for the dimensions of an ellipsis, counted from its end.
    free = [label for label in "ZYXWVUTSRQPONMLKJIHGFEDCBA" if label not in named]
    ranks = [
        len(shape) - len(labels.replace(".", "")) for labels, shape in zip(operands, node.shapes, strict=True)
    ]
    spelt = ["".join(reversed(free[:rank])) for rank in ranks]
    operands = [labels.replace("...", more) for labels, more in zip(operands, spelt, strict=True)]
    result = result.replace("...", max(spelt, key=len))
    extents: dict[str, int] = {}
    for labels, shape in zip(operands, node.shapes, strict=True):
        for label, extent in zip(labels, shape, strict=True):
            extents[label] = max(extent, extents.get(label, 1))
    return _Labels(operands, result, extents)


def _einsum(node: Node) -> Accesses:
    """Row by row of the operands that have the label of the result's rows, once and not broadcast."""
    labels, axis = _labels(node), row_axis(node.output)
    if axis is None:
        return {}
    row = labels.result[axis]
    return {
        position: Access(axis=names.index(row), output_axis=axis)
        for position, names in enumerate(labels.operands)
        if names.count(row) == 1 and node.shapes[position][names.index(row)] == node.output[axis]
    }


def _einsum_macs(node: Node) -> int:
    labels = _labels(node)
    return math.prod(labels.extents.values()) if len(labels.operands) == 2 else 0


def _packed(node: Node) -> Accesses:
    axis = len(node.input) - 2
    return {0: Access(axis=axis, output_axis=axis)} if axis >= 0 else {}


#: By the operator's name.
PRODUCTS: Mapping[str, Product] = {
    "Attention": Product(_attention, _attention_macs),
    "Einsum": Product(_einsum, _einsum_macs),
    "RotaryEmbedding": Product(_rotary, lambda node: 0),
    "com.microsoft.Attention": Product(lambda node: {}, _projected_macs),
    "com.microsoft.RotaryEmbedding": Product(_rotary, lambda node: 0),
    "com.microsoft.MatMulNBits": Product(
        _packed, lambda node: math.prod(node.input) * int(node.attributes["N"])
    ),
}
