"""Operators that move what a plainer one moves: the quantized ones, and what runtimes make of several.

A stand-in names the plain operator and which operands are its operands; the others are scales, zero points
and the like. Shapes, accesses and multiply-accumulates are then those of the plain operator. What has no
plain operator has a shape function of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.defs import get_schema

Shape = tuple[int, ...]
Attributes = Mapping[str, Any]

#: The domain of onnxruntime's own operators; in names of operators it stands before the dot.
RUNTIME = "com.microsoft"


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """A plain operator in the place of another.

    Parameters
    ----------
    op : str
        Name in ONNX's own domain.
    operands : tuple of int or slice
        Positions of its operands among those of the other.
    like : int or None
        Position, among the operands of the other, of one with the result's element type; None for floats.
    reads_others : bool
        Whether the other operands are read, too.
    """

    op: str
    operands: tuple[int, ...] | slice
    like: int | None = 0
    reads_others: bool = True

    def positions(self, count: int) -> tuple[int, ...]:
        """Give the positions of the plain operator's operands among so many of the other."""
        if isinstance(self.operands, slice):
            return tuple(range(count)[self.operands])
        return tuple(position for position in self.operands if position < count)


#: By the operator's name.
STAND_INS: Mapping[str, StandIn] = {
    "QLinearConv": StandIn(op="Conv", operands=(0, 3, 8)),
    "QLinearMatMul": StandIn(op="MatMul", operands=(0, 3)),
    "ConvInteger": StandIn(op="Conv", operands=(0, 1)),
    "MatMulInteger": StandIn(op="MatMul", operands=(0, 1)),
    "CastLike": StandIn(op="Cast", operands=(0,), reads_others=False),
    **{
        f"{RUNTIME}.{name}": stand_in
        for name, stand_in in {
            "QLinearAdd": StandIn(op="Add", operands=(0, 3)),
            "QLinearMul": StandIn(op="Mul", operands=(0, 3)),
            "QLinearAveragePool": StandIn(op="AveragePool", operands=(0,)),
            "QLinearGlobalAveragePool": StandIn(op="GlobalAveragePool", operands=(0,)),
            "QLinearLeakyRelu": StandIn(op="LeakyRelu", operands=(0,)),
            "QLinearSigmoid": StandIn(op="Sigmoid", operands=(0,)),
            "QLinearSoftmax": StandIn(op="Softmax", operands=(0,)),
            "QLinearConcat": StandIn(op="Concat", operands=slice(2, None, 3), like=2),
            "QGemm": StandIn(op="Gemm", operands=(0, 3, 6)),
            "MatMulIntegerToFloat": StandIn(op="MatMul", operands=(0, 1), like=None),
            "DynamicQuantizeMatMul": StandIn(op="MatMul", operands=(0, 1), like=None),
            "FusedConv": StandIn(op="Conv", operands=(0, 1, 2)),
            "Gelu": StandIn(op="Gelu", operands=(0,)),
            "FastGelu": StandIn(op="Gelu", operands=(0,)),
            "QuickGelu": StandIn(op="Gelu", operands=(0,)),
            "BiasGelu": StandIn(op="Add", operands=(0, 1)),
            "QuantizeLinear": StandIn(op="QuantizeLinear", operands=(0, 1), like=2),
            "DequantizeLinear": StandIn(op="DequantizeLinear", operands=(0, 1), like=None),
        }.items()
    },
}


def full_name(node: onnx.NodeProto) -> str:
    """Give an operator's name, with its domain where that is not ONNX's own."""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


def plain_node(node: onnx.NodeProto, opset: int) -> onnx.NodeProto:
    """Give the plain operator that stands in for a node, with its operands and attributes, for the inference
    of shapes.
    """
    stand_in = STAND_INS[full_name(node)]
    known = get_schema(stand_in.op, opset).attributes
    operands = [node.input[position] for position in stand_in.positions(len(node.input))]
    plain = helper.make_node(stand_in.op, operands, node.output[:1], name=node.name)
    plain.attribute.extend(each for each in node.attribute if each.name in known)
    return plain


def _whole(attributes: Attributes, name: str) -> int:
    """Give an attribute, which in a damaged model has any type, or none."""
    value = attributes[name]
    if not isinstance(value, int):
        raise ValueError(f"{name} is {value!r}, no whole number")
    return value


def _like_first(shapes: Sequence[Shape], attributes: Attributes) -> list[Shape]:
    return [shapes[0]]


def _skip_normalization(shapes: Sequence[Shape], attributes: Attributes) -> list[Shape]:
    row = (*shapes[0][:-1], 1)
    return [shapes[0], row, row, shapes[0]]


