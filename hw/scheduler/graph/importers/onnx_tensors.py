"""Facts about a model's tensors, and the values of constants."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from hw.errors import InputError
from hw.scheduler.graph.importers.onnx_bodies import Frame
from hw.scheduler.graph.importers.onnx_constants import SMALL, constant_of, evaluate, read_values
from hw.scheduler.graph.importers.onnx_standins import full_name
from hw.scheduler.graph.importers.rules.call import Array, NodeCall, Shape

#: Operators whose constant result is stored in the type of their first operand.
_KEEP_STORED = frozenset(
    (
        "Cast", "Transpose", "Reshape", "Identity", "Squeeze", "Unsqueeze", "Flatten", "Concat",
        "Split", "Slice", "Gather",
    )
)  # fmt: skip
#: Operators that only scale and shift parameters stored in few bits.
_SCALING = frozenset(("Mul", "Div", "Sub", "Add"))
#: Operators whose result is at most as large as their operand, depending on its values.
_BY_VALUE = frozenset(("NonZero", "Unique", "Compress"))
#: Element types of stored weights that are cast before use.
_FEW_BITS = frozenset(
    number for name, number in TensorProto.DataType.items()
    if name in ("INT8", "UINT8", "INT4", "UINT4", "INT2", "UINT2")
    or name.startswith(("FLOAT4", "FLOAT6", "FLOAT8"))
)  # fmt: skip


class Tensors:
    """Facts about tensors, by name; ``where`` is the model's file, ``folder`` the one of its other files."""

    def __init__(self, where: str, folder: Path | None) -> None:
        self.where, self.folder = where, folder
        self.known: set[str] = set()  #: All tensors so far.
        self.shapes: dict[str, Shape] = {}  #: Only of tensors with all extents known.
        self.types: dict[str, int] = {}  #: Element types, in ONNX's numbers; 0 if unknown.
        #: Parameters and values computed from them alone; None if the values do not matter.
        self.constants: dict[str, Array | None] = {}
        #: Stored element types of parameters computed from others: dequantized, transposed.
        self.stored: dict[str, int] = {}
        #: Tensors that are unknown because of an open dimension or an unsupported operator before them.
        self.lost: set[str] = set()
        #: By tensor without a shape: the operator at which the shape became unknown.
        self.makers: dict[str, str] = {}

    def shape(self, name: str) -> Shape:
        """Return the shape of a tensor; InputError when it is not known."""
        if name not in self.shapes:
            legal = "known once the inputs' shapes are"
            if name in self.makers:
                legal += f": {self.makers[name]} makes it from values that the model does not hold"
            raise self.refuse(f"shape of tensor {name!r}", "unknown", legal)
        return self.shapes[name]

    def refuse(self, field: str, value: Any, legal: str) -> InputError:
        """Return an error of this model."""
        return InputError(field, value, legal, where=self.where)

    def add_parameters(self, graph: onnx.GraphProto, frame: Frame) -> None:
        """Learn the parameters of a body."""
        for tensor in graph.initializer:
            name = (
                frame.names.setdefault(tensor.name, frame.own(tensor.name)) if frame.prefix else tensor.name
            )
            self.constants[name] = read_values(tensor, self.where, self.folder)
            self.learn(name, tensor.data_type, tuple(tensor.dims))

    def learn(self, name: str, element: int, extents: Sequence[int | None] | None) -> None:
        """Learn a tensor's type, and its shape if all extents are known."""
        self.known.add(name)
        self.types[name] = element
        if extents is not None and None not in extents:
            self.shapes[name] = tuple(extent for extent in extents if extent is not None)

    def lose(self, names: Sequence[str]) -> None:
        """Mark tensors as unknown."""
        for name in filter(None, names):
            self.known.add(name)
            self.lost.add(name)
            self.types.setdefault(name, 0)

    def fold_mask(self, name: str) -> None:
        """Learn the mask of a Dropout, which is all ones outside of training."""
        shape = self.shapes.get(name)
        small = shape is not None and math.prod(shape) <= SMALL
        self.constants[name] = np.ones(shape, np.bool_) if small and shape is not None else None

    def fold(self, node: onnx.NodeProto, call: NodeCall, version: int) -> None:
        """Learn the values of a node's constant results if they are small."""
        folded: list[Array | None] = [None] * len(node.output)
        sizes = [
            math.prod(self.shapes[name]) if name in self.shapes else None for name in node.output if name
        ]
        name = full_name(node)
        if name in ("Shape", "Size"):
            folded[0] = measured(call)
        elif name == "Constant":
            folded[0], _, element = constant_of(node, self.where, self.folder)
            self.types[node.output[0]] = element
        elif name in _BY_VALUE or all(size is not None and size <= SMALL for size in sizes):
            values = [self.constants.get(each) if each else None for each in node.input]
            folded = list(evaluate(node, values, version) or folded)
        self._keep_stored(node, name)
        for each, value in zip(node.output, folded, strict=True):
            if value is not None and name in _BY_VALUE:
                self.learn(each, self.types[each], value.shape)
            # Only if rule and evaluator agree on the shape.
            small = value is not None and value.size <= SMALL and value.shape == self.shapes.get(each)
            if each:
                self.constants[each] = value if small else None

    def _elements(self, name: str) -> int:
        return math.prod(self.shapes.get(name, ()))

    def _keep_stored(self, node: onnx.NodeProto, name: str) -> None:
        """Learn the stored type of a computed parameter."""
        given = [each for each in node.input if each]
        if not given or not node.output[0]:
            return
        source: str | None = None
        few = given[0] in self.stored or self.types[given[0]] in _FEW_BITS
        # Wider integers that are only moved are shapes and indices.
        if name == "DequantizeLinear" or (few and name in _KEEP_STORED):
            source = given[0]
        elif name in _SCALING:
            # The operand of full size; the others are scales and zero points.
            size = self._elements(node.output[0])
            source = next(
                (each for each in given if each in self.stored and self._elements(each) == size), None
            )
        if source is not None:
            for each in filter(None, node.output):
                self.stored[each] = self.stored.get(source, self.types[source])


def measured(call: NodeCall) -> Array:
    """Return the value of a Shape, or of a Size."""
    extents = call.shape(0)
    if call.op == "Size":
        return np.array(math.prod(extents), np.int64)
    end = call.number("end", len(extents))
    return np.array(extents[call.number("start", 0) : end], np.int64)
