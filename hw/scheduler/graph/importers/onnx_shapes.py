"""Shapes, element types and constants of an ONNX model, learned operator by operator.

ONNX can infer a whole model at once, but a damaged one ends the process there (an extent below 0 that the
next operator trusts).  So each operator is inferred alone, from operands that were checked, and small whole
numbers (shapes, axes, indices) are computed on the way: later operators' shapes depend on them.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.checker import ValidationError
from onnx.defs import SchemaError, get_schema
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import InferenceError, infer_node_outputs

from hw.errors import InputError
from hw.scheduler.graph.importers.onnx_operators import Shape
from hw.scheduler.graph.importers.onnx_standins import RUNTIME, SHAPES, STAND_INS, full_name, plain_node

#: Elements of a constant that is worth its values: shapes, axes, indices.
SMALL = 4096
#: Operators whose constant result is stored as their first operand is.
_KEEP_STORED = frozenset(("DequantizeLinear", "Transpose", "Reshape", "Identity", "Squeeze", "Unsqueeze"))
#: What the inference of one operator raises when it does not like its attributes or operands, or lacks some.
_REFUSALS = (
    InferenceError, ValidationError, SchemaError, ValueError, RuntimeError, LookupError, ArithmeticError,
)  # fmt: skip
_TERM = rb"[A-Za-z]*(\.\.\.[A-Za-z]*)?"
#: The equation of an Einsum without its spaces.
_EQUATION = re.compile(_TERM + rb"(," + _TERM + rb")*(->" + _TERM + rb")?")
Array = np.ndarray[Any, Any]


class Learned:
    """What is known about the tensors, by name, of a model with a value for every dimension of its inputs;
    ``where`` is its file, for errors.

    Members
    -------
    opset : int
        Version of ONNX's own operators that the model uses.
    shapes : dict of str to Shape
        Only of tensors whose every extent is known.
    types : dict of str to int
        Element types, in ONNX's numbers.
    constants : dict of str to array or None
        Parameters and what is computed from nothing else; None where the values do not matter.
    stored : dict of str to int
        Element types in which parameters are stored that are computed from others: dequantized, transposed.

    Raises
    ------
    InputError
        For a damaged parameter, an operator whose operands do not fit it, a shape that is not positive or not
        the one the model states.
    """

    def __init__(self, model: onnx.ModelProto, where: str) -> None:
        self._model, self._where, graph = model, where, model.graph
        self._versions = {use.domain.removeprefix("ai.onnx"): use.version for use in model.opset_import}
        self.opset = self._versions.get("", 1)
        self.shapes: dict[str, Shape] = {}
        self.types: dict[str, int] = {}
        self.constants: dict[str, Array | None] = {}
        self.stored: dict[str, int] = {}
        self._protos: dict[str, onnx.TypeProto] = {}
        for tensor in graph.initializer:
            self.constants[tensor.name] = self._values(tensor)
            self._know(tensor.name, helper.make_tensor_type_proto(tensor.data_type, tuple(tensor.dims)))
        for value in graph.input:
            if value.name not in self.constants:
                self._know(value.name, value.type)
        stated = {value.name: value.type for value in (*graph.value_info, *graph.output)}
        for node in graph.node:
            self._infer(node, stated)
            if not self._fold(node):
                for name in filter(None, node.output):
                    if min(self.shapes.get(name, ()), default=1) < 1:
                        legal = "positive in every dimension"
                        raise InputError(f"shape of tensor {name!r}", self.shapes[name], legal)

    def shape(self, name: str) -> Shape:
        """Give the shape of a tensor; InputError when it is not known."""
        if name not in self.shapes:
            raise InputError(f"shape of tensor {name!r}", "unknown", "known once the inputs' shapes are")
        return self.shapes[name]

    def _refuse(self, field: str, value: Any, legal: str) -> InputError:
        return InputError(field, value, legal, where=self._where)

    def _values(self, tensor: onnx.TensorProto) -> Array | None:
        """Give the values of a parameter that may be a shape, axes or indices; None for a larger one."""
        of, dims = f"of parameter {tensor.name!r}", tuple(tensor.dims)
        if min(dims, default=0) < 0:
            raise self._refuse(f"shape {of}", dims, "at least 0 in every dimension")
        try:
            kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
        except KeyError as error:
            raise self._refuse(f"type {of}", tensor.data_type, "an element type of ONNX") from error
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            return None
        try:
            values = numpy_helper.to_array(tensor)
            # Elements of less than a byte are packed, and ONNX reads as many of them as it needs.
            count = len(tensor.raw_data) if tensor.HasField("raw_data") else 0
            if count and values.itemsize == 1 and count != len(numpy_helper.from_array(values).raw_data):
                raise ValueError(f"{count} bytes")
        # Too few bytes or numbers, too many, of another type, text that is none.
        except (ValueError, TypeError) as error:
            legal = f"{math.prod(dims)}, what shape {dims} says, of type {kind}"
            raise self._refuse(f"stored values {of}", _one_line(error), legal) from error
        return values if values.size <= SMALL else None

    def _know(self, name: str, proto: onnx.TypeProto) -> None:
        self._protos[name] = proto
        self.types[name] = proto.tensor_type.elem_type
        extents = _extents(proto)
        if extents is not None and None not in extents:
            self.shapes[name] = tuple(extent for extent in extents if extent is not None)

    def _infer(self, node: onnx.NodeProto, stated: dict[str, onnx.TypeProto]) -> None:
        """Learn the types of a node's outputs."""
        of = f"operator {node.name or node.op_type!r}"
        given = list(filter(None, node.input))
        if strange := [name for name in given if name not in self._protos]:
            legal = "a parameter, an input of the model, or made by an operator"
            if any(strange[0] in other.output for other in self._model.graph.node):
                legal = "made by an operator before it: the graph has a cycle, or is out of order"
            raise self._refuse(f"operand of {of}", strange[0], legal)
        for attribute in node.attribute:
            if attribute.HasField("t"):
                self._values(attribute.t)
            # ONNX writes a shape for so many outputs, wherever that is.
            if attribute.name == "num_outputs" and attribute.i != len(node.output):
                legal = f"{len(node.output)}, the outputs it has"
                raise self._refuse(f"num_outputs of {of}", attribute.i, legal)
            # At dots that are not three, ONNX never comes back.
            if attribute.name == "equation" and not _EQUATION.fullmatch(attribute.s.replace(b" ", b"")):
                legal = "terms of letters, each with '...' once at most"
                raise self._refuse(f"equation of {of}", attribute.s.decode(errors="replace"), legal)
        values = {name: self.constants.get(name) for name in given}
        known = {name: value for name, value in values.items() if _is_kind(value, "iufb")}
        version = self._versions.get(node.domain.removeprefix("ai.onnx"), 1)
        try:
            if node.domain == RUNTIME or full_name(node) in SHAPES:
                found = self._infer_runtime(node)
            else:
                found = infer_node_outputs(
                    get_schema(node.op_type, version, node.domain),
                    node,
                    {name: self._protos[name] for name in given},
                    {name: numpy_helper.from_array(value, name) for name, value in known.items()},
                    opset_imports=list(self._model.opset_import),
                    ir_version=self._model.ir_version,
                )
        except _REFUSALS as error:
            legal = f"one whose shapes can be inferred ({_one_line(error)})"
            raise self._refuse(of, node.op_type, legal) from error
        for name in filter(None, node.output):
            if name in self._protos:
                raise self._refuse(f"result of {of}", name, "a name that nothing else has")
            self._know(name, self._agreed(name, found.get(name, onnx.TypeProto()), stated.get(name)))

    def _infer_runtime(self, node: onnx.NodeProto) -> dict[str, onnx.TypeProto]:
        """Infer the outputs of an operator of onnxruntime's, which ONNX knows nothing of."""
        name = full_name(node)
        if name in SHAPES:
            shapes = [self.shape(each) if each else () for each in node.input]
            attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
            made, element = SHAPES[name](shapes, attributes), self.types[node.input[0]]
            return {
                each: helper.make_tensor_type_proto(element, shape)
                for each, shape in zip(node.output, made, strict=False)
                if each
            }
        # Every stand-in is there from this version of the operators on.
        version = max(self.opset, 20)
        plain, like = plain_node(node, version), STAND_INS[name].like
        # The plain operator need not take whole numbers: shapes are those of floats.
        given = {
            each: helper.make_tensor_type_proto(TensorProto.FLOAT, self.shape(each))
            for each in filter(None, plain.input)
        }
        if plain.op_type == "DequantizeLinear":
            given[plain.input[0]].tensor_type.elem_type = TensorProto.UINT8
        found = infer_node_outputs(
            get_schema(plain.op_type, version),
            plain,
            given,
            opset_imports=[helper.make_opsetid("", version)],
            ir_version=self._model.ir_version,
        )
        element = TensorProto.FLOAT if like is None else self.types[node.input[like]]
        for proto in found.values():
            proto.tensor_type.elem_type = element
        return found

    def _agreed(self, name: str, found: onnx.TypeProto, stated: onnx.TypeProto | None) -> onnx.TypeProto:
        """Give the type found, with what the model states in the place of what was not found."""
        inferred, claimed = _extents(found), _extents(stated) if stated is not None else None
        if stated is None or claimed is None:
            return found
        pairs = list(zip(claimed if inferred is None else inferred, claimed, strict=False))
        if inferred is not None and (
            len(inferred) != len(claimed) or any(one and other and one != other for one, other in pairs)
        ):
            legal = f"{inferred}, what its operator makes"
            raise self._refuse(f"stated shape of tensor {name!r}", claimed, legal)
        kind = found.tensor_type.elem_type or stated.tensor_type.elem_type
        return helper.make_tensor_type_proto(kind, [other if one is None else one for one, other in pairs])

    def _fold(self, node: onnx.NodeProto) -> bool:
        """Whether the node's outputs are constants; if so, learn them."""
        given = list(filter(None, node.input))
        folded: list[Any] = [None] * len(node.output)
        if node.op_type in ("Shape", "Size"):
            extents = self.shape(given[0])
            bounds = {attribute.name: attribute.i for attribute in node.attribute}
            part = extents[bounds.get("start", 0) : bounds.get("end", len(extents))]
            folded[0] = np.array(part if node.op_type == "Shape" else math.prod(extents), dtype=np.int64)
        elif node.op_type == "Constant" or (given and self.constants.keys() >= set(given)):
            values = {name: self.constants[name] for name in given}
            sizes = [math.prod(self.shapes.get(name, (SMALL + 1,))) for name in node.output if name]
            whole = node.op_type == "Constant" or all(_is_kind(value, "iub") for value in values.values())
            if whole and max(sizes, default=0) <= SMALL:
                folded = _evaluate(node, values) or folded
        else:
            return False
        if node.op_type in _KEEP_STORED and given:
            self.stored[node.output[0]] = self.stored.get(given[0], self.types[given[0]])
        for name, value in zip(node.output, folded, strict=True):
            self.constants[name] = None if value is None else np.asarray(value)
            if value is not None and _is_kind(self.constants[name], "iufb"):
                kind = helper.np_dtype_to_tensor_dtype(np.asarray(value).dtype)
                self._know(name, helper.make_tensor_type_proto(kind, np.shape(value)))
        return True


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _is_kind(value: Array | None, kinds: str) -> bool:
    return value is not None and value.dtype.kind in kinds


def _extents(proto: onnx.TypeProto) -> list[int | None] | None:
    """Give the extents of a type, None where one is open; None when not even their number is known."""
    if not proto.tensor_type.HasField("shape"):
        return None
    dimensions = proto.tensor_type.shape.dim
    return [each.dim_value if each.HasField("dim_value") else None for each in dimensions]


def _evaluate(node: onnx.NodeProto, feeds: dict[str, Any]) -> list[Any] | None:
    """Compute shape arithmetic; None when the evaluator does not know this version of an operator."""
    try:
        return list(ReferenceEvaluator(node).run(None, feeds))
    # It raises whatever its operators do; unknown values only mean fewer accesses.
    except Exception:
        return None
