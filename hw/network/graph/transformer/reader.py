"""Reads the ONNX graph of a transformer on tokens: float, with int8 weights, or quantized.

Masks are those of whole sentences: every token is seen.  Constants are computed, and each further operator is
a rule's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from hw.errors import InputError
from hw.network.graph.instead import advice
from hw.network.graph.refs import Array, Constant
from hw.network.graph.transformer import dynamic, elementwise, heads
from hw.network.graph.transformer.blocks import Blocks, First, Lookup, Parameters, Quantization, real
from hw.network.graph.transformer.context import Context, vector
from hw.network.graph.transformer.contrib import expand
from hw.network.graph.transformer.refs import Flags, Ids, Integers, Normal, Ref, Stored, Tokens
from hw.network.graph.views import UnsupportedError
from hw.scheduler.graph.importers.onnx_file import read_model
from hw.scheduler.graph.importers.onnx_input_shapes import InputShapes
from hw.scheduler.graph.importers.onnx_learned import Learned

_INTEGERS = (TensorProto.INT64, TensorProto.INT32)
#: Operators whose result has the elements of their operand.
_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout", "Cast", "Transpose", "Expand")
#: What the further inputs of a model are, by a part of their names: values for so many tokens.
_FURTHER: dict[str, Callable[[int], Array]] = {
    "mask": lambda tokens: np.ones((1, tokens)),
    "type": lambda tokens: np.zeros((1, tokens)),
    "segment": lambda tokens: np.zeros((1, tokens)),
    "position": lambda tokens: np.arange(tokens)[np.newaxis],
}
#: Fewest tokens with which a mask shows whether it hides later ones.
_LEAST_TOKENS = 2


def reads_tokens(model: onnx.ModelProto) -> bool:
    """Return whether a model's input are numbers of tokens, not images or vectors."""
    return any(each.type.tensor_type.elem_type in _INTEGERS for each in _inputs(model.graph))


def takes_tokens(source: Path) -> bool:
    """Return the same of a model's file; `InputError` for one that is no ONNX model."""
    return reads_tokens(read_model(source, str(source)))


def read_blocks(source: Path | bytes, *, tokens: int, outputs: Sequence[str] = (), name: str = "") -> Blocks:
    """Read a model of one sentence a run, for up to ``tokens`` tokens.

    ``outputs``: the outputs to keep; all without it.

    Raises `InputError` for a file that is no ONNX model, and for inputs and operators that have no
    counterpart.  All such operators are in one error, by their nodes.
    """
    where = str(source) if isinstance(source, Path) else "model"
    model = read_model(source, where)
    if isinstance(source, Path):
        onnx.load_external_data_for_model(model, str(source.parent))
    expand(model)
    length = max(tokens, _LEAST_TOKENS)
    ids = _bind(model.graph, length, where)
    _keep(model.graph, outputs, where)
    given = InputShapes(dimensions={}, shapes={ids: (1, length)})
    try:
        learned = Learned(model, given, where, None, lambda line: None)
    except InputError as error:
        if not error.field.startswith("shape of operand"):
            raise
        legal = f"as many as the model has rows for ({error})"
        raise InputError("tokens of a sentence", length, legal, where=where) from error
    context = Context(model.graph, learned, length)
    context.refs[ids] = Ids()
    _walk(context, where)
    try:
        found = {each.name: context.value(each.name) for each in model.graph.output}
    except UnsupportedError as error:
        legal = "a tensor of tokens, their mean or the first of them"
        raise InputError("output of the model", str(error), legal) from error
    title = name or (source.stem if isinstance(source, Path) else model.graph.name)
    return Blocks(
        name=title,
        ids=ids,
        blocks=tuple(context.blocks),
        channels=context.channels,
        outputs=found,
        quantizations=context.quantizations,
    )


def _inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    parameters = {each.name for each in graph.initializer}
    return [each for each in graph.input if each.name not in parameters]


