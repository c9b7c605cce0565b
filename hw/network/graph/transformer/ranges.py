"""Ranges of a transformer's tensors, measured by onnxruntime on sentences."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from hw.errors import InputError, check_range
from hw.network.graph.transformer.blocks import POOLS, Blocks, First, Floats, Lookup, Rows, real
from hw.network.graph.transformer.contrib import expand

Ids = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Range:
    """Least and greatest real number of each channel."""

    low: Floats
    high: Floats

    @property
    def channel_tops(self) -> Floats:
        """The largest magnitude of each channel."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def top(self) -> float:
        """The largest magnitude."""
        return float(self.channel_tops.max())


class Runner:
    """A model in onnxruntime, one sentence a run: real numbers of tensors by name."""

    def __init__(self, source: Path | bytes, tensors: Sequence[str]) -> None:
        # onnxruntime takes a second to import.
        import onnxruntime

        where = str(source) if isinstance(source, Path) else "model"
        model = onnx.load(source) if isinstance(source, Path) else onnx.load_model_from_string(source)
        expand(model)
        known = {each.name for each in model.graph.output}
        for name in tensors:
            if name not in known:
                model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        try:
            with tempfile.TemporaryDirectory(prefix="loomwork-") as folder:
                path = Path(folder) / "model.onnx"
                onnx.save(model, path)
                self._session = onnxruntime.InferenceSession(
                    path, options, providers=["CPUExecutionProvider"]
                )
        except Exception as error:  # its types are many
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise InputError("model", where, f"one that onnxruntime runs ({reason})") from error

    def run(self, ids: Ids, tensors: Sequence[str]) -> dict[str, Floats]:
        """Return tensors of one sentence, without the batch."""
        if not tensors:
            return {}
        feeds: dict[str, Any] = {}
        for each in self._session.get_inputs():
            kind = np.int32 if "int32" in each.type else np.int64 if "int64" in each.type else np.float32
            feeds[each.name] = _feed(each.name, ids).astype(kind)[np.newaxis]
        found = self._session.run(list(tensors), feeds)
        return {
            name: np.asarray(array, np.float64).reshape(-1, array.shape[-1])
            for name, array in zip(tensors, found, strict=True)
        }


def _feed(name: str, ids: Ids) -> Ids:
    """Return an input of a model for one whole sentence."""
    rules: dict[str, Callable[[Ids], Ids]] = {
        "mask": np.ones_like,
        "type": np.zeros_like,
        "segment": np.zeros_like,
        "position": lambda each: np.arange(len(each)),
    }
    rule = next((rules[key] for key in rules if key in name), None)
    return ids if rule is None else rule(ids)


def measured(blocks: Blocks, source: Path | bytes, sentences: Sequence[Ids]) -> Mapping[str, Range]:
    """Return the range of each tensor that a block makes.

    Raises `InputError` for numbers of tokens that are no rows of the table.
    """
    for block in blocks.blocks:
        if isinstance(block, Lookup):
            rows = len(real(block.table))
            for ids in sentences:
                check_range("number of a token", int(ids.max()), 0, rows - 1)
                check_range("number of a token", int(ids.min()), 0, rows - 1)
    made = [block for block in blocks.blocks if not isinstance(block, (Rows, *POOLS))]
    names = [block.output for block in made]
    runner = Runner(source, names)
    lows: dict[str, Floats] = {}
    highs: dict[str, Floats] = {}

    def take(name: str, tensor: Floats) -> None:
        low, high = tensor.min(axis=0), tensor.max(axis=0)
        lows[name] = np.minimum(lows.get(name, low), low)
        highs[name] = np.maximum(highs.get(name, high), high)

    for ids in sentences:
        tensors = runner.run(ids, names)
        for block in blocks.blocks:
            if isinstance(block, POOLS):
                tokens = tensors[block.inputs[0]]
                one = tokens[:1] if isinstance(block, First) else tokens.mean(axis=0, keepdims=True)
                tensors[block.output] = one
        for name, tensor in tensors.items():
            take(name, tensor)
    for block in blocks.blocks:
        if isinstance(block, Lookup):
            take(block.output, real(block.table))
        elif isinstance(block, Rows):
            take(block.output, real(block.rows))
    return {name: Range(low=lows[name], high=highs[name]) for name in lows}
