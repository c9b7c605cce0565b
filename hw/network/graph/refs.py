"""Tensors of an ONNX model while it is read: stored integers, real numbers behind them, constants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError
from hw.network.graph.network import Value

Array = NDArray[Any]
#: Orders of the dimensions of a tensor.  ``"CHW"`` and ``"HWC"`` are one dimension behind the batch.
NCHW, NHWC, VECTOR, FLAT_CHW, FLAT_HWC = "NCHW", "NHWC", "NC", "CHW", "HWC"


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A tensor of integers: a value of the network, in the model's own order of dimensions."""

    value: str
    order: str


@dataclass(frozen=True, kw_only=True)
class Real:
    """The real numbers of a stored tensor."""

    value: str
    order: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Constant:
    """A constant of real numbers: ``(stored - zeros) * scales``, with one scale or one along ``axis``."""

    stored: Array
    scales: Array
    zeros: Array
    axis: int

    @property
    def centered(self) -> Array:
        """The stored numbers less their zero points, as int64."""
        zeros = self.zeros.astype(np.int64)
        if zeros.size > 1:
            zeros = zeros.reshape([-1 if axis == self.axis else 1 for axis in range(self.stored.ndim)])
        return self.stored.astype(np.int64) - zeros

    @property
    def real(self) -> Array:
        """The real numbers, in float64."""
        scales = self.scales.astype(np.float64)
        if scales.size > 1:
            scales = scales.reshape([-1 if axis == self.axis else 1 for axis in range(self.stored.ndim)])
        return self.centered * scales


@dataclass(frozen=True, kw_only=True)
class Pending:
    """An operator whose result is real until a QuantizeLinear says how it is stored."""

    kind: str  #: Of the operator: its class in `hw.network.graph.network`.
    node: str
    inputs: tuple[str, ...]
    order: str
    shape: tuple[int, int, int]
    fields: dict[str, Any] = field(default_factory=dict)
    #: Real bounds of the result, by a Relu or Clip behind the operator.
    low: float = -np.inf
    high: float = np.inf


def whole_scale(scales: Array, zeros: Array, where: str) -> tuple[np.float32, int]:
    """Return the one scale and zero point of a tensor of activations."""
    if scales.size != 1 or zeros.size > 1:
        raise InputError(f"scales of {where}", scales.size, "one: activations have a scale a tensor")
    if scales.dtype != np.float32:
        raise InputError(f"scale of {where}", str(scales.dtype), "of type float32")
    return np.float32(scales.reshape(-1)[0]), int(zeros.reshape(-1)[0]) if zeros.size else 0


def quantize(real: Array, value: Value) -> NDArray[np.int8]:
    """Return real numbers as a value's stored integers, as QuantizeLinear does in float32."""
    scaled = np.rint(np.asarray(real, np.float32) / np.float32(value.scale))
    return np.clip(scaled.astype(np.float64) + value.zero, -128, 127).astype(np.int8)


def stored_type(zeros: Array, where: str) -> bool:
    """Return whether a tensor is uint8; `InputError` when it is neither that nor int8."""
    if zeros.dtype not in (np.int8, np.uint8):
        raise InputError(f"element type of {where}", str(zeros.dtype), "int8 or uint8")
    return zeros.dtype == np.uint8


def order_after(order: str, permutation: tuple[int, ...], where: str) -> str:
    """Return the order of a tensor's dimensions after a Transpose."""
    if len(permutation) != len(order):
        raise InputError(f"perm of {where}", permutation, f"a permutation of {len(order)} dimensions")
    found = "".join(order[axis] for axis in permutation)
    if found not in (NCHW, NHWC, VECTOR):
        legal = "one between NCHW and NHWC: other orders are not laid out"
        raise InputError(f"perm of {where}", permutation, legal)
    return found
