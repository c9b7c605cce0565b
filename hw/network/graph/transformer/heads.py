"""Rules of attention: views of heads, products of heads, masks, softmax."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import onnx

from hw.network.graph.refs import Array
from hw.network.graph.transformer.blocks import real
from hw.network.graph.transformer.context import Context
from hw.network.graph.transformer.refs import (
    Heads,
    Mixed,
    Probabilities,
    Product,
    Ref,
    Scores,
)
from hw.network.graph.views import UnsupportedError, permutation

#: What is added to the score of a hidden key: at most this.
_HIDDEN = -1e4


def view(context: Context, node: onnx.NodeProto) -> Ref | None:
    """Return the result of a view; None where it is a view of the whole tensor."""
    name, output = node.input[0], node.output[0]
    ref = context.ref(name)
    before, after = context.shape(name), context.shape(output)
    if isinstance(ref, (Heads, Mixed)):
        sizes = _sizes(context, ref)
        ordered = tuple(sizes[letter] for letter in ref.order)
        if node.op_type == "Transpose":
            return replace(ref, order=_permuted(ref.order, permutation(node, len(before)), before))
        if _without_batch(after, 3) == ordered:
            return ref
        if ref.order == "THD" and _without_batch(after, 2) == (sizes["T"], sizes["H"] * sizes["D"]):
            return ref
        raise UnsupportedError(f"from heads of shape {before} to {after}")
    if node.op_type == "Transpose":
        raise UnsupportedError("of a tensor that is not in heads")
    if _without_batch(after, 2) == _without_batch(before, 2):
        return None
    tokens, channels = (*_without_batch(before, 2), 0, 0)[:2]
    heads = _without_batch(after, 3)
    if len(heads) == 3 and heads[0] == tokens and heads[1] * heads[2] == channels:
        return Heads(value=context.value(name), order="THD", heads=heads[1])
    raise UnsupportedError(f"from shape {before} to {after}: only to heads and back")


def _without_batch(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Return a shape without dimensions of 1 in front, down to a rank."""
    while len(shape) > rank and shape[0] == 1:
        shape = shape[1:]
    return shape


