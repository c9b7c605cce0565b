"""Graphs from ONNX models: shapes are inferred, parameter values need not be stored, reshapes disappear."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from hw.errors import InputError
from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind, stored_bytes
from hw.scheduler.graph.importers.onnx_operators import OPERATORS, VIEWS, Node, macs, same_axis
from hw.scheduler.graph.importers.onnx_shapes import Learned

#: Operators that only make constants, of nothing or from shapes.
_SHAPES = frozenset(("Constant", "Shape", "Size"))
#: Inputs that hold what earlier runs left behind.
_CACHE = re.compile(r"past|cache", re.IGNORECASE)
_FLOATS = set(map(onnx.TensorProto.DataType.Value, ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "UNDEFINED")))


def import_onnx(
    source: Path | bytes,
    *,
    dimensions: Mapping[str, int] | None = None,
    element_bits: int = 8,
    weights: bool = False,
    name: str = "",
    made_by: str = "",
) -> Graph:
    """Turn an ONNX model into a graph; parameters stored in other files are not read.

    Parameters
    ----------
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
    _set_dimensions(model, dimensions or {})
    title = name or (source.stem if isinstance(source, Path) else model.graph.name)
    reader = _Reader(model.graph, Learned(model, where), element_bits, weights=weights)
    if not reader.operators:
        raise InputError("model", where, "one with an operator that is more than a view")
    return Graph(name=title, tensors=reader.tensors(), operators=tuple(reader.operators), made_by=made_by)


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
    # Text that is no UTF-8 is handed over as bytes.
    texts = [
        text for each in model.graph.node for text in (each.name, each.op_type, *each.input, *each.output)
    ]
    if not all(isinstance(text, str) for text in (model.graph.name, *texts)):
        raise InputError("model", where, "an ONNX model, and this is damaged: a name is no text")
    return model


def _refuse_unsupported(graph: onnx.GraphProto, where: str) -> None:
    """Name all operators that are not supported, but for those that only compute constants."""
    constants = {tensor.name for tensor in graph.initializer}
    unknown = set()
    for node in graph.node:
        given = set(filter(None, node.input))
        plain = node.domain in ("", "ai.onnx")
        if (plain and node.op_type in _SHAPES) or (given and constants >= given):
            constants.update(node.output)
        elif not plain or node.op_type not in {*OPERATORS, *VIEWS}:
            unknown.add(f"{node.domain}.{node.op_type}".lstrip("."))
    if unknown:
        legal = "supported ones, as docs/planner-graphs.md lists them"
        raise InputError("operators of the model", ", ".join(sorted(unknown)), legal, where=where)


def _set_dimensions(model: onnx.ModelProto, values: Mapping[str, int]) -> None:
    """Put values in the place of named dimensions of the inputs."""
    parameters = {tensor.name for tensor in model.graph.initializer}
    named: set[str] = set()
    for value in model.graph.input:
        if value.name in parameters:
            continue
        if not value.type.tensor_type.HasField("shape"):
            raise InputError(f"shape of input {value.name!r}", "unknown", "in the model")
        for index, dimension in enumerate(value.type.tensor_type.shape.dim):
            label = dimension.dim_param
            named.update(filter(None, [label]))
            if label in values:
                dimension.dim_value = values[label]
            elif dimension.dim_value < 1:
                legal = f"given: --dim {label}=VALUE" if label else "given in the model, at least 1"
                field = f"dimension {label or index} of input {value.name!r}"
                raise InputError(field, dimension.dim_value or "open", legal)
    if strange := [label for label in values if label not in named]:
        legal = "one of " + ", ".join(sorted(named)) if named else "left out: the model leaves none open"
        raise InputError("dimension", strange[0], legal)