def _attention(shapes: Sequence[Shape], attributes: Attributes) -> list[Shape]:
    """Attention with its projections: input [B, S, C], weights [C, columns], mask, past [2, B, N, P, D]."""
    (batch, tokens, _), columns, heads = shapes[0], shapes[1][1], _whole(attributes, "num_heads")
    widths = attributes.get("qkv_hidden_sizes") or [columns // 3] * 3
    if not isinstance(widths, list) or not all(isinstance(width, int) for width in widths):
        raise ValueError(f"qkv_hidden_sizes are {widths!r}, not whole numbers")
    past = shapes[4][3] if len(shapes) > 4 and shapes[4] else 0
    present = (2, batch, heads, past + tokens, widths[1] // heads)
    return [(batch, tokens, widths[2]), present]


def _heads(shapes: Sequence[Shape], attributes: Attributes) -> list[Shape]:
    """Attention of several heads: query [B, S, C], key and value the same or [B, heads, L, D]; behind bias,
    padding mask and attention bias come keys and values of earlier runs.
    """
    (batch, tokens, _), key, value, heads = *shapes[:3], _whole(attributes, "num_heads")
    if not key or not value:
        raise ValueError("queries, keys and values packed into one operand")
    past = shapes[6][2] if len(shapes) > 6 and shapes[6] else 0
    length = past + (key[1] if len(key) == 3 else key[2])
    widths = [each[2] // heads if len(each) == 3 else each[3] for each in (key, value)]
    presents = [(batch, heads, length, width) for width in widths]
    return [(batch, tokens, heads * widths[1]), *presents]


def _grouped_heads(shapes: Sequence[Shape], attributes: Attributes) -> list[Shape]:
    """Attention whose heads share keys: query [B, S, C], with keys and values behind it where these are left
    out, and keys and values of earlier runs [B, key heads, P, D].
    """
    (batch, tokens, columns), heads = shapes[0], _whole(attributes, "num_heads")
    key_heads = _whole(attributes, "kv_num_heads")
    width = columns // (heads if shapes[1] else heads + 2 * key_heads)
    past = shapes[3][2] if len(shapes) > 3 and shapes[3] else 0
    present = (batch, key_heads, past + tokens, width)
    return [(batch, tokens, heads * width), present, present]


def _turned_products(shapes: Sequence[Shape], attributes: Attributes) -> list[Shape]:
    """A product whose operands may be transposed."""
    left, right = (
        (*shape[:-2], shape[-1], shape[-2]) if attributes.get(name) else shape
        for shape, name in zip(shapes, ("transA", "transB"), strict=False)
    )
    if left[-1] != right[-2] or attributes.get("transBatchA") or attributes.get("transBatchB"):
        raise ValueError("operands that do not fit, or whose batches are transposed")
    return [(*np.broadcast_shapes(left[:-2], right[:-2]), left[-2], right[-1])]


def _packed_products(shapes: Sequence[Shape], attributes: Attributes) -> list[Shape]:
    """A product whose right operand has few bits an element, several in a byte."""
    return [(*shapes[0][:-1], _whole(attributes, "N"))]


#: Shapes of the results of operators without a plain one; their element type is that of the first operand.
SHAPES: Mapping[str, Callable[[Sequence[Shape], Attributes], list[Shape]]] = {
    "SimplifiedLayerNormalization": _like_first,  # in ONNX's own domain, which does not know it
    f"{RUNTIME}.Attention": _attention,
    f"{RUNTIME}.FusedMatMul": _turned_products,
    f"{RUNTIME}.GroupQueryAttention": _grouped_heads,
    f"{RUNTIME}.MultiHeadAttention": _heads,
    f"{RUNTIME}.MatMulNBits": _packed_products,
    f"{RUNTIME}.RotaryEmbedding": _like_first,
    f"{RUNTIME}.SkipLayerNormalization": _skip_normalization,
    f"{RUNTIME}.SkipSimplifiedLayerNormalization": _skip_normalization,
}

#: What to do about operators that are not supported; others have the advice of `advice`.
_ADVICE = {
    **dict.fromkeys(
        ("NonZero", "NonMaxSuppression", "Unique", "Compress"),
        "its result's shape depends on data: end the model before it",
    ),
    **dict.fromkeys(
        ("If", "Loop", "Scan"), "unroll it, or fold it with constant inputs, for example by onnxsim"
    ),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), "export the network unrolled, a cell a step"),
}


def advice(name: str) -> str:
    """Say what to do about an operator that is not supported."""
    if name.startswith(f"{RUNTIME}."):
        return "export without onnxruntime's fusions (optimization level basic)"
    if "." in name:
        return "export it as ONNX's own operators"
    return _ADVICE.get(name, "describe it in a graph's JSON")
