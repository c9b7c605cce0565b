"""Accesses and multiply-accumulates of operators with several products: attention, Einsum."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from hw.errors import InputError
from hw.scheduler.graph.graph import Access
from hw.scheduler.graph.importers.onnx_operators import Accesses, Node, row_axis


class Product(NamedTuple):
    """Accesses and multiply-accumulates of one of these operators."""

    accesses: Callable[[Node], Accesses]
    macs: Callable[[Node], int]


def _attention(mask: int) -> Callable[[Node], Accesses]:
    """Attention: the query and the mask at this position row by row, keys and values whole.

    If keys and values of earlier runs are results too, those have other rows.
    """

    def accesses(node: Node) -> Accesses:
        axis = row_axis(node.output)
        if axis is None or node.outputs > 1 or node.input[axis] != node.output[axis]:
            return {}
        found: Accesses = {0: Access(axis=axis, output_axis=axis)}
        shape = node.shapes[mask] if len(node.shapes) > mask else ()
        if len(shape) > 1 and shape[-2] == node.output[axis]:
            found[mask] = Access(axis=len(shape) - 2, output_axis=axis)
        return found

    return accesses


def _attention_macs(past: int) -> Callable[[Node], int]:
    """Each query with each key, then with each value, of all heads; masked pairs count.

    ``past``: position of the keys of earlier runs.
    """

    def macs(node: Node) -> int:
        before = node.shapes[past] if len(node.shapes) > past else ()
        # [B, heads, L, D], or [B, L, heads * D]; keys of earlier runs always have four dimensions.
        keys = node.shapes[1][-2] + (before[2] if before else 0)
        return keys * (math.prod(node.input) + math.prod(node.output))

    return macs


def _grouped_macs(node: Node) -> int:
    """As `_attention_macs`; the query operand may also hold keys and values, of equal length."""
    past = node.shapes[3] if len(node.shapes) > 3 else ()
    return (node.input[1] + (past[2] if past else 0)) * 2 * math.prod(node.output)


def _turned(node: Node) -> Accesses:
    """A product with optional transposes: row by row of the left operand unless it is transposed."""
    rank = len(node.input)
    if rank < 2 or node.attributes.get("transA"):
        return {}
    return {0: Access(axis=rank - 2, output_axis=len(node.output) - 2)}


def _projected_macs(node: Node) -> int:
    """onnxruntime's attention with its projections: input, weights, bias, mask, past."""
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
    # Unused capital letters for the dimensions of an ellipsis, counted from its end.
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
    """Row by row of operands with the label of the result's rows, if it stands once and is not broadcast."""
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
    "Attention": Product(_attention(3), _attention_macs(4)),
    "Einsum": Product(_einsum, _einsum_macs),
    "RotaryEmbedding": Product(_rotary, lambda node: 0),
    "com.microsoft.Attention": Product(lambda node: {}, _projected_macs),
    "com.microsoft.FusedMatMul": Product(
        _turned,
        lambda node: math.prod(node.output) * node.input[-2 if node.attributes.get("transA") else -1],
    ),
    "com.microsoft.GroupQueryAttention": Product(lambda node: {}, _grouped_macs),
    "com.microsoft.MultiHeadAttention": Product(_attention(5), _attention_macs(6)),
    "com.microsoft.RotaryEmbedding": Product(_rotary, lambda node: 0),
    "com.microsoft.MatMulNBits": Product(
        _packed, lambda node: math.prod(node.input) * int(node.attributes["N"])
    ),
}
