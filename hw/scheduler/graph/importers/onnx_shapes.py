"""Shapes, element types and constants of an ONNX model, learned operator by operator.

ONNX can infer a whole model at once, but a damaged one ends the process there (an extent below 0 that the
next operator trusts).  So each operator is inferred alone, from operands that were checked, and small whole
numbers (shapes, axes, indices) are computed on the way: later operators' shapes depend on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

from hw.errors import InputError
from hw.scheduler.graph.graph import stored_bytes
from hw.scheduler.graph.importers.onnx_operators import Shape

#: Elements of a constant that is worth its values: shapes, axes, indices.
SMALL = 4096
#: Bits of the element types that are packed into bytes, by name.
_PACKED = {
    **dict.fromkeys(("INT2", "UINT2"), 2),
    **dict.fromkeys(("INT4", "UINT4", "FLOAT4E2M1"), 4),
    **dict.fromkeys(("FLOAT6E2M3", "FLOAT6E3M2"), 6),
}
#: What the inference of one operator raises when it does not like its attributes or operands.
_REFUSALS = (
    shape_inference.InferenceError,
    onnx.checker.ValidationError,
    onnx.defs.SchemaError,
    ValueError,
    RuntimeError,
)


@dataclass
class Learned:
    """What is known about a model's tensors, by name.

    Parameters
    ----------
    model : onnx.ModelProto
        With a value for every dimension of its inputs.
    where : str
        The file, for errors.

    Members
    -------
    shapes : dict of str to Shape
        Only of tensors whose every extent is known.
    types : dict of str to int
        Element types, in ONNX's numbers.
    constants : dict of str to array or None
        Parameters and what is computed from nothing else; None where the values do not matter.
    """

    model: onnx.ModelProto
    where: str
    shapes: dict[str, Shape] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    constants: dict[str, np.ndarray[Any, Any] | None] = field(default_factory=dict)
    _protos: dict[str, onnx.TypeProto] = field(default_factory=dict)

    def learn(self) -> None:
        """Go through the whole model.

        Raises
        ------
        InputError
            For a damaged parameter, an operator whose operands do not fit it, a shape that is not positive or
            not the one the model states.
        """
        graph = self.model.graph
        for tensor in graph.initializer:
            refuse_damaged(tensor, self.where)
            self._know(tensor.name, onnx.helper.make_tensor_type_proto(tensor.data_type, tuple(tensor.dims)))
            self.constants[tensor.name] = _small_values(tensor, self.where)
        for value in graph.input:
            if value.name not in self.constants:
                self._know(value.name, value.type)
        stated = {value.name: value.type for value in (*graph.value_info, *graph.output)}
        later = {name for node in graph.node for name in node.output}
        for node in graph.node:
            for name in node.input:
                if name and name not in self._protos:
                    legal = "a parameter, an input of the model, or made by an operator"
                    if name in later:
                        legal = "made by an operator before it: the graph has a cycle, or is out of order"
                    of = f"operand of operator {node.name or node.op_type!r}"
                    raise InputError(of, name, legal, where=self.where)
            self._infer(node, stated)
            if not self._fold(node):
                for name in node.output:
                    if name and any(extent < 1 for extent in self.shapes.get(name, ())):
                        legal = "positive in every dimension"
                        raise InputError(f"shape of tensor {name!r}", self.shapes[name], legal)

    def shape(self, name: str) -> Shape:
        """Give the shape of a tensor.

        Raises
        ------
        InputError
            When it is not known.
        """
        if name not in self.shapes:
            raise InputError(f"shape of tensor {name!r}", "unknown", "known once the inputs' shapes are")
        return self.shapes[name]

    def _know(self, name: str, proto: onnx.TypeProto) -> None:
        self._protos[name] = proto
        self.types[name] = proto.tensor_type.elem_type
        extents = _extents(proto)
        if extents is not None and None not in extents:
            self.shapes[name] = tuple(extent for extent in extents if extent is not None)

    def _infer(self, node: onnx.NodeProto, stated: dict[str, onnx.TypeProto]) -> None:
        """Learn the types of a node's outputs."""
        of = f"operator {node.name or node.op_type!r}"
        for attribute in node.attribute:
            if attribute.HasField("t"):
                refuse_damaged(attribute.t, self.where)
            # ONNX writes a shape for so many outputs, wherever that is.
            if attribute.name == "num_outputs" and attribute.i != len(node.output):
                legal = f"{len(node.output)}, the outputs it has"
                raise InputError(f"num_outputs of {of}", attribute.i, legal, where=self.where)
        given = [name for name in node.input if name]
        values = {name: self.constants.get(name) for name in given}
        try:
            found = shape_inference.infer_node_outputs(
                onnx.defs.get_schema(node.op_type, self._version(node.domain), node.domain),
                node,
                {name: self._protos[name] for name in given},
                {
                    name: numpy_helper.from_array(value, name)
                    for name, value in values.items()
                    if value is not None and value.dtype.kind in "iufb"
                },
                opset_imports=list(self.model.opset_import),
                ir_version=self.model.ir_version,
            )
        except _REFUSALS as error:
            reason = " ".join(str(error).split())[:300]
            legal = f"one whose shapes can be inferred ({reason})"
            raise InputError(of, node.op_type, legal, where=self.where) from error
        for name in node.output:
            if name:
                if name in self._protos:
                    raise InputError(
                        f"result of {of}", name, "a name that nothing else has", where=self.where
                    )
                proto = found.get(name, onnx.TypeProto())
                self._know(name, _agreed(name, proto, stated.get(name), self.where))

    def _version(self, domain: str) -> int:
        plain = ("", "ai.onnx")
        same = plain if domain in plain else (domain,)
        return next((use.version for use in self.model.opset_import if use.domain in same), 1)

    def _fold(self, node: onnx.NodeProto) -> bool:
        """Whether the node's outputs are constants; if so, learn them."""
        given = [name for name in node.input if name]
        if node.op_type in ("Shape", "Size"):
            extents = self.shape(given[0])
            start = next((a.i for a in node.attribute if a.name == "start"), 0)
            end = next((a.i for a in node.attribute if a.name == "end"), len(extents))
            part = extents[start:end] if node.op_type == "Shape" else math.prod(extents)
            self._keep(node.output[0], np.array(part, dtype=np.int64))
            return True
        if node.op_type != "Constant" and not (given and all(name in self.constants for name in given)):
            return False
        values = [self.constants[name] for name in given]
        sizes = [math.prod(self.shapes.get(name, (SMALL + 1,))) for name in node.output if name]
        folded: list[Any] = [None] * len(node.output)
        whole = all(value is not None and value.dtype.kind in "iub" for value in values)
        if (whole or node.op_type == "Constant") and max(sizes, default=0) <= SMALL:
            folded = _evaluate(node, dict(zip(given, values, strict=True))) or folded
        for name, value in zip(node.output, folded, strict=True):
            self._keep(name, None if value is None else np.asarray(value))
        return True

    def _keep(self, name: str, value: np.ndarray[Any, Any] | None) -> None:
        self.constants[name] = value
        if value is not None and value.dtype.kind in "iufb":
            kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
            self._know(name, onnx.helper.make_tensor_type_proto(kind, value.shape))


