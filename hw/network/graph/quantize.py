"""Quantizes a float ONNX model by onnxruntime's static quantizer: int8, weights with a scale a channel."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import version_converter

from hw.errors import InputError
from hw.network.graph.plain import PLAIN
from hw.network.graph.unary import UNARY
from hw.scheduler.graph.importers.onnx_file import read_model

#: Oldest operator set that has a scale a channel.
_OPSET = 13
#: Newest version of the file format that every onnxruntime with these operators reads.
IR_VERSION = 10


def quantize(
    source: Path | bytes,
    calibration: Mapping[str, NDArray[Any]],
    *,
    operators: bool = False,
    unsigned: bool = False,
) -> bytes:
    """Return a quantized model.

    * ``calibration``: for each input of the model, samples along the first dimension.
    * ``operators``: QOperator form, whose operators are onnxruntime's integer kernels, instead of QDQ.
    * ``unsigned``: activations are uint8 instead of int8.

    Raises `InputError` for a model that onnxruntime does not load or quantize, and for calibration arrays
    that do not fit its inputs or hold a NaN or infinity.
    """
    # onnxruntime takes a second to import.
    from onnxruntime import quantization
    from onnxruntime.quantization.calibrate import CalibrationDataReader

    where = str(source) if isinstance(source, Path) else "model"
    model = read_model(source, where)
    samples = list(_samples(model.graph, calibration))

    class Reader(CalibrationDataReader):
        """Hands out the samples one by one."""

        def __init__(self) -> None:
            self._next = iter(samples)

        def get_next(self) -> dict[str, NDArray[Any]] | None:
            return next(self._next, None)

    form = quantization.QuantFormat.QOperator if operators else quantization.QuantFormat.QDQ
    kind = quantization.QuantType.QUInt8 if unsigned else quantization.QuantType.QInt8
    with tempfile.TemporaryDirectory(prefix="loomwork-") as folder, _refused(where):
        plain, result = Path(folder) / "float.onnx", Path(folder) / "quantized.onnx"
        onnx.save(_whole(model, source), plain)
        _check_loads(plain)
        # Batch normalization joins the convolution before it.
        quantization.quant_pre_process(plain, plain, skip_symbolic_shape=True)
        quantization.quantize_static(
            plain,
            result,
            Reader(),
            quant_format=form,
            per_channel=True,
            activation_type=kind,
            weight_type=quantization.QuantType.QInt8,
            # Pools are quantized whatever comes before them.
            extra_options={"ForceQuantizeNoInputCheck": True},
            # QDQ form serves any operator.
            op_types_to_quantize=None if operators else sorted({*PLAIN, *UNARY}),
        )
        return result.read_bytes()


def _samples(
    graph: onnx.GraphProto, calibration: Mapping[str, NDArray[Any]]
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield the inputs of one run after the other."""
    parameters = {each.name for each in graph.initializer}
    inputs = [each for each in graph.input if each.name not in parameters]
    _check_names(calibration, [each.name for each in inputs])
    counts = {name: len(array) if array.ndim else 0 for name, array in calibration.items()}
    if len(set(counts.values())) > 1 or 0 in counts.values():
        raise InputError("samples of the calibration", counts, "one number, at least 1, for all inputs")
    samples: dict[str, NDArray[np.float32]] = {}
    for value in inputs:
        array = calibration[value.name]
        extents = [each.dim_value for each in value.type.tensor_type.shape.dim]
        if extents and extents[0] > 1:
            raise InputError(f"batch of input {value.name!r}", extents[0], "1, or open: one image a run")
        fits = len(extents) == array.ndim and all(
            want in (0, have) for want, have in zip(extents[1:], array.shape[1:], strict=True)
        )
        if not fits:
            raise InputError(
                f"shape of calibration {value.name!r}", array.shape, f"{['samples', *extents[1:]]}"
            )
        if array.dtype.kind not in "biuf":
            raise InputError(f"element type of calibration {value.name!r}", str(array.dtype), "real numbers")
        with np.errstate(over="ignore"):  # refused here
            samples[value.name] = array.astype(np.float32)
        if not np.isfinite(samples[value.name]).all():
            legal = "finite numbers of float32"
            raise InputError(f"calibration {value.name!r}", "NaN or infinity", legal)
    for number in range(next(iter(counts.values()))):
        yield {name: array[number : number + 1] for name, array in samples.items()}


def _whole(model: onnx.ModelProto, source: Path | bytes) -> onnx.ModelProto:
    """Return a model with the parameters of other files, and versions that the quantizer takes."""
    if isinstance(source, Path):
        onnx.load_external_data_for_model(model, str(source.parent))
    version = {use.domain: use.version for use in model.opset_import}.get("", 1)
    if version < _OPSET:
        model = version_converter.convert_version(model, _OPSET)
    model.ir_version = min(model.ir_version, IR_VERSION)
    return model


def _check_loads(path: Path) -> None:
    """Load a model in onnxruntime without its log: the quantizer writes errors of loading there."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


@contextmanager
def _refused(where: str) -> Iterator[None]:
    """Turn errors of onnx and onnxruntime, whose types are many, to one of the model."""
    try:
        yield
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError("model", where, f"one that onnxruntime quantizes ({reason})") from error


def _check_names(given: Iterable[str], wanted: list[str]) -> None:
    for name in given:
        if name not in wanted:
            raise InputError("array of the calibration", name, "an input of the model", known=wanted)
    for name in wanted:
        if name not in given:
            raise InputError("calibration", sorted(given), f"with an array {name!r}")
