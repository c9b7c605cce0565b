"""The order of a tensor's dimensions: of an input, and behind the views that do not move elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from hw.network.graph.refs import FLAT_CHW, FLAT_HWC, NCHW, NHWC, VECTOR, order_after

Shape = tuple[int, ...]


class UnsupportedError(Exception):
    """An operator, or one of its attributes, that has no counterpart on integers."""


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Return the attributes of a node by name."""
    return {each.name: helper.get_attribute_value(each) for each in node.attribute}


def hwc(shape: Shape, order: str) -> tuple[int, int, int]:
    """Return height, width and channels of a model's shape; its batch must be 1."""
    if len(shape) != len(order):
        raise UnsupportedError(f"shape {shape}: 4 dimensions of an image, or 2 of a vector")
    if shape[0] != 1:
        raise UnsupportedError(f"a batch of {shape[0]}: one image a run")
    by_name = dict(zip(order, shape, strict=True))
    return by_name.get("H", 1), by_name.get("W", 1), by_name["C"]


def order_of_input(name: str, rank: int, nodes: Sequence[onnx.NodeProto]) -> str:
    """Return the order of an input's dimensions: NHWC where a Transpose makes it NCHW."""
    if rank != 4:
        return VECTOR
    names = {name}
    for node in nodes:
        if not names.intersection(node.input[:1]):
            continue
        if node.op_type == "Transpose" and permutation(node, rank) == (0, 3, 1, 2):
            return NHWC
        if node.op_type in ("QuantizeLinear", "DequantizeLinear", "Identity"):
            names.update(node.output)
    return NCHW


def permutation(node: onnx.NodeProto, rank: int) -> tuple[int, ...]:
    """Return the permutation of a Transpose; without one the dimensions are reversed."""
    return tuple(attributes_of(node).get("perm") or range(rank)[::-1])


def view(node: onnx.NodeProto, order: str, before: Shape, after: Shape) -> str:
    """Return the order of dimensions behind a view."""
    if node.op_type == "Transpose":
        return order_after(order, permutation(node, len(before)), node.name or node.output[0])
    if before == after:
        return order
    if len(after) == 2 and after[0] == 1:
        if order == VECTOR or (order in (NCHW, NHWC) and before[order.index("C")] == after[1]):
            return VECTOR
        if order in (NCHW, NHWC):
            return FLAT_CHW if order == NCHW else FLAT_HWC
    pixel = order == VECTOR or (order in (NCHW, NHWC) and hwc(before, order)[:2] == (1, 1))
    if pixel and len(after) == 4 and after[0] == 1 and max(after[1], after[3]) == np.prod(after):
        return NCHW if after[3] == 1 else NHWC
    raise UnsupportedError(
        f"from shape {before} to {after}: only an image to a vector, and back from one pixel"
    )
