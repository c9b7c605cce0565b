"""Rules of models that quantize activations while they run: the real operator of each pattern."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx

from hw.network.graph.refs import Array
from hw.network.graph.transformer.blocks import Floats
from hw.network.graph.transformer.context import Context
from hw.network.graph.transformer.refs import Dynamic, DynamicProduct, Part, Product, Ref
from hw.network.graph.views import UnsupportedError


def quantize(context: Context, node: onnx.NodeProto) -> list[Ref]:
    """Return the results of DynamicQuantizeLinear."""
    value = context.value(node.input[0])
    return [Dynamic(value=value, part=part) for part in (Part.STORED, Part.SCALE, Part.ZERO)]


def matmul(context: Context, node: onnx.NodeProto) -> Ref:
    """Return a product of integers."""
    operands = [*node.input, "", ""]
    ref = _dynamic(context, operands[0], Part.STORED)
    weights = context.constant(operands[1]).astype(np.float64) - _zeros(context, operands[3])
    return DynamicProduct(value=ref.value, weights=weights)


def matmul_to_float(context: Context, node: onnx.NodeProto) -> Ref:
    """Return onnxruntime's product of integers with its scales, and a bias."""
    operands = [*node.input, *("",) * 7]
    ref = _dynamic(context, operands[0], Part.STORED)
    return _product(context, ref.value, operands[1], operands[3], operands[5], operands[6])


def quantized_matmul(context: Context, node: onnx.NodeProto) -> Ref:
    """Return onnxruntime's product of a tensor that it quantizes itself."""
    operands = [*node.input, *("",) * 5]
    return _product(context, context.value(operands[0]), *operands[1:5])


def _product(context: Context, value: str, stored: str, scales: str, zeros: str, bias: str) -> Product:
    integers = context.constant(stored).astype(np.float64) - _zeros(context, zeros)
    weights = integers * context.constant(scales).reshape(-1)
    columns = weights.shape[-1]
    if weights.ndim != 2:
        raise UnsupportedError(f"weights of shape {weights.shape}: 2 dimensions")
    if not bias:
        return Product(value=value, weights=weights)
    made = np.broadcast_to(context.constant(bias).astype(np.float64).reshape(-1), (columns,))
    return Product(value=value, weights=weights, bias=made)


def scaled(context: Context, first: str, second: str) -> Ref | None:
    """Return the product of a scale and constants, or of integers and their scales; None for others."""
    refs = [context.ref(name) for name in (first, second)]
    for one, other, name in ((refs[0], refs[1], second), (refs[1], refs[0], first)):
        if isinstance(one, Dynamic) and one.part is Part.SCALE and context.is_constant(name):
            factors: Floats = context.constant(name).astype(np.float64).reshape(-1)
            return replace(one, factors=factors if one.factors is None else one.factors * factors)
        if isinstance(one, DynamicProduct) and isinstance(other, Dynamic) and one.value == other.value:
            return Product(
                value=one.value, weights=one.weights * (1.0 if other.factors is None else other.factors)
            )
    return None


def _dynamic(context: Context, name: str, part: Part) -> Dynamic:
    ref = context.ref(name)
    if not isinstance(ref, Dynamic) or ref.part is not part:
        raise UnsupportedError(f"operand {name} is not quantized by DynamicQuantizeLinear")
    return ref


def _zeros(context: Context, name: str) -> Array | float:
    return context.constant(name).astype(np.float64).reshape(-1) if name else 0.0