def refuse_damaged(tensor: onnx.TensorProto, where: str) -> None:
    """Refuse a parameter whose shape, type and stored bytes do not belong together.

    Raises
    ------
    InputError
        Naming the parameter and what its shape and type say.
    """
    of = f"of parameter {tensor.name!r}"
    dims = tuple(tensor.dims)
    if any(extent < 0 for extent in dims):
        raise InputError(f"shape {of}", dims, "at least 0 in every dimension", where=where)
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except KeyError as error:
        raise InputError(f"type {of}", tensor.data_type, "an element type of ONNX", where=where) from error
    if tensor.HasField("raw_data") and tensor.data_location != onnx.TensorProto.EXTERNAL:
        bits = _PACKED.get(onnx.TensorProto.DataType.Name(tensor.data_type), dtype.itemsize * 8)
        needed = stored_bytes(dims, bits)
        if len(tensor.raw_data) != needed:
            legal = f"{needed}, what shape {dims} and type {dtype} say"
            raise InputError(f"stored bytes {of}", len(tensor.raw_data), legal, where=where)


def _small_values(tensor: onnx.TensorProto, where: str) -> np.ndarray[Any, Any] | None:
    """Give the values of a parameter that may be a shape, axes or indices; None for a larger one."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL or math.prod(tensor.dims) > SMALL:
        return None
    try:
        return numpy_helper.to_array(tensor)
    # What is wrong in lists of numbers: too few, too many, of another type, text that is none.
    except (ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:120]
        legal = f"{math.prod(tensor.dims)} numbers ({reason})"
        raise InputError(f"values of parameter {tensor.name!r}", "damaged", legal, where=where) from error


def _extents(proto: onnx.TypeProto) -> list[int | None] | None:
    """Give the extents of a type, None where one is open; None when not even their number is known."""
    if not proto.tensor_type.HasField("shape"):
        return None
    return [
        dimension.dim_value if dimension.HasField("dim_value") else None
        for dimension in proto.tensor_type.shape.dim
    ]


def _agreed(name: str, found: onnx.TypeProto, stated: onnx.TypeProto | None, where: str) -> onnx.TypeProto:
    """Give the type found, with what the model states in the place of what was not found.

    Raises
    ------
    InputError
        When the two contradict each other.
    """
    inferred, claimed = _extents(found), _extents(stated) if stated is not None else None
    if stated is None or claimed is None:
        return found
    kind = found.tensor_type.elem_type or stated.tensor_type.elem_type
    if inferred is None:
        return onnx.helper.make_tensor_type_proto(kind, claimed)
    pairs = list(zip(inferred, claimed, strict=False))
    if len(inferred) != len(claimed) or any(one and other and one != other for one, other in pairs):
        legal = f"{inferred}, what its operator makes"
        raise InputError(f"stated shape of tensor {name!r}", claimed, legal, where=where)
    both = [one if one is not None else other for one, other in pairs]
    return onnx.helper.make_tensor_type_proto(kind, both)


def _evaluate(node: onnx.NodeProto, feeds: dict[str, Any]) -> list[Any] | None:
    """Compute shape arithmetic; None when the evaluator does not know this version of an operator."""
    try:
        return list(ReferenceEvaluator(node).run(None, feeds))
    # It raises whatever its operators do; unknown values only mean fewer accesses.
    except Exception:
        return None