def _bind(graph: onnx.GraphProto, tokens: int, where: str) -> str:
    """Make inputs constants but for the numbers of tokens, and return the name of these."""
    left = []
    for value in _inputs(graph):
        kind = next((key for key in _FURTHER if key in value.name), None)
        if kind is None:
            left.append(value)
            continue
        element = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        array = _FURTHER[kind](tokens).astype(element)
        graph.initializer.append(numpy_helper.from_array(array, value.name))
        graph.input.remove(value)
    if len(left) != 1 or left[0].type.tensor_type.elem_type not in _INTEGERS:
        legal = f"one of numbers of tokens, and others by name: {', '.join(_FURTHER)}"
        raise InputError("inputs of the model", [each.name for each in left], legal, where=where)
    return str(left[0].name)


def _keep(graph: onnx.GraphProto, outputs: Sequence[str], where: str) -> None:
    """Leave out outputs that are not to be kept."""
    known = [each.name for each in graph.output]
    for name in outputs:
        if name not in known:
            raise InputError("output", name, f"one of {', '.join(known)}", where=where)
    kept = [each for each in graph.output if each.name in (outputs or known)]
    del graph.output[:]
    graph.output.extend(kept)


def _walk(context: Context, where: str) -> None:
    """Read all operators that depend on the tokens."""
    refused: dict[str, str] = {}
    lost: set[str] = set()
    for node in context.learned.nodes:
        if all(context.is_constant(name) for name in node.output if name):
            continue
        if lost.intersection(node.input):
            lost.update(node.output)
            continue
        try:
            _read(context, node)
        except UnsupportedError as error:
            refused[node.name or node.output[0]] = f"{node.op_type}: {error}"
            lost.update(node.output)
    if refused:
        found = "; ".join(f"{node} ({why})" for node, why in refused.items())
        legal = "those of transformers, as docs/transformers.md lists them"
        raise InputError("operators", found, legal, where=where)


def _read(context: Context, node: onnx.NodeProto) -> None:
    op = node.op_type
    made: Ref | Sequence[Ref] | None
    if op in _VIEWS or (op == "Concat" and len(node.input) == 1):
        made = _view(context, node)
        if made is None:
            source = node.input[0]
            context.roots[node.output[0]] = context.roots.get(source, source)
            return
    elif op in _RULES:
        made = _RULES[op](context, node)
    elif op in elementwise.UNARY:
        made = elementwise.unary(context, node)
    else:
        raise UnsupportedError(f"it has no rule{advice(op)}")
    for name, ref in zip(node.output, made if isinstance(made, list) else [made], strict=False):
        context.refs[name] = ref


def _view(context: Context, node: onnx.NodeProto) -> Ref | None:
    ref = context.ref(node.input[0])
    same = node.op_type in ("Identity", "Dropout", "Cast", "Concat")
    if isinstance(ref, (Ids, Flags)) or same:
        return None
    return heads.view(context, node)


def _gather(context: Context, node: onnx.NodeProto) -> Ref:
    table, ids = node.input
    if context.is_constant(ids) and not context.is_constant(table):
        chosen = context.constant(ids).reshape(-1).tolist()
        return _first(context, node, int(context.attributes(node).get("axis", 0)), chosen == [0])
    if not context.is_constant(table) or not isinstance(context.ref(ids), Ids):
        raise UnsupportedError("of anything but rows of a table by the numbers of tokens")
    ids = context.roots.get(ids, ids)
    shape = context.shape(table)
    if context.attributes(node).get("axis", 0) != 0 or len(shape) != 2:
        raise UnsupportedError(f"of a table of shape {shape}: rows of 2 dimensions")
    if context.constant(table).dtype.kind in "iu":
        return Integers(ids=ids, table=context.constant(table))
    return _lookup(context, node, ids, context.parameters(table))


def _slice(context: Context, node: onnx.NodeProto) -> Ref:
    """Return the first token, the one part of a tensor that is cut out."""
    before, after = (context.shape(name) for name in (node.input[0], node.output[0]))
    cut = [axis for axis, (whole, part) in enumerate(zip(before, after, strict=True)) if whole != part]
    starts = context.constant(node.input[1]).reshape(-1)
    axes = context.constant(node.input[3]).reshape(-1) if any(node.input[3:4]) else np.arange(starts.size)
    found = {int(axis) % len(before): int(start) for axis, start in zip(axes, starts, strict=True)}
    first = len(cut) == 1 and found[cut[0]] == 0 and after[cut[0]] == 1
    return _first(context, node, cut[0] if cut else 0, first)


