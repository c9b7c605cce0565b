"""Layers of ONNX models, as ZigZag and Stream take them: convolutions, matrix products, attention."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import onnx

from hw.errors import InputError
from hw.scheduler.graph.importers.onnx_file import read_model
from hw.scheduler.graph.importers.onnx_input_shapes import InputShapes
from hw.scheduler.graph.importers.onnx_learned import Learned
from hw.scheduler.graph.importers.onnx_standins import full_name
from sim.workloads.layers import Convolution, Layer, Other, Product, Work, Workload, joined

#: Positions of map and weights of convolutions, and of both factors of matrix products.
_CONVOLUTIONS = {"Conv": (0, 1), "ConvInteger": (0, 1), "QLinearConv": (0, 3)}
_PRODUCTS = {
    "Gemm": (0, 1), "MatMul": (0, 1), "MatMulInteger": (0, 1), "QLinearMatMul": (0, 3),
    "com.microsoft.FusedMatMul": (0, 1), "com.microsoft.QGemm": (0, 3),
}  # fmt: skip
#: Operators between the logits and the softmax of attention, and between that and the product with values.
_BETWEEN = (
    "Add", "Cast", "Div", "Dropout", "DequantizeLinear", "Identity", "Mul", "QuantizeLinear", "Sub", "Where",
)  # fmt: skip
_SOFTMAX = ("Softmax", "com.microsoft.QLinearSoftmax")
#: Operators that move or rename elements, or change their type.
_FREE = (
    "Cast", "Concat", "Constant", "DequantizeLinear", "Expand", "Flatten", "Gather", "Identity",
    "QuantizeLinear", "Reshape", "Shape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze",
)  # fmt: skip


def read_onnx(path: Path, dimensions: Mapping[str, int]) -> Workload:
    """Read the layers of a model; ``dimensions`` are values of its open dimensions, by name.

    Raises `InputError` for a file that is no model, an operator of unknown shapes, an open dimension without
    a value, and a model without a layer.
    """
    model = read_model(path, str(path))
    notes: list[str] = []
    given = InputShapes(dimensions=dimensions, shapes={})
    facts = Learned(model, given, str(path), path.parent, notes.append)
    reader = _Reader(facts=facts, where=str(path))
    if not reader.layers:
        raise InputError("operators", 0, "at least 1 that computes", where=str(path))
    return Workload(
        source="ONNX model",
        layers=tuple(reader.layers.values()),
        attentions=tuple(reader.attentions()),
        notes=tuple(notes),
    )


@dataclass(frozen=True, kw_only=True)
class _Reader:
    facts: Learned
    where: str

    @cached_property
    def nodes(self) -> Sequence[onnx.NodeProto]:
        """Operators whose results are not constants."""
        known = self.facts.constants.keys()
        return [node for node in self.facts.nodes if not known >= set(filter(None, node.output))]

    @cached_property
    def makers(self) -> Mapping[str, onnx.NodeProto]:
        return {name: node for node in self.nodes for name in node.output if name}

    @cached_property
    def layers(self) -> Mapping[str, Layer]:
        """Layers by the first result of their operators."""
        found: dict[str, Layer] = {}
        for node in self.nodes:
            kind = full_name(node)
            if kind in _FREE:
                continue
            work, count = self._work(node, kind)
            name = node.name or next(iter(node.output))
            found[node.output[0]] = Layer(name=name, where=self.where, work=work, count=count)
        return found

    def attentions(self) -> Iterator[Layer]:
        """Yield attention: two products with a softmax between."""
        for node in self.nodes:
            second = self.layers.get(node.output[0])
            if second is None or not isinstance(second.work, Product):
                continue
            first_factor = _PRODUCTS[full_name(node)][0]
            chain = list(self._chain(node.input[first_factor]))
            if chain and sum(full_name(each) in _SOFTMAX for each in chain) == 1:
                parts = [each.output[0] for each in reversed(chain)] + [node.output[0]]
                names = [self.layers[part].name for part in parts if part in self.layers]
                logits = self.layers[chain[-1].output[0]]
                if found := joined(logits, second, names, name=f"{logits.name} {second.name}"):
                    yield found

    def _chain(self, tensor: str) -> Iterator[onnx.NodeProto]:
        """Yield the operators back from a tensor to the product that it comes of, if it comes of one."""
        chain: list[onnx.NodeProto] = []
        while (node := self.makers.get(tensor)) is not None and len(chain) < 16:
            chain.append(node)
            kind = full_name(node)
            if kind in _PRODUCTS:
                yield from chain
                return
            if kind not in (*_BETWEEN, *_SOFTMAX):
                return
            made = [name for name in node.input if name in self.makers]
            # The mask of `Add` and `Where` is computed apart: the logits are the largest operand.
            tensor = max(made, key=lambda name: math.prod(self._shape(name) or (0,)), default="")

    def _shape(self, name: str) -> Sequence[int] | None:
        return self.facts.shapes.get(name)

    def _work(self, node: onnx.NodeProto, kind: str) -> tuple[Work, int]:
        attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        positions = _CONVOLUTIONS.get(kind) or _PRODUCTS.get(kind)
        if positions is None:
            return Other(reason=kind), 1
        first, second = (self._shape(node.input[position]) for position in positions)
        made = self._shape(node.output[0])
        if first is None or second is None or made is None:
            raise InputError(f"shapes of {node.name or node.output[0]}", "unknown", "known", where=self.where)
        if kind in _CONVOLUTIONS:
            return _convolution(first, second, made, attributes)
        return _product(first, second, made, attributes)


def _convolution(
    map_: Sequence[int], weights: Sequence[int], made: Sequence[int], attributes: Mapping[str, Any]
) -> tuple[Work, int]:
    if len(map_) not in (3, 4):
        return Other(reason=f"convolution over {len(map_) - 2} axes"), 1
    axes = len(map_) - 2
    lead = (1,) * (2 - axes)
    strides = (*lead, *attributes.get("strides", (1,) * axes))
    dilations = (*lead, *attributes.get("dilations", (1,) * axes))
    size, kernel, out = (*lead, *map_[2:]), (*lead, *weights[2:]), (*lead, *made[2:])
    pads = list(attributes.get("pads", (0,) * 2 * axes))
    before, after = [0] * len(lead) + pads[:axes], [0] * len(lead) + pads[axes:]
    if (automatic := attributes.get("auto_pad", b"NOTSET")) not in (b"NOTSET", b"VALID"):
        reach = [(out[n] - 1) * strides[n] + dilations[n] * (kernel[n] - 1) + 1 - size[n] for n in (0, 1)]
        small = [max(0, each) // 2 for each in reach]
        large = [max(0, each) - one for each, one in zip(reach, small, strict=True)]
        before, after = (small, large) if automatic == b"SAME_UPPER" else (large, small)
    work = Convolution(
        channels=map_[1],
        rows=size[0],
        columns=size[1],
        outputs=made[1],
        kernel=(kernel[0], kernel[1]),
        strides=(strides[0], strides[1]),
        dilations=(dilations[0], dilations[1]),
        pads=(before[0], before[1], after[0], after[1]),
        group=attributes.get("group", 1),
    )
    return work, map_[0]


def _product(
    first: Sequence[int], second: Sequence[int], made: Sequence[int], attributes: Mapping[str, Any]
) -> tuple[Work, int]:
    """Return a product; one of many matrices with one is one product of more rows."""
    turned = attributes.get("transA", 0)
    inner = first[-2] if turned and len(first) > 1 else first[-1]
    # A vector has one row, or one column.
    rows = made[-2] if len(first) > 1 and len(second) > 1 else made[-1] if len(second) == 1 and made else 1
    columns = made[-1] if len(second) > 1 else 1
    count = math.prod(made) // max(1, rows * columns)
    if len(second) <= 2:
        rows, count = rows * count, 1
    return Product(rows=rows, columns=columns, inner=inner), count
