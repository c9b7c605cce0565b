"""Reads a quantized ONNX model, QDQ or QOperator, with its weights.

Both forms become the same operators: a QLinear operator is read as DequantizeLinear, the plain operator and
QuantizeLinear.  A plain operator on real numbers waits as `refs.Pending` for its QuantizeLinear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from hw.errors import InputError
from hw.network.graph.instead import advice
from hw.network.graph.network import KINDS, Convolution, ModelTensor, Network, Operator, Table, Value
from hw.network.graph.plain import COMPUTED_BIAS, PLAIN, Call, bounds, check_sums
from hw.network.graph.refs import (
    NCHW,
    VECTOR,
    Array,
    Constant,
    Pending,
    Real,
    Stored,
    quantize,
    stored_type,
    whole_scale,
)
from hw.network.graph.transformer.reader import reads_tokens
from hw.network.graph.unary import UNARY
from hw.network.graph.views import UnsupportedError, attributes_of, hwc, order_of_input, view
from hw.scheduler.graph.importers.onnx_file import read_model
from hw.scheduler.graph.importers.onnx_input_shapes import InputShapes
from hw.scheduler.graph.importers.onnx_learned import Learned

_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Transpose")
#: Operators that keep integers as they are stored.
_KEEPING = ("MaxPool", *_VIEWS)
#: By QLinear operator: the plain operator, and positions of operands.  They are those of the operands with
#: scale and zero point, of the result's scale, and of an operand without a scale.
_QLINEAR: Mapping[str, tuple[str, tuple[int, ...], int, int | None]] = {
    "QLinearConv": ("Conv", (0, 3), 6, 8),
    "QLinearMatMul": ("MatMul", (0, 3), 6, None),
    "QGemm": ("Gemm", (0, 3), 7, 6),
    "QLinearAdd": ("Add", (0, 3), 6, None),
    "QLinearMul": ("Mul", (0, 3), 6, None),
    "QLinearAveragePool": ("AveragePool", (0,), 3, None),
    "QLinearGlobalAveragePool": ("GlobalAveragePool", (0,), 3, None),
    "QLinearLeakyRelu": ("LeakyRelu", (0,), 3, None),
    "QLinearSigmoid": ("Sigmoid", (0,), 3, None),
    "QLinearSoftmax": ("Softmax", (0,), 3, None),
}
#: Operators that this module reads, at least with some attributes.
_KNOWN = {*_QLINEAR, *_KEEPING, *PLAIN, *UNARY, "QLinearConcat", "QuantizeLinear", "DequantizeLinear"}
Ref = Stored | Real | Constant | Pending


def read_network(
    source: Path | bytes,
    *,
    dimensions: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    name: str = "",
) -> Network:
    """Read a quantized model of one image a run.

    ``dimensions``, ``shapes``: values of open dimensions and whole shapes of inputs, as for `import_onnx`; an
    open first dimension is the batch, 1.

    Raises `InputError` for a file that is no ONNX model, and for scales and zero points of another form.
    Operators that are not quantized or not supported are all in one error.
    """
    where = str(source) if isinstance(source, Path) else "model"
    model = read_model(source, where)
    if reads_tokens(model):
        raise InputError("model", where, "one on images or vectors, and its input are numbers of tokens")
    title = name or (source.stem if isinstance(source, Path) else model.graph.name)
    given = InputShapes(
        dimensions={**_batches(model.graph), **(dimensions or {})},
        shapes={key: tuple(value) for key, value in (shapes or {}).items()},
    )
    folder = source.parent if isinstance(source, Path) else None
    learned = Learned(model, given, where, folder, lambda line: None)
    reader = _Reader(model.graph, learned, where)
    return reader.network(title)


def _unknown(kind: str) -> str:
    return f"there is no such operator on integers{advice(kind)}"


def _batches(graph: onnx.GraphProto) -> dict[str, int]:
    """Return 1 for the open first dimension of each input."""
    found = {}
    for value in graph.input:
        dimensions = value.type.tensor_type.shape.dim
        if dimensions and dimensions[0].dim_param:
            found[dimensions[0].dim_param] = 1
    return found


class _Reader:
    """Reads nodes in order, and keeps a `Ref` for each tensor."""

    def __init__(self, graph: onnx.GraphProto, learned: Learned, where: str) -> None:
        self._graph, self._learned, self._where = graph, learned, where
        self._refs: dict[str, Ref] = {}
        self._values: dict[str, Value] = {}
        self._constants: dict[str, Array] = {}
        self._operators: list[Operator] = []
        self._inputs: list[ModelTensor] = []
        self._refused: dict[str, str] = {}
        self._lost: set[str] = set()
        #: Inputs of the model and their views, by name: the input's own order of dimensions.
        self._floats = {value.name: NCHW for value in graph.input if value.name not in learned.constants}
        #: The model's input behind each of them.
        self._roots = {name: name for name in self._floats}
        for name in self._floats:
            self._floats[name] = order_of_input(name, len(learned.shapes.get(name) or ()), learned.nodes)
        for node in learned.nodes:
            if self._lost.intersection(node.input):
                self._lost.update(node.output)
                if node.op_type not in _KNOWN and not self._is_constant(node):
                    self._refused[node.name or node.output[0]] = f"{node.op_type}: {_unknown(node.op_type)}"
                continue
            try:
                self._read(node)
            except UnsupportedError as error:
                self._refused[node.name or node.output[0]] = f"{node.op_type}: {error}"
                self._lost.update(node.output)

    def network(self, name: str) -> Network:
        """Return the network of the operators that its outputs depend on."""
        outputs, unmade = [], ""
        for value in self._graph.output:
            ref = self._refs.get(value.name)
            if isinstance(ref, Pending):
                self._refused[ref.node] = "its result is not quantized"
            elif isinstance(ref, (Stored, Real)):
                outputs.append(self._model_tensor(value.name, ref))
            elif value.name not in self._lost:
                unmade = value.name
        if self._refused:
            found = "; ".join(f"{node} ({why})" for node, why in self._refused.items())
            legal = "quantized and supported, as docs/networks.md lists them"
            raise InputError("operators", found, legal, where=self._where)
        if unmade:
            legal = "quantized, and this is a constant or an input of real numbers"
            raise InputError("output of the model", unmade, legal, where=self._where)
        wanted, kept = {each.value for each in outputs}, []
        for operator in reversed(self._operators):
            if operator.output in wanted:
                wanted.update(operator.inputs)
                kept.append(operator)
        return Network(
            name=name,
            values={key: value for key, value in self._values.items() if key in wanted},
            operators=tuple(reversed(kept)),
            inputs=tuple(each.value for each in self._inputs if each.value in wanted),
            outputs=tuple(each.value for each in outputs),
            constants={key: array for key, array in self._constants.items() if key in wanted},
            model_inputs=tuple(each for each in self._inputs if each.value in wanted),
            model_outputs=tuple(outputs),
        )

    def _model_tensor(self, name: str, ref: Stored | Real) -> ModelTensor:
        shape = tuple(self._learned.shapes[name])
        return ModelTensor(
            name=name, value=ref.value, shape=shape, order=ref.order, real=isinstance(ref, Real)
        )

    def _is_constant(self, node: onnx.NodeProto) -> bool:
        return all(name in self._learned.constants for name in node.output if name)

    def _read(self, node: onnx.NodeProto) -> None:
        kind, output = node.op_type, node.output[0]
        if kind == "DequantizeLinear":
            self._refs[output] = self._real(*(*node.input, "")[:3], axis=attributes_of(node).get("axis", 1))
        elif kind == "QuantizeLinear":
            self._quantize(node.input[0], output, node.input[1:3])
        elif kind in _QLINEAR:
            plain, firsts, result, bare = _QLINEAR[kind]
            # Of the scales of weights, those of columns lie along this dimension.
            axis = 0 if plain == "Conv" or attributes_of(node).get("transB", 0) else -1
            operands: list[Ref | Array | None] = [
                self._real(*node.input[first : first + 3], axis=axis) for first in firsts
            ]
            if bare is not None and len(node.input) > bare and node.input[bare]:
                if node.input[bare] not in self._learned.constants:
                    raise UnsupportedError(COMPUTED_BIAS)
                operands.append(self._learned.constants[node.input[bare]])
            self._refs[output] = self._plain(plain, node, operands)
            self._quantize(output, output, node.input[result : result + 2])
        elif kind == "QLinearConcat":
            triples = range(2, len(node.input), 3)
            self._refs[output] = self._plain(
                "Concat", node, [self._real(*node.input[first : first + 3], axis=-1) for first in triples]
            )
            self._quantize(output, output, node.input[:2])
        elif self._is_constant(node):
            return
        elif node.input[0] in self._floats:
            if kind not in _VIEWS:
                raise UnsupportedError("it reads an input of the model that is not quantized")
            shapes = self._learned.shapes
            moved = view(node, self._floats[node.input[0]], shapes[node.input[0]], shapes[output])
            self._floats[output] = moved
            self._roots[output] = self._roots[node.input[0]]
        else:
            self._on_numbers(node, kind, output)

    def _on_numbers(self, node: onnx.NodeProto, kind: str, output: str) -> None:
        """Read an operator on integers that it keeps, or on real numbers."""
        first = self._refs.get(node.input[0])
        shapes = self._learned.shapes
        if kind in _VIEWS and isinstance(first, (Stored, Real, Pending)):
            order = view(node, first.order, shapes[node.input[0]], shapes[output])
            self._refs[output] = replace(first, order=order)
        elif kind in _VIEWS and isinstance(first, Constant):
            raise UnsupportedError("a view of a dequantized constant")
        elif isinstance(first, Stored) and kind in _KEEPING:
            kept = self._plain(kind, node, [Real(value=first.value, order=first.order)])
            self._close(kept, output, self._values[first.value])
        elif isinstance(first, Pending) and kind in ("Relu", "Clip"):
            ends = bounds(node, self._learned.constants)
            low, high = (float(np.clip(each, *ends)) for each in (first.low, first.high))
            self._refs[output] = replace(first, low=low, high=high)
        else:
            for name in node.input:
                if name in self._floats and name not in self._refs:
                    raise UnsupportedError(
                        f"its operand {name} is an input of the model that is not quantized"
                    )
            operands = [self._refs.get(name, self._learned.constants.get(name)) for name in node.input]
            self._refs[output] = self._plain(kind, node, operands)

    def _plain(self, kind: str, node: onnx.NodeProto, operands: Sequence[Ref | Array | None]) -> Pending:
        if kind not in PLAIN and kind not in UNARY:
            raise UnsupportedError(_unknown(kind))
        kept: list[Real | Constant | Array | None] = []
        for operand in operands:
            if isinstance(operand, (Stored, Pending)):
                raise UnsupportedError("an operand is not quantized")
            kept.append(operand)
        call = Call(
            node=node,
            operands=kept,
            values=self._values,
            constants=self._learned.constants,
            output=self._learned.shapes[node.output[0]],
            opset=self._opset(node),
            constant=self._constant_value,
        )
        return (PLAIN.get(kind) or UNARY[kind])(call)

    def _opset(self, node: onnx.NodeProto) -> int:
        """Return the version of the operator set whose rule a node follows."""
        stated = attributes_of(node).get("opset")  # of QLinearSoftmax
        return int(stated or self._learned.opsets.get(node.output[0], self._learned.opset))

    def _scale(self, tensor: str, names: Sequence[str]) -> tuple[Array, Array]:
        """Return scales and zero points of a tensor by their names; without the second, zeros of its type."""
        if not names or not names[0]:
            raise UnsupportedError("its result has no scale")
        for name in names:
            if name and name not in self._learned.constants:
                raise UnsupportedError(f"scale or zero point {name} is no constant")
        found = [np.asarray(self._learned.constants[name]) for name in names if name]
        if len(found) == 1:
            found.append(np.zeros(1, helper.tensor_dtype_to_np_dtype(self._learned.types[tensor])))
        return found[0], found[1]

    def _real(self, name: str, *names: str, axis: int) -> Real | Constant:
        """Return the real numbers behind a tensor of integers, by the names of its scale and zero point."""
        scales, zeros = self._scale(name, names)
        if name in self._learned.constants:
            stored = np.asarray(self._learned.constants[name])
            return Constant(stored=stored, scales=scales, zeros=zeros, axis=axis % max(1, stored.ndim))
        factor, point = whole_scale(scales, zeros, name)
        if name in self._floats and name not in self._refs:  # an input of integers
            whole = Stored(value=name, order=self._floats[name])
            self._add_input(name, whole, factor, point, unsigned=stored_type(zeros, name))
        ref = self._refs.get(name)
        if not isinstance(ref, Stored):
            raise UnsupportedError(f"{name} is not quantized")
        value = self._values[ref.value]
        if factor != value.scale or point - 128 * value.unsigned != value.zero:
            raise UnsupportedError(f"{name} is read with another scale than it was written with")
        return Real(value=ref.value, order=ref.order)

    def _quantize(self, source: str, output: str, names: Sequence[str]) -> None:
        """Store real numbers as a value, with the scale and zero point of these names."""
        if source in self._learned.constants and source not in self._refs:
            return
        scales, zeros = self._scale(output, names)
        factor, point = whole_scale(scales, zeros, output)
        unsigned = stored_type(zeros, output)
        if source in self._floats:
            real = Real(value=output, order=self._floats[source])
            self._add_input(source, real, factor, point, unsigned=unsigned)
            return
        ref = self._refs[source]
        if isinstance(ref, Real):
            before = self._values[ref.value]
            same = (before.scale, before.zero) == (factor, point - 128 * unsigned)
            if same and before.unsigned == unsigned:
                self._refs[output] = Stored(value=ref.value, order=ref.order)
                return
            ref = Pending(
                kind=Table.kind,
                node=output,
                inputs=(ref.value,),
                order=ref.order,
                shape=before.shape,
                fields={"function": "Requantize", "real": lambda real: real},
            )
        if not isinstance(ref, Pending):
            raise UnsupportedError("it quantizes a tensor that is already quantized")
        value = Value(
            name=output, shape=ref.shape, scale=float(factor), zero=point - 128 * unsigned, unsigned=unsigned
        )
        self._close(ref, output, value)

    def _add_input(
        self, source: str, ref: Stored | Real, scale: np.float32, zero: int, *, unsigned: bool
    ) -> None:
        """Add a value for an input of the model, or a view of one: real numbers, or integers."""
        name = ref.value
        root = self._roots[source]
        order = self._floats[root]
        if ref.order == order[1:]:  # the image flattened as it is: a vector from the first element on
            ref = replace(ref, order=VECTOR)
            order = VECTOR
        self._values[name] = Value(
            name=name,
            shape=hwc(self._learned.shapes[source], ref.order),
            scale=float(scale),
            zero=zero - 128 * unsigned,
            unsigned=unsigned,
        )
        self._inputs.append(replace(self._model_tensor(root, ref), order=order))
        self._refs[name] = Stored(value=name, order=ref.order)

    def _close(self, ref: Pending, output: str, quantization: Value) -> None:
        """Add the operator that waits; its results are stored as ``output``."""
        value = replace(quantization, name=output, shape=ref.shape)
        fields, low, high = dict(ref.fields), *map(int, quantize(np.array([ref.low, ref.high]), value))
        if ref.kind == Table.kind:
            fields["results"] = self._table(fields.pop("real"), self._values[ref.inputs[0]], value)
        self._values[output] = value
        inputs = ref.inputs
        if ref.kind == "concat":
            inputs = tuple(self._requantized(name, value, output, low, high) for name in inputs)
            low, high = -128, 127
        elif ref.kind == "max_pool":
            inputs = tuple(self._requantized(name, value, output) for name in inputs)
        made = KINDS[ref.kind](name=ref.node, inputs=inputs, output=output, low=low, high=high, **fields)
        if isinstance(made, Convolution):
            check_sums(made, self._values[inputs[0]], value)
        self._operators.append(made)
        self._refs[output] = Stored(value=output, order=ref.order)

    def _requantized(self, name: str, like: Value, output: str, low: int = -128, high: int = 127) -> str:
        """Return a value's name, or that of its copy with the scale of another, clamped."""
        value = self._values[name]
        if (value.scale, value.zero, low, high) == (like.scale, like.zero, -128, 127):
            return name
        made = f"{name}:{output}"
        if made not in self._values:
            copied = self._values[made] = replace(like, name=made, shape=value.shape)
            table = self._table(lambda real: real, value, copied)
            ends = Table(name=made, inputs=(name,), output=made, function="Requantize", results=table)
            self._operators.append(replace(ends, low=low, high=high))
        return made

    def _table(self, real: Callable[[Array], Array], before: Value, after: Value) -> Array:
        """Return the results of a function for all 256 stored values."""
        stored = np.arange(-128, 128)
        numbers = (stored - before.zero).astype(np.float32) * np.float32(before.scale)
        # A result beyond float32 is clamped like any other.
        with np.errstate(over="ignore"):
            return quantize(real(numbers), after)

    def _constant_value(self, constant: Constant, shape: tuple[int, int, int]) -> str:
        """Return the name of a value that holds a constant operand of an element-wise operator."""
        scale, point = whole_scale(constant.scales, constant.zeros, "a constant operand")
        unsigned = constant.stored.dtype == np.uint8
        name = f"constant:{len(self._constants)}"
        self._values[name] = Value(
            name=name, shape=shape, scale=float(scale), zero=point - 128 * unsigned, unsigned=unsigned
        )
        stored = constant.stored.astype(np.int64) - 128 * unsigned
        self._constants[name] = np.broadcast_to(stored.reshape(-1), shape).astype(np.int8)
        return name