def _sizes(context: Context, ref: Heads | Mixed) -> dict[str, int]:
    value, heads = (ref.value, ref.heads) if isinstance(ref, Heads) else (ref.values, ref.scores.heads)
    return {"T": context.tokens, "H": heads, "D": context.channels[value] // heads}


def _permuted(order: str, axes: tuple[int, ...], before: tuple[int, ...]) -> str:
    """Return the order after a Transpose; a dimension of 1 in front stays."""
    extra = len(before) - len(order)
    if tuple(axes[:extra]) != tuple(range(extra)):
        raise UnsupportedError(f"perm {axes} of a tensor in heads")
    return "".join(order[axis - extra] for axis in axes[extra:])


def matmul(context: Context, node: onnx.NodeProto) -> Ref:
    """Return a product with weights, or one of heads."""
    first, second = node.input
    left, right = context.ref(first), context.ref(second)
    if context.is_constant(second) and not isinstance(left, (Heads, Scores, Probabilities)):
        weights = context.parameters(second)
        shape = context.shape(second)
        if len(shape) != 2:
            raise UnsupportedError(f"weights of shape {shape}: 2 dimensions")
        return Product(value=context.value(first), weights=weights)
    return _of_heads(left, right)


def fused(context: Context, node: onnx.NodeProto) -> Ref:
    """Return onnxruntime's product with a factor, of which keys may be transposed."""
    found = context.attributes(node)
    left, right = (context.ref(name) for name in node.input)
    factor = float(found.get("alpha", 1.0))
    if found.get("transA", 0) or found.get("transBatchA", 0) or found.get("transBatchB", 0):
        raise UnsupportedError("transA, transBatchA or transBatchB")
    if isinstance(left, Heads) and isinstance(right, Heads):
        if found.get("transB", 0):
            right = replace(right, order=right.order[0] + right.order[:0:-1])
        return _of_heads(replace(left, factor=left.factor * factor), right)
    if found.get("transB", 0):
        raise UnsupportedError("transB of other operands than queries and keys")
    made = matmul(context, node)
    if factor == 1:
        return made
    if not isinstance(made, Product):
        raise UnsupportedError("alpha of values and probabilities")
    return replace(made, weights=real(made.weights) * factor)


def _of_heads(left: Ref | None, right: Ref | None) -> Ref:
    """Return the scores of queries and keys, or values weighed by probabilities."""
    made: Ref | None = None
    if isinstance(left, Heads) and isinstance(right, Heads) and left.heads == right.heads:
        factor = left.factor * right.factor
        scores = Scores(queries=left.value, keys=right.value, heads=left.heads, factor=factor)
        made = scores if (left.order, right.order) == ("HTD", "HDT") else None
    elif isinstance(left, Probabilities) and isinstance(right, Heads) and left.scores.heads == right.heads:
        fits = right.order == "HTD" and right.factor == 1
        made = Mixed(scores=left.scores, values=right.value, order="HTD") if fits else None
    if made is None:
        legal = "no product with constant weights, of queries and keys, or of their softmax and values"
        raise UnsupportedError(legal)
    return made


def gemm(context: Context, node: onnx.NodeProto) -> Ref:
    """Return a product with weights and a bias."""
    found = context.attributes(node)
    if found.get("alpha", 1.0) != 1 or found.get("beta", 1.0) != 1 or found.get("transA", 0):
        raise UnsupportedError("alpha, beta or transA")
    weights = context.parameters(node.input[1])
    if found.get("transB", 0):
        weights = context.constant(node.input[1]).astype(np.float64).T
    bias = None
    if len(node.input) > 2 and node.input[2]:
        if not context.is_constant(node.input[2]):
            raise UnsupportedError("its bias is no constant")
        columns = context.shape(node.output[0])[-1]
        bias = np.broadcast_to(context.constant(node.input[2]).astype(np.float64).reshape(-1), (columns,))
    return Product(value=context.value(node.input[0]), weights=weights, bias=bias)


def softmax(context: Context, node: onnx.NodeProto) -> Ref:
    """Return the probabilities of scores."""
    ref = context.ref(node.input[0])
    rank = len(context.shape(node.input[0]))
    if not isinstance(ref, Scores) or context.attributes(node).get("axis", -1) % rank != rank - 1:
        raise UnsupportedError("of anything but the scores of attention, over the keys")
    return Probabilities(scores=ref)


def masked(context: Context, scores: Scores, mask: Array) -> Ref:
    """Return scores with a constant mask added."""
    hidden = mask <= _HIDDEN
    if not (hidden | (mask == 0)).all():
        raise UnsupportedError("a bias of scores: a mask has 0 and large negative numbers")
    return _hidden(context, scores, hidden)


def where_masked(context: Context, node: onnx.NodeProto) -> Ref:
    """Return scores of which a constant condition replaces some by a large negative number."""
    condition, yes, no = node.input
    seen = context.constant(condition).astype(bool)
    for kept, other, hidden in ((yes, no, ~seen), (no, yes, seen)):
        ref = context.ref(kept)
        if (
            isinstance(ref, Scores)
            and context.is_constant(other)
            and context.constant(other).max() <= _HIDDEN
        ):
            return _hidden(context, ref, hidden)
    raise UnsupportedError("it chooses by anything but a mask of scores")


def _hidden(context: Context, scores: Scores, hidden: Array) -> Scores:
    tokens = context.tokens
    if hidden.size != np.prod(hidden.shape[-2:]):
        raise UnsupportedError("a mask that differs from head to head")
    whole = np.broadcast_to(hidden.reshape(hidden.shape[-2:]), (tokens, tokens))
    if not whole.any():
        return scores
    if (whole == np.triu(np.ones((tokens, tokens), bool), 1)).all():
        return replace(scores, causal=True)
    raise UnsupportedError("a mask that hides other keys than later ones")


def attention(context: Context, node: onnx.NodeProto) -> Ref:
    """Return ONNX's attention of heads in one operator."""
    found = context.attributes(node)
    refs = [context.ref(name) for name in node.input[:3]]
    causal = bool(found.get("is_causal", 0))
    if len([name for name in node.output if name]) > 1 or any(node.input[4:]) or found.get("softcap", 0.0):
        raise UnsupportedError("with past keys, a cap or further results")
    heads = [ref for ref in refs if isinstance(ref, Heads)]
    if len(heads) == 3:
        if any(ref.order != "HTD" or ref.factor != 1 for ref in heads):
            raise UnsupportedError("of operands that are not heads of tokens")
        names, count, order = [ref.value for ref in heads], heads[0].heads, "HTD"
    else:
        count, order = int(found.get("q_num_heads", 0)), "THD"
        if count < 1 or found.get("kv_num_heads", count) != count:
            raise UnsupportedError("without q_num_heads, or with other heads of keys")
        names = [context.value(name) for name in node.input[:3]]
    scale = found.get("scale", 1 / math.sqrt(context.channels[names[0]] // count))
    scores = Scores(queries=names[0], keys=names[1], heads=count, factor=scale, causal=causal)
    if len(node.input) > 3 and node.input[3]:
        mask = context.constant(node.input[3])
        masks = ~mask if mask.dtype == bool else mask <= _HIDDEN
        scores = _hidden(context, scores, masks)
    return Mixed(scores=scores, values=names[2], order=order)


def split(context: Context, node: onnx.NodeProto) -> list[Ref]:
    """Return parts of a product's columns, each a product of its own."""
    ref, name = context.ref(node.input[0]), node.input[0]
    axis, rank = context.attributes(node).get("axis", 0), len(context.shape(name))
    if not isinstance(ref, Product) or axis % rank != rank - 1:
        raise UnsupportedError("of anything but the columns of a product")
    weights = real(ref.weights)
    found: list[Ref] = []
    first = 0
    for output in node.output:
        end = first + context.shape(output)[-1]
        bias = None if ref.bias is None else ref.bias[first:end]
        found.append(Product(value=ref.value, weights=weights[:, first:end], bias=bias))
        first = end
    return found