class _Reader:
    """What becomes of a model's operators and tensors; views and what no output depends on are left out."""

    def __init__(self, model: onnx.GraphProto, learned: Learned, element_bits: int, *, weights: bool) -> None:
        self._model, self._learned, self._element_bits = model, learned, element_bits
        self._alias: dict[str, str] = {}
        nodes = []
        for node in model.node:
            if learned.constants.keys() >= set(filter(None, node.output)):
                continue
            if node.op_type in VIEWS:
                self._alias[node.output[0]] = self._base(node.input[0])
            else:
                nodes.append(node)
        wanted = {self._base(value.name) for value in model.output}
        alive = []
        for node in reversed(nodes):
            if wanted.intersection(node.output):
                wanted.update(self._base(name) for name in node.input if name)
                alive.append(node)
        self.operators = [
            self._operator(node, index, wanted, weights=weights) for index, node in enumerate(reversed(alive))
        ]

    def _base(self, name: str) -> str:
        return self._alias.get(name, name)

    def _operator(self, node: onnx.NodeProto, index: int, wanted: set[str], *, weights: bool) -> Operator:
        known, shape = self._learned.constants, self._learned.shape
        outputs = [name for name in node.output if name in wanted]
        read = [None if not name or name in known else self._base(name) for name in node.input]
        shapes = tuple(shape(name) if name else () for name in node.input)
        values = {position: known.get(name) for position, name in enumerate(node.input) if name}
        described = Node(
            op=node.op_type,
            inputs=tuple(read),
            shapes=shapes,
            stored=tuple(shape(name) if name else seen for name, seen in zip(read, shapes, strict=True)),
            output=shape(outputs[0]),
            attributes={each.name: onnx.helper.get_attribute_value(each) for each in node.attribute},
            constants={
                position: value.reshape(-1).tolist()
                for position, value in values.items()
                if value is not None and value.dtype.kind in "iuf"
            },
            opset=self._learned.opset,
        )
        found = OPERATORS[node.op_type](described)
        accesses: dict[str, Access | None] = {}
        for position, name in enumerate(read):
            if name:
                access = _stored_access(described, position, found.get(position))
                # An operand that is read in two ways is needed whole.
                accesses[name] = access if accesses.get(name, access) == access else None
        parameters = self._parameters(described, node)
        kind = _kind(node.op_type)
        return Operator(
            # Unique whatever the model calls its nodes.
            name=f"{index}:{node.name.strip('/') or kind}",
            kind=kind,
            inputs=(*accesses, *parameters) if weights else tuple(accesses),
            outputs=tuple(outputs),
            macs=macs(described),
            weight_bytes=0 if weights else sum(parameters.values()),
            accesses={name: access for name, access in accesses.items() if access},
        )

    def _parameters(self, described: Node, node: onnx.NodeProto) -> dict[str, int]:
        """Bytes of the floating-point parameters a node reads, by name."""
        found = {}
        for position, name in enumerate(node.input):
            if name in self._learned.constants and self._learned.types.get(name, 1) in _FLOATS:
                # Of a table, only the rows that are looked up.
                lookup = node.op_type == "Gather" and position == 0
                shape = described.output if lookup else described.shapes[position]
                found[name] = stored_bytes(shape, self._element_bits)
        return found

    def tensors(self) -> tuple[Tensor, ...]:
        """Give what the operators read and write, in the order of its first use."""
        constants = self._learned.constants
        made = {name for operator in self.operators for name in operator.outputs}
        given = {value.name for value in self._model.input}
        results = {self._base(value.name) for value in self._model.output}
        names = [name for operator in self.operators for name in (*operator.inputs, *operator.outputs)]
        tensors = []
        for name in dict.fromkeys(names):
            if name in made:
                kind = TensorKind.OUTPUT if name in results else TensorKind.ACTIVATION
            elif name in constants:
                kind = TensorKind.WEIGHT
            elif name in given:
                kind = TensorKind.CACHE if _CACHE.search(name) else TensorKind.INPUT
            else:
                raise InputError(f"tensor {name!r}", "made by no operator", "made by one, or an input")
            shape, bits, element = self._learned.shape(name), self._element_bits, self._learned.types[name]
            if element not in _FLOATS:
                bits = max(8, onnx.helper.tensor_dtype_to_np_dtype(element).itemsize * 8)
            size = stored_bytes(shape, bits)
            tensors.append(Tensor(name=name, size_bytes=size, shape=shape, element_bits=bits, kind=kind))
        return tuple(tensors)


def _stored_access(node: Node, position: int, access: Access | None) -> Access | None:
    """Give an access in the dimensions of the stored tensor; None when its rows are other rows."""
    seen, stored = node.shapes[position], node.stored[position]
    if access is None or seen == stored:
        return access
    axis = same_axis(seen, access.axis, stored)
    return None if axis is None else replace(access, axis=axis)


def _kind(op: str) -> str:
    plain = {"Gemm": "matmul", "MatMul": "matmul", "ConvTranspose": "conv_transpose"}
    return plain.get(op, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", op).lower())
