"""Graphs from ONNX models: shapes are inferred, parameter values need not be stored, reshapes disappear."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import onnx
from onnx import TensorProto

from hw.errors import InputError
from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind, stored_bytes
from hw.scheduler.graph.importers.onnx_file import read_model
from hw.scheduler.graph.importers.onnx_input_shapes import InputShapes
from hw.scheduler.graph.importers.onnx_learned import Learned
from hw.scheduler.graph.importers.onnx_operators import OPERATORS, VIEWS, Node, macs, same_axis
from hw.scheduler.graph.importers.onnx_products import PRODUCTS
from hw.scheduler.graph.importers.onnx_standins import STAND_INS, full_name

#: Names of inputs that hold results of earlier runs.
_CACHE = re.compile(r"past|cache", re.IGNORECASE)
_FLOATS = set(map(TensorProto.DataType.Value, ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE", "UNDEFINED")))
#: Bits of elements narrower than a byte, by the beginning of the type's name.
_NARROW = {
    number: bits
    for name, number in TensorProto.DataType.items()
    for start, bits in (("INT2", 2), ("UINT2", 2), ("INT4", 4), ("UINT4", 4), ("FLOAT4", 4), ("FLOAT6", 6))
    if name.startswith(start)
}
#: Integer operands that are parameters; elsewhere integers are shapes and indices.
_INTEGERS = {("Gather", 0), ("GatherND", 0), ("com.microsoft.MatMulNBits", 1)}
#: Operators whose operands behind the first are scales and zero points.
_SCALED = ("QuantizeLinear", "DequantizeLinear")
#: Most elements of a constant that is passed to an operator's access.
_SHORT = 4096


def import_onnx(
    source: Path | bytes,
    *,
    dimensions: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    element_bits: int = 8,
    weights: bool = False,
    name: str = "",
    made_by: str = "",
    say: Callable[[str], None] | None = None,
) -> Graph:
    """Convert an ONNX model into a graph; of parameters stored in other files only small ones are read.

    * ``dimensions``: values of the model's open dimensions, by name.
    * ``shapes``: whole shapes of the model's open inputs, by name; they take precedence over ``dimensions``.
    * ``element_bits``: of floating-point tensors, once quantized; whole numbers keep their type.
    * ``weights``: whether parameters become tensors of the graph instead of ``weight_bytes``.
    * ``name``, ``made_by``: as of `Graph`; the model's own name, or the file's, when empty.
    * ``say``: called with a line for each wrong shape of the model, which is computed again.

    Raises `InputError` for a file that is no ONNX model, unsupported operators (all in one error), operands
    that do not fit, dimensions without a value, a shape that cannot be known.
    """
    where = str(source) if isinstance(source, Path) else "model"
    folder = source.parent if isinstance(source, Path) else None
    model = read_model(source, where)
    title = name or (source.stem if isinstance(source, Path) else model.graph.name)
    given = InputShapes(
        dimensions=dimensions or {}, shapes={key: tuple(value) for key, value in (shapes or {}).items()}
    )
    say = say or (lambda line: None)
    learned = Learned(model, given, where, folder, say)
    reader = _GraphBuilder(model.graph, learned, element_bits, weights=weights)
    if reader.texts:
        say(f"{where}: output {reader.texts[0]!r} is text, whose bytes are not known: left out")
    if not reader.works:
        raise InputError("model", where, "one with an operator that is more than a view")
    return Graph(name=title, tensors=reader.tensors(), operators=tuple(reader.operators), made_by=made_by)


class _GraphBuilder:
    """Builds operators and tensors of the graph, without views and operators that no output depends on."""

    def __init__(self, model: onnx.GraphProto, learned: Learned, element_bits: int, *, weights: bool) -> None:
        self._model, self._learned, self._element_bits = model, learned, element_bits
        self._alias: dict[str, str] = {}
        #: Outputs of text.
        self.texts: list[str] = []
        #: Tensors written by added copies, and the model's outputs that they stand for.
        self._copies: dict[str, str] = {}
        nodes = []
        for node in learned.nodes:
            if learned.constants.keys() >= set(filter(None, node.output)):
                continue
            if full_name(node) in VIEWS:
                self._alias[node.output[0]] = self._base(node.input[0])
            elif not all(self._empty(name) for name in node.output if name):
                nodes.append(node)
        wanted = {self._base(value.name) for value in model.output}
        alive = []
        for node in reversed(nodes):
            if wanted.intersection(node.output):
                wanted.update(self._base(name) for name in _read(node) if name)
                alive.append(node)
        #: Whether there is an operator that is more than a view.
        self.works = bool(alive)
        self.operators = [
            self._operator(node, index, wanted, weights=weights) for index, node in enumerate(reversed(alive))
        ]
        self._copy_outputs()

    def _empty(self, name: str) -> bool:
        """Whether a tensor has no element and so is never read or written."""
        return 0 in self._learned.shapes.get(name, ())

    def _copy_outputs(self) -> None:
        """Write the outputs that no operator makes: inputs, parameters, views of either."""
        made = {name for operator in self.operators for name in operator.outputs}
        names = {value.name for value in self._model.input} | made
        copied: set[str] = set()
        for value in self._model.output:
            base = self._base(value.name)
            if base in made or base in copied or self._empty(base):
                continue
            if self._learned.types[base] == TensorProto.STRING:
                self.texts.append(value.name)
                continue
            copied.add(base)
            target = value.name
            while target in names:
                target += ":output"
            names.add(target)
            self._copies[target] = value.name
            constant = base in self._learned.constants
            stored = stored_bytes(self._learned.shape(base), self._bits(self._learned.types[base]))
            kind = "constant" if constant else "identity"
            self.operators.append(
                Operator(
                    name=f"{len(self.operators)}:{kind}",
                    kind=kind,
                    inputs=() if constant else (base,),
                    outputs=(target,),
                    weight_bytes=stored if constant else 0,
                    accesses={},
                )
            )

    def _base(self, name: str) -> str:
        return self._alias.get(name, name)

    def _operator(self, node: onnx.NodeProto, index: int, wanted: set[str], *, weights: bool) -> Operator:
        known, shape = self._learned.constants, self._learned.shape
        outputs = [name for name in node.output if name in wanted and not self._empty(name)]
        name = full_name(node)
        stand_in = STAND_INS.get(name)
        # The plain operator's operands come first, then others that are read.
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
                if value is not None and value.dtype.kind in "iuf" and value.size <= _SHORT
            },
            opset=self._learned.opsets.get(outputs[0], self._learned.opset),
            outputs=len(outputs),
        )
        product = PRODUCTS.get(described.op)
        found = product.accesses(described) if product else OPERATORS[described.op](described)
        accesses: dict[str, Access | None] = {}
        for position, each in enumerate(read):
            if each and not self._empty(each):
                access = _stored_access(described, position, found.get(position))
                # An operand that is read in two ways is needed whole.
                accesses[each] = access if accesses.get(each, access) == access else None
        others = (self._base(each) for each in _read(node) if each and each not in known)
        accesses |= {each: None for each in others if each not in accesses and not self._empty(each)}
        parameters = self._parameters(described, given, quantized=stand_in is not None)
        kind = _kind(described.op)
        return Operator(
            # Unique for all names of the model's nodes.
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
        known, types = self._learned.constants, self._learned.types
        found: dict[str, int] = {}
        for position, name in enumerate(given):
            if name not in known or self._empty(name) or (position and described.op in _SCALED):
                continue
            element = self._learned.stored.get(name, types.get(name, TensorProto.FLOAT))
            whole = quantized or name in self._learned.stored or (described.op, position) in _INTEGERS
            if element not in _FLOATS and not whole:
                continue
            shape = described.shapes[position]
            if described.op in ("Gather", "GatherND") and position == 0:
                shape = described.output  # only the looked-up rows of a table
            elif described.op.endswith("RotaryEmbedding") and len(shape) == 2:
                shape = (min(shape[0], described.input[-2]), shape[1])
            found[name] = stored_bytes(shape, self._bits(element))
        return found

    def _bits(self, element: int) -> int:
        """Bits of an element: ``element_bits`` for floating-point numbers, else those of the type."""
        if element in _FLOATS:
            return self._element_bits
        return _NARROW.get(element, onnx.helper.tensor_dtype_to_np_dtype(element).itemsize * 8)

    def tensors(self) -> tuple[Tensor, ...]:
        """Return the tensors of all operators, in the order of first use."""
        constants = self._learned.constants
        made = {name for operator in self.operators for name in operator.outputs}
        given = {value.name for value in self._model.input}
        results = {self._base(value.name) for value in self._model.output} | self._copies.keys()
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
            seen = self._copies.get(name, name)
            shape, bits = self._learned.shape(seen), self._bits(self._learned.types[seen])
            size = stored_bytes(shape, bits)
            tensors.append(Tensor(name=name, size_bytes=size, shape=shape, element_bits=bits, kind=kind))
        return tuple(tensors)


def _read(node: onnx.NodeProto) -> Sequence[str]:
    """Return the operands whose values an operator reads, not only their type."""
    stand_in = STAND_INS.get(full_name(node))
    if stand_in is None or stand_in.reads_others:
        return node.input
    return [node.input[position] for position in stand_in.positions(len(node.input))]


def _stored_access(node: Node, position: int, access: Access | None) -> Access | None:
    """Return an access in the dimensions of the stored tensor; None when its rows are different ones."""
    seen, stored = node.shapes[position], node.stored[position]
    if access is None or seen == stored:
        return access
    axis = same_axis(seen, access.axis, stored)
    return None if axis is None else replace(access, axis=axis)


def _kind(op: str) -> str:
    plain = {"Gemm": "matmul", "MatMul": "matmul", "ConvTranspose": "conv_transpose"}
    return plain.get(op, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", op).lower())
