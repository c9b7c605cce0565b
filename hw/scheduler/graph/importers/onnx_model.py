"""Graphs from ONNX models: shapes are inferred, parameter values need not be stored, reshapes disappear."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import onnx
import onnx.inliner
from google.protobuf.message import DecodeError

from hw.errors import InputError
from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind, stored_bytes
from hw.scheduler.graph.importers.onnx_operators import OPERATORS, VIEWS, Node, macs, same_axis
from hw.scheduler.graph.importers.onnx_products import PRODUCTS
from hw.scheduler.graph.importers.onnx_shapes import Learned
from hw.scheduler.graph.importers.onnx_standins import RUNTIME, STAND_INS, advice, full_name

#: Operators that only make constants, of nothing or from shapes.
_SHAPES = frozenset(("Constant", "Shape", "Size"))
#: Inputs that hold what earlier runs left behind.
_CACHE = re.compile(r"past|cache", re.IGNORECASE)
_FLOATS = set(map(onnx.TensorProto.DataType.Value, ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "UNDEFINED")))
#: Bits of elements of which several lie in a byte.
_NARROW = dict.fromkeys(map(onnx.TensorProto.DataType.Value, ("INT4", "UINT4", "FLOAT4E2M1")), 4)
#: Operands that are parameters even of whole numbers, which elsewhere are shapes and indices.
_INTEGERS = {("Gather", 0), ("GatherND", 0), ("com.microsoft.MatMulNBits", 1)}
#: Operators whose operands behind the first are scales and zero points.
_SCALED = ("QuantizeLinear", "DequantizeLinear")


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
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    if not model.graph.node:
        raise InputError("model", where, "an ONNX model with at least one operator")
    # Text that is no UTF-8 is handed over as bytes.
    graph = model.graph
    tensors = (*graph.initializer, *graph.input, *graph.output, *graph.value_info)
    texts = [graph.name, *(use.domain for use in model.opset_import), *(tensor.name for tensor in tensors)]
    texts += [each.dim_param for value in graph.input for each in value.type.tensor_type.shape.dim]
    for node in graph.node:
        texts += [node.name, node.op_type, node.domain, *node.input, *node.output]
        texts += [attribute.name for attribute in node.attribute]
    if not all(isinstance(text, str) for text in texts):
        raise InputError("model", where, "an ONNX model, and this is damaged: a name is no text")
    return model


def _refuse_unsupported(graph: onnx.GraphProto, where: str) -> None:
    """Name all operators that are not supported, but for those that only compute constants, a node of each
    and what to do about it.
    """
    constants = {tensor.name for tensor in graph.initializer}
    unknown: dict[str, str] = {}
    for node in graph.node:
        given, name = set(filter(None, node.input)), full_name(node)
        called = node.name or next(iter(node.output), "without a name")
        if name in _SHAPES or (given and constants >= given):
            constants.update(node.output)
        elif name not in {*OPERATORS, *PRODUCTS, *STAND_INS, *VIEWS}:
            unknown.setdefault(name, called)
        elif node.domain == RUNTIME and any(
            each.name in ("channels_last", "packed_weights") and each.i for each in node.attribute
        ):
            unknown.setdefault(f"{name} with channels last", called)
    if unknown:
        found = "; ".join(f"{name} (node {node}): {advice(name)}" for name, node in sorted(unknown.items()))
        legal = "supported ones, as docs/planner-graphs.md lists them"
        raise InputError("operators of the model", found, legal, where=where)


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
        name = full_name(node)
        stand_in = STAND_INS.get(name)
        # The plain operator's operands come first, then what else is read.
        operands = stand_in.positions(len(node.input)) if stand_in else tuple(range(len(node.input)))
        given = [node.input[position] for position in operands]
        read = [None if not each or each in known else self._base(each) for each in given]
        shapes = tuple(shape(each) if each else () for each in given)
        values = {position: known.get(each) for position, each in enumerate(given) if each}
        described = Node(
            op=stand_in.op if stand_in else name,
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
            outputs=len(outputs),
        )
        product = PRODUCTS.get(described.op)
        found = product.accesses(described) if product else OPERATORS[described.op](described)
        accesses: dict[str, Access | None] = {}
        for position, each in enumerate(read):
            if each:
                access = _stored_access(described, position, found.get(position))
                # An operand that is read in two ways is needed whole.
                accesses[each] = access if accesses.get(each, access) == access else None
        if stand_in is None or stand_in.reads_others:
            others = (each for each in node.input if each and each not in known)
            accesses |= {each: None for each in map(self._base, others) if each not in accesses}
        parameters = self._parameters(described, given, quantized=stand_in is not None)
        kind = _kind(described.op)
        return Operator(
            # Unique whatever the model calls its nodes.
            name=f"{index}:{node.name.strip('/') or kind}",
            kind=kind,
            inputs=(*accesses, *parameters) if weights else tuple(accesses),
            outputs=tuple(outputs),
            macs=product.macs(described) if product else macs(described),
            weight_bytes=0 if weights else sum(parameters.values()),
            accesses={name: access for name, access in accesses.items() if access},
        )

    def _parameters(self, described: Node, given: Sequence[str], *, quantized: bool) -> dict[str, int]:
        """Bytes of the parameters among the operands of a node, by name; scales and zero points are none."""
        known, types, found = self._learned.constants, self._learned.types, {}
        for position, name in enumerate(given):
            if name not in known or (position and described.op in _SCALED):
                continue
            element = self._learned.stored.get(name, types.get(name, onnx.TensorProto.FLOAT))
            whole = quantized or name in self._learned.stored or (described.op, position) in _INTEGERS
            if element not in _FLOATS and not whole:
                continue
            shape = described.shapes[position]
            if described.op in ("Gather", "GatherND") and position == 0:
                shape = described.output  # of a table, only the rows that are looked up
            elif described.op.endswith("RotaryEmbedding") and len(shape) == 2:
                shape = (min(shape[0], described.input[-2]), shape[1])
            found[name] = stored_bytes(shape, self._bits(element))
        return found

    def _bits(self, element: int) -> int:
        """Bits of an element: what floating-point numbers count, or those of the type."""
        if element in _FLOATS:
            return self._element_bits
        return _NARROW.get(element, onnx.helper.tensor_dtype_to_np_dtype(element).itemsize * 8)

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
            shape, bits = self._learned.shape(name), self._bits(self._learned.types[name])
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
