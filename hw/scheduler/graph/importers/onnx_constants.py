"""Values of parameters and constants: read from the model, or computed from other constants."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from hw.errors import InputError
from hw.scheduler.graph.importers.rules.call import Array, Misfit

#: Most elements of a constant whose values are kept: shapes, axes, indices, scales.
SMALL = 1 << 16
#: Most elements of a parameter that is read from another file.
FETCHED = 4096
#: Operators whose values are never computed: their work grows faster than their operands, or they are not
#: deterministic.
_NEVER = frozenset(
    (
        "AveragePool", "Bernoulli", "Col2Im", "Conv", "ConvInteger", "ConvTranspose", "DFT", "DeformConv",
        "Einsum", "GRU", "Gemm", "GridSample", "ImageDecoder", "LSTM", "LpPool", "MatMul", "MatMulInteger",
        "MaxPool", "MaxRoiPool", "MaxUnpool", "Multinomial", "NonMaxSuppression", "Optional", "QLinearConv",
        "QLinearMatMul", "RNN", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
        "Resize", "RoiAlign", "STFT", "Scan", "Upsample", "Attention",
    )
)  # fmt: skip


def read_values(tensor: TensorProto, where: str, folder: Path | None) -> Array | None:
    """Return the values of a parameter that may be a shape, axes or indices; None for a larger one, or one in
    a missing file.

    InputError for values that do not match its shape and type.
    """
    of, dims = f"of parameter {tensor.name!r}", tuple(tensor.dims)
    if min(dims, default=0) < 0:
        raise InputError(f"shape {of}", dims, "at least 0 in every dimension", where=where)
    try:
        kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except KeyError as error:
        raise InputError(f"type {of}", tensor.data_type, "an element type of ONNX", where=where) from error
    legal = f"{math.prod(dims)}, what shape {dims} says, of type {kind}"
    if tensor.data_location == TensorProto.EXTERNAL:
        return _fetched(tensor, f"stored values {of}", legal, where, folder)
    try:
        values = numpy_helper.to_array(tensor)
        # Elements of less than a byte are packed, and ONNX ignores surplus bytes.
        count = len(tensor.raw_data) if tensor.HasField("raw_data") else 0
        if count and values.itemsize == 1 and count != len(numpy_helper.from_array(values).raw_data):
            raise ValueError(f"{count} bytes")
    # Too few or too many bytes or numbers, another type, invalid text.
    except (ValueError, TypeError) as error:
        raise InputError(f"stored values {of}", one_line(error), legal, where=where) from error
    return values if values.size <= SMALL or values.dtype.kind in "iu" else None


def _fetched(tensor: TensorProto, field: str, legal: str, where: str, folder: Path | None) -> Array | None:
    """Read a small parameter from another file beside the model, if there is one."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    name, dims = Path(entries.get("location", "")), tuple(tensor.dims)
    if (
        folder is None
        or math.prod(dims) > FETCHED
        or not name.name
        or name.is_absolute()
        or ".." in name.parts
    ):
        return None
    try:
        with (folder / name).open("rb") as file:
            file.seek(max(0, int(entries.get("offset", "0"))))
            content = file.read(min(int(entries.get("length", 16 * FETCHED)), 16 * FETCHED))
    except (OSError, ValueError):
        return None
    whole = TensorProto(data_type=tensor.data_type, dims=dims)
    packed = numpy_helper.from_array(np.zeros(dims, helper.tensor_dtype_to_np_dtype(tensor.data_type)))
    # Without a length the file may continue behind the values.
    whole.raw_data = content if "length" in entries else content[: len(packed.raw_data)]
    try:
        return numpy_helper.to_array(whole)
    except (ValueError, TypeError) as error:
        raise InputError(field, f"{len(content)} bytes in {name.name}", legal, where=where) from error


def dense_values(sparse: onnx.SparseTensorProto, where: str) -> TensorProto:
    """Convert a sparse parameter into a dense one; InputError when its indices do not fit it."""
    dims, values = tuple(sparse.dims), sparse.values
    legal = f"one for each of {math.prod(values.dims)} values, within shape {dims}"
    full = TensorProto(name=values.name, data_type=values.data_type, dims=dims)
    if math.prod(dims) > SMALL or min(dims, default=0) < 0 or values.data_location == TensorProto.EXTERNAL:
        full.data_location = TensorProto.EXTERNAL  # like all larger parameters
        return full
    stored, indices = read_values(values, where, None), read_values(sparse.indices, where, None)
    if stored is None or indices is None:
        full.data_location = TensorProto.EXTERNAL
        return full
    dense = np.zeros(math.prod(dims), stored.dtype)
    try:
        places = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), dims)
        dense[places] = stored
    except (ValueError, IndexError, TypeError) as error:
        field = f"indices of sparse parameter {values.name!r}"
        raise InputError(field, one_line(error), legal, where=where) from error
    full.raw_data = numpy_helper.from_array(dense).raw_data
    return full


def constant_of(
    node: onnx.NodeProto, where: str, folder: Path | None
) -> tuple[Array | None, tuple[int, ...], int]:
    """Return the value of a Constant, None of a large one or of text, its shape and its element type."""
    for attribute in node.attribute:
        name, kind = attribute.name, TensorProto.FLOAT if "float" in attribute.name else TensorProto.INT64
        if name == "value":
            tensor = attribute.t
        elif name == "sparse_value":
            tensor = dense_values(attribute.sparse_tensor, where)
        elif name in ("value_float", "value_int"):
            return np.array(attribute.f if kind == TensorProto.FLOAT else attribute.i), (), kind
        elif name in ("value_floats", "value_ints"):
            listed = np.array(attribute.floats if kind == TensorProto.FLOAT else attribute.ints)
            return listed, listed.shape, kind
        else:
            return None, (len(attribute.strings),) if name == "value_strings" else (), TensorProto.STRING
        value = read_values(tensor, where, folder)
        known = value is not None and value.dtype.kind in "iufb"
        return value if known else None, tuple(tensor.dims), tensor.data_type
    raise Misfit("value", "left out", "given")


def evaluate(node: onnx.NodeProto, operands: Sequence[Array | None], version: int) -> list[Array] | None:
    """Compute an operator from its operands' values; None when that is too much work, or the evaluator lacks
    this version of it.
    """
    if node.op_type in _NEVER or any(
        value is None for name, value in zip(node.input, operands, strict=True) if name
    ):
        return None
    feeds = {name: value for name, value in zip(node.input, operands, strict=True) if name}
    if node.op_type == "NonZero":  # it treats one number as a list of one
        feeds = {name: np.atleast_1d(np.asarray(value)) for name, value in feeds.items()}
    graph = onnx.GraphProto(name="constant")
    graph.node.append(node)
    graph.input.extend(onnx.ValueInfoProto(name=name) for name in feeds)
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output)
    try:
        with np.errstate(all="ignore"):
            made = ReferenceEvaluator(graph, opsets={"": version}).run(None, feeds)
    # It raises any exception of its operators; without values only some shapes stay unknown.
    except Exception:
        return None
    found = [np.asarray(value) for value in made]
    numbers = len(found) == len(node.output) and all(value.dtype.kind in "iufb" for value in found)
    return found if numbers else None


def one_line(error: Exception) -> str:
    """Return an error's text in one line."""
    return " ".join(str(error).split())[:300]
