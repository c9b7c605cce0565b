"""Graphs from ONNX models: shapes are inferred, parameters need not be there, views vanish."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

from hw.errors import InputError
from hw.scheduler.graph import Access, Graph, Operator, Tensor, TensorKind, stored_bytes
from hw.scheduler.importers.onnx_operators import OPERATORS, VIEWS, Node, Shape, same_axis

#: Elements of a constant that is worth its values: shapes, axes, indices.
_SMALL = 4096
#: Operators that only make constants, of nothing or from shapes.
_SHAPES = frozenset(("Constant", "Shape", "Size"))
#: Inputs that hold what earlier runs left behind.
_CACHE = re.compile(r"past|cache", re.IGNORECASE)
_FLOATS = frozenset(
    getattr(onnx.TensorProto, name) for name in ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "UNDEFINED")
)


def import_onnx(
    source: Path | bytes,
    *,
    dimensions: Mapping[str, int] | None = None,
    element_bits: int = 8,
    weights: bool = False,
    name: str = "",
    made_by: str = "",
) -> Graph:
    """Turn an ONNX model into a graph.

    Parameters
    ----------
    source : Path or bytes
        The model; parameters stored in other files are not read.
    dimensions : mapping of str to int
        Values of dimensions the model leaves open, by their names in the model.
    element_bits : int
        Of floating-point tensors, once quantized; whole numbers keep their type.
    weights : bool
        Whether parameters become tensors of the graph instead of ``weight_bytes``.
    name, made_by : str
        As of `Graph`; the model's own name, or the file's, when empty.

    Raises
    ------
    InputError
        For a file that is no ONNX model, operators that are not supported (all of them in one error), a
        dimension without a value, a shape that cannot be inferred.
    """
    where = str(source) if isinstance(source, Path) else "model"
    model = _read(source, where)
    _refuse_unsupported(model.graph, where)
    _set_dimensions(model, dict(dimensions or {}))
    try:
        model = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except (shape_inference.InferenceError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError("model", where, f"one whose shapes can be inferred ({reason})") from error
    title = name or (source.stem if isinstance(source, Path) else model.graph.name)
    opset = next((use.version for use in model.opset_import if use.domain in ("", "ai.onnx")), 1)
    reader = _Reader(model=model.graph, where=where, opset=opset, element_bits=element_bits, weights=weights)
    return reader.graph(title, made_by)


def _read(source: Path | bytes, where: str) -> onnx.ModelProto:
    try:
        content = source.read_bytes() if isinstance(source, Path) else source
        model = onnx.load_model_from_string(content)
    except OSError as error:
        raise InputError("model", where, f"a readable file ({error.strerror})") from error
    except DecodeError as error:
        raise InputError("model", where, "an ONNX model, and this is none or is damaged") from error
    if not model.graph.node:
        raise InputError("model", where, "an ONNX model with at least one operator")
    for node in model.graph.node:
        # Text that is no UTF-8 is handed over as bytes.
        if not all(isinstance(text, str) for text in (node.name, node.op_type, *node.input, *node.output)):
            raise InputError("model", where, "an ONNX model, and this is damaged: a name is no text")
    return model


def _refuse_unsupported(graph: onnx.GraphProto, where: str) -> None:
    """Name all operators that are not supported, but for those that only compute constants."""
    constants = {tensor.name for tensor in graph.initializer}
    unknown = set()
    for node in graph.node:
        given = [name for name in node.input if name]
        plain = node.domain in ("", "ai.onnx")
        if (plain and node.op_type in _SHAPES) or (given and constants.issuperset(given)):
            constants.update(node.output)
        elif not plain or node.op_type not in {*OPERATORS, *VIEWS}:
            unknown.add(f"{node.domain}.{node.op_type}".lstrip("."))
    if unknown:
        raise InputError(
            f"model {where}", ", ".join(sorted(unknown)), "made of supported operators; these are not"
        )


def _set_dimensions(model: onnx.ModelProto, values: dict[str, int]) -> None:
    """Put values in the place of named dimensions of the inputs."""
    known = {tensor.name for tensor in model.graph.initializer}
    named: set[str] = set()
    for value in model.graph.input:
        if value.name in known:
            continue
        for index, dimension in enumerate(value.type.tensor_type.shape.dim):
            label = dimension.dim_param
            if label:
                named.add(label)
            if label in values:
                dimension.dim_value = values[label]
            elif dimension.dim_value < 1:
                field_name = f"dimension {label or index} of input {value.name!r}"
                raise InputError(
                    field_name, "open", f"given: --dim {label}=VALUE" if label else "in the model"
                )
    for label in values:
        if label not in named:
            legal = "one of " + ", ".join(sorted(named)) if named else "left out: the model leaves none open"
            raise InputError("dimension", label, legal)


@dataclass
class _Reader:
    """One model on its way to a graph."""

    model: onnx.GraphProto
    where: str
    opset: int
    element_bits: int
    weights: bool
    shapes: dict[str, Shape] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    constants: dict[str, np.ndarray[Any, Any] | None] = field(default_factory=dict)
    alias: dict[str, str] = field(default_factory=dict)

    def graph(self, name: str, made_by: str) -> Graph:
        """Read everything."""
        self._learn_shapes()
        nodes = [node for node in self.model.node if not self._fold(node)]
        nodes = self._alive([node for node in nodes if not self._view(node)])
        operators = tuple(self._operator(node, index) for index, node in enumerate(nodes))
        if not operators:
            raise InputError("model", self.where, "one with an operator that is more than a view")
        return Graph(name=name, tensors=self._tensors(operators), operators=operators, made_by=made_by)

    def _learn_shapes(self) -> None:
        for value in (*self.model.input, *self.model.value_info, *self.model.output):
            tensor = value.type.tensor_type
            self.types[value.name] = tensor.elem_type
            if tensor.HasField("shape"):
                extents = tuple(dimension.dim_value for dimension in tensor.shape.dim)
                if all(extent > 0 for extent in extents):
                    self.shapes[value.name] = extents
        for tensor in self.model.initializer:
            self.shapes[tensor.name] = tuple(tensor.dims)
            self.types[tensor.name] = tensor.data_type
            inside = tensor.data_location != onnx.TensorProto.EXTERNAL
            small = inside and math.prod(tensor.dims) <= _SMALL
            self.constants[tensor.name] = numpy_helper.to_array(tensor) if small else None

    def _fold(self, node: onnx.NodeProto) -> bool:
        """Whether the node's outputs are constants; if so, learn them."""
        given = [name for name in node.input if name]
        if node.op_type in ("Shape", "Size"):
            extents = self._shape(given[0])
            start = next((a.i for a in node.attribute if a.name == "start"), 0)
            end = next((a.i for a in node.attribute if a.name == "end"), len(extents))
            part = extents[start:end] if node.op_type == "Shape" else math.prod(extents)
            self.constants[node.output[0]] = np.array(part, dtype=np.int64)
            return True
        if node.op_type != "Constant" and not (given and all(name in self.constants for name in given)):
            return False
        values = [self.constants[name] for name in given]
        sizes = [math.prod(self.shapes.get(name, (_SMALL + 1,))) for name in node.output if name]
        folded: list[Any] = [None] * len(node.output)
        whole = all(value is not None and value.dtype.kind in "iub" for value in values)
        if (whole or node.op_type == "Constant") and max(sizes, default=0) <= _SMALL:
            folded = _evaluate(node, dict(zip(given, values, strict=True))) or folded
        for name, value in zip(node.output, folded, strict=True):
            self.constants[name] = None if value is None else np.asarray(value)
            if value is not None:
                self.shapes[name] = tuple(np.asarray(value).shape)
        return True

    def _view(self, node: onnx.NodeProto) -> bool:
        if node.op_type not in VIEWS:
            return False
        self.alias[node.output[0]] = self._base(node.input[0])
        return True

    def _base(self, name: str) -> str:
        return self.alias.get(name, name)

    def _alive(self, nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
        """Leave out what no output of the model depends on."""
        wanted = {self._base(value.name) for value in self.model.output}
        alive = []
        for node in reversed(nodes):
            if wanted.intersection(node.output):
                wanted.update(self._base(name) for name in node.input if name)
                alive.append(node)
        self.wanted = wanted
        return list(reversed(alive))

    def _operator(self, node: onnx.NodeProto, index: int) -> Operator:
        outputs = [name for name in node.output if name in self.wanted]
        read = [None if not name or name in self.constants else self._base(name) for name in node.input]
        shapes = tuple(self._shape(name) if name else () for name in node.input)
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        constants = {
            position: value.reshape(-1).tolist()
            for position, name in enumerate(node.input)
            if name and (value := self.constants.get(name)) is not None and value.dtype.kind in "iuf"
        }
        described = Node(
            op=node.op_type,
            inputs=tuple(read),
            shapes=shapes,
            outputs=tuple(self._shape(name) for name in outputs),
            attributes=attributes,
            constants=constants,
            stored=tuple(
                self._shape(name) if name else shape for name, shape in zip(read, shapes, strict=True)
            ),
            opset=self.opset,
        )
        cost = OPERATORS[node.op_type](described)
        accesses: dict[str, Access | None] = {}
        for position, name in enumerate(read):
            if name:
                access = cost.accesses.get(position)
                mapped = access and self._through_view(access, shapes[position], self._shape(name))
                # An operand that is read in two ways is needed whole.
                accesses[name] = mapped if accesses.get(name, mapped) == mapped else None
        parameters = self._parameters(described, node)
        tensors = [name for name in dict.fromkeys(read) if name]
        return Operator(
            name=_name(node, index),
            kind=_kind(node.op_type),
            inputs=(*tensors, *parameters) if self.weights else tuple(tensors),
            outputs=tuple(outputs),
            macs=cost.macs,
            weight_bytes=0 if self.weights else sum(parameters.values()),
            accesses={name: access for name, access in accesses.items() if access},
        )

    def _parameters(self, described: Node, node: onnx.NodeProto) -> dict[str, int]:
        """Bytes of the floating-point parameters a node reads, by name."""
        found = {}
        for position, name in enumerate(node.input):
            if not name or name not in self.constants or self.types.get(name, 1) not in _FLOATS:
                continue
            shape = described.shapes[position]
            if node.op_type == "Gather" and position == 0:
                shape = described.output  # only the rows that are looked up
            found[name] = stored_bytes(shape, self.element_bits)
        return found

    @staticmethod
    def _through_view(access: Access, seen: Shape, stored: Shape) -> Access | None:
        """Give the access in the dimensions of the stored tensor; None when its rows are other rows."""
        if seen == stored:
            return access
        axis = same_axis(seen, access.axis, stored)
        return None if axis is None else replace(access, axis=axis)

    def _shape(self, name: str) -> Shape:
        if name not in self.shapes:
            raise InputError(f"shape of tensor {name!r}", "unknown", "known once the inputs' shapes are")
        return self.shapes[name]

    def _bits(self, name: str) -> int:
        kind = self.types.get(name, onnx.TensorProto.FLOAT)
        if kind in _FLOATS:
            return self.element_bits
        return max(8, onnx.helper.tensor_dtype_to_np_dtype(kind).itemsize * 8)

    def _tensors(self, operators: tuple[Operator, ...]) -> tuple[Tensor, ...]:
        made = {name for operator in operators for name in operator.outputs}
        given = {value.name for value in self.model.input}
        results = {self._base(value.name) for value in self.model.output}
        tensors = []
        for name in dict.fromkeys(
            name for operator in operators for name in (*operator.inputs, *operator.outputs)
        ):
            kind = TensorKind.OUTPUT if name in results else TensorKind.ACTIVATION
            if name not in made:
                if name not in self.constants and name not in given:
                    raise InputError(f"tensor {name!r}", "made by no operator", "made by one, or an input")
                kind = TensorKind.CACHE if _CACHE.search(name) else TensorKind.INPUT
                kind = TensorKind.WEIGHT if name in self.constants else kind
            shape, bits = self._shape(name), self._bits(name)
            tensors.append(
                Tensor(
                    name=name, size_bytes=stored_bytes(shape, bits), shape=shape, element_bits=bits, kind=kind
                )
            )
        return tuple(tensors)


def _evaluate(node: onnx.NodeProto, feeds: dict[str, Any]) -> list[Any] | None:
    """Compute shape arithmetic; None when the evaluator does not know this version of an operator."""
    try:
        return list(ReferenceEvaluator(node).run(None, feeds))
    # It raises whatever its operators do; unknown values only mean fewer accesses.
    except Exception:
        return None


def _name(node: onnx.NodeProto, index: int) -> str:
    """A name that is unique whatever the model calls its nodes."""
    return f"{index}:{node.name.strip('/') or _kind(node.op_type)}"


def _kind(op: str) -> str:
    plain = {"Gemm": "matmul", "MatMul": "matmul", "ConvTranspose": "conv_transpose"}
    return plain.get(op, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", op).lower())