def _first(context: Context, node: onnx.NodeProto, axis: int, first: bool) -> Ref:
    source, name = node.input[0], node.output[0]
    rank = len(context.shape(source))
    if not first or axis % rank != rank - 2 or rank not in (2, 3):
        raise UnsupportedError("of anything but the first token")
    value = context.value(source)
    block = First(name=node.name or name, op=node.op_type, inputs=(value,), output=name)
    context.add(block, context.channels[value])
    return Tokens(value=name)


def _lookup(context: Context, node: onnx.NodeProto, ids: str, table: Parameters) -> Ref:
    name = node.output[0]
    block = Lookup(name=node.name or name, op=node.op_type, inputs=(ids,), output=name, table=table)
    context.add(block, real(table).shape[1])
    return Tokens(value=name)


def _layer_norm(context: Context, node: onnx.NodeProto) -> Ref:
    found, name = context.attributes(node), node.input[0]
    rank = len(context.shape(name))
    if found.get("axis", -1) % rank != rank - 1 or any(node.output[1:]):
        raise UnsupportedError("over other dimensions than the channels, or with further results")
    value = context.value(name)
    parameters = [
        vector(context.constant(each), context.channels[value]) if each else None
        for each in (*node.input[1:], "")[:2]
    ]
    return Normal(
        value=value, epsilon=float(found.get("epsilon", 1e-5)), gain=parameters[0], bias=parameters[1]
    )


def _quantize(context: Context, node: onnx.NodeProto) -> Ref:
    scales = context.constant(node.input[1]).astype(np.float32)
    zeros = (
        context.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros(1, np.uint8)
    )
    kinds = {"int8": (8, False), "uint8": (8, True), "int16": (16, False)}
    if zeros.dtype.name not in kinds or np.unique(zeros).size != 1:
        raise UnsupportedError(f"to {zeros.dtype.name}, or with several zero points")
    bits, unsigned = kinds[zeros.dtype.name]
    value = context.value(node.input[0])
    made = Quantization(
        scales=scales.reshape(-1), zero=int(zeros.reshape(-1)[0]), bits=bits, unsigned=unsigned
    )
    known = context.quantizations.setdefault(value, made)
    same = (known.zero, known.bits, known.unsigned) == (made.zero, made.bits, made.unsigned)
    if not same or not np.array_equal(known.scales, made.scales):
        raise UnsupportedError(f"{value} is quantized in two ways")
    return Stored(value=value)


def _dequantize(context: Context, node: onnx.NodeProto) -> Ref:
    ref = context.ref(node.input[0])
    if isinstance(ref, Integers):
        zeros = context.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else np.zeros(1)
        scale = context.constant(node.input[1]).reshape(-1)
        table = Constant(stored=ref.table, scales=scale, zeros=zeros.astype(np.int64).reshape(-1), axis=1)
        return _lookup(context, node, ref.ids, table)
    if not isinstance(ref, Stored):
        raise UnsupportedError("of a tensor that is not quantized")
    scales = context.constant(node.input[1]).reshape(-1)
    if not np.array_equal(scales, context.quantizations[ref.value].scales):
        raise UnsupportedError(f"{ref.value} is read with another scale than it was written with")
    return Tokens(value=ref.value)


_RULES: dict[str, Callable[[Context, onnx.NodeProto], Ref | list[Ref]]] = {
    "Gather": _gather,
    "Slice": _slice,
    "LayerNormalization": _layer_norm,
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "Add": elementwise.binary,
    "Sub": elementwise.binary,
    "Mul": elementwise.binary,
    "Div": elementwise.binary,
    "Pow": elementwise.binary,
    "IsNaN": elementwise.is_nan,
    "Where": elementwise.where,
    "ReduceMean": elementwise.mean,
    "ReduceSum": elementwise.mean,
    "DynamicQuantizeLinear": dynamic.quantize,
    "MatMulInteger": dynamic.matmul,
    "MatMulIntegerToFloat": dynamic.matmul_to_float,
    "DynamicQuantizeMatMul": dynamic.quantized_matmul,
    "MatMul": heads.matmul,
    "FusedMatMul": heads.fused,
    "Gemm": heads.gemm,
    "Softmax": heads.softmax,
    "Attention": heads.attention,
    "Split": heads.split,
}
