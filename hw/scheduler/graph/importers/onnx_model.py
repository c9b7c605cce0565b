"""Graphs from ONNX models: shapes are inferred, parameter values need not be stored, reshapes disappear."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from hw.errors import InputError
from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind, stored_bytes
from hw.scheduler.graph.importers.onnx_operators import OPERATORS, VIEWS, Node, Shape, same_axis
from hw.scheduler.graph.importers.onnx_shapes import Learned

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
    learned = Learned(model=model, where=where)
    learned.learn()
    title = name or (source.stem if isinstance(source, Path) else model.graph.name)
    opset = next((use.version for use in model.opset_import if use.domain in ("", "ai.onnx")), 1)
    reader = _Reader(
        model=model.graph,
        where=where,
        learned=learned,
        opset=opset,
        element_bits=element_bits,
        weights=weights,
    )
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
        legal = "supported ones, as docs/planner-graphs.md lists them"
        raise InputError("operators of the model", ", ".join(sorted(unknown)), legal, where=where)


def _set_dimensions(model: onnx.ModelProto, values: dict[str, int]) -> None:
    """Put values in the place of named dimensions of the inputs."""
    known = {tensor.name for tensor in model.graph.initializer}
    named: set[str] = set()
    for value in model.graph.input:
        if value.name in known:
            continue
        if not value.type.tensor_type.HasField("shape"):
            raise InputError(f"shape of input {value.name!r}", "unknown", "in the model")
        for index, dimension in enumerate(value.type.tensor_type.shape.dim):
            label = dimension.dim_param
            if label:
                named.add(label)
            if label in values:
                dimension.dim_value = values[label]
            elif dimension.dim_value < 1:
                field_name = f"dimension {label or index} of input {value.name!r}"
                legal = f"given: --dim {label}=VALUE" if label else "given in the model, at least 1"
                raise InputError(field_name, dimension.dim_value or "open", legal)
    for label in values:
        if label not in named:
            legal = "one of " + ", ".join(sorted(named)) if named else "left out: the model leaves none open"
            raise InputError("dimension", label, legal)


@dataclass
class _Reader:
    """One model on its way to a graph."""

    model: onnx.GraphProto
    where: str
    learned: Learned
    opset: int
    element_bits: int
    weights: bool
    alias: dict[str, str] = field(default_factory=dict)

    def graph(self, name: str, made_by: str) -> Graph:
        """Read everything."""
        constants = self.learned.constants
        nodes = [node for node in self.model.node if not constants.keys() >= set(filter(None, node.output))]
        nodes = self._alive([node for node in nodes if not self._view(node)])
        operators = tuple(self._operator(node, index) for index, node in enumerate(nodes))
        if not operators:
            raise InputError("model", self.where, "one with an operator that is more than a view")
        return Graph(name=name, tensors=self._tensors(operators), operators=operators, made_by=made_by)

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
        known = self.learned.constants
        read = [None if not name or name in known else self._base(name) for name in node.input]
        shapes = tuple(self.learned.shape(name) if name else () for name in node.input)
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        constants = {
            position: value.reshape(-1).tolist()
            for position, name in enumerate(node.input)
            if name and (value := known.get(name)) is not None and value.dtype.kind in "iuf"
        }
        described = Node(
            op=node.op_type,
            inputs=tuple(read),
            shapes=shapes,
            outputs=tuple(self.learned.shape(name) for name in outputs),
            attributes=attributes,
            constants=constants,
            stored=tuple(
                self.learned.shape(name) if name else shape for name, shape in zip(read, shapes, strict=True)
            ),
            opset=self.opset,
        )
        cost = OPERATORS[node.op_type](described)
        accesses: dict[str, Access | None] = {}
        for position, name in enumerate(read):
            if name:
                access = cost.accesses.get(position)
                mapped = access and self._through_view(access, shapes[position], self.learned.shape(name))
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
            known = name and name in self.learned.constants
            if not known or self.learned.types.get(name, onnx.TensorProto.FLOAT) not in _FLOATS:
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

    def _bits(self, name: str) -> int:
        kind = self.learned.types.get(name, onnx.TensorProto.FLOAT)
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
                if name not in self.learned.constants and name not in given:
                    raise InputError(f"tensor {name!r}", "made by no operator", "made by one, or an input")
                kind = TensorKind.CACHE if _CACHE.search(name) else TensorKind.INPUT
                kind = TensorKind.WEIGHT if name in self.learned.constants else kind
            shape, bits = self.learned.shape(name), self._bits(name)
            tensors.append(
                Tensor(
                    name=name, size_bytes=stored_bytes(shape, bits), shape=shape, element_bits=bits, kind=kind
                )
            )
        return tuple(tensors)


def _name(node: onnx.NodeProto, index: int) -> str:
    """A name that is unique whatever the model calls its nodes."""
    return f"{index}:{node.name.strip('/') or _kind(node.op_type)}"


def _kind(op: str) -> str:
    plain = {"Gemm": "matmul", "MatMul": "matmul", "ConvTranspose": "conv_transpose"}
    return plain.get(op, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", op).lower())
