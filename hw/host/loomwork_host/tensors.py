"""Tensors of a call: a caller's arrays to elements in buffers, and back.

A launch folder describes each tensor: its shape, its numbers, and for units of some bytes their places in the
buffers.  Nothing here knows an engine's layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

import numpy as np

from .errors import InputError

#: Real numbers as a launch quantizes them: ``round((x - centre) * factor / divisor / scale) + zero``.
_ARRAYS = ("centre", "factor", "divisor", "scale", "zero")


@dataclass(frozen=True)
class Reals:
    """The real values of a tensor's elements."""

    arrays: Mapping[str, np.ndarray]  #: Of `_ARRAYS` those that matter; they broadcast to the shape.
    #: Of inputs the type of the division, or "own", that of the caller's array; of outputs the results'.
    type: str
    half_up: bool  #: Whether halves are rounded up, not to even.
    #: ``lowest``, ``highest``: elements are clamped to them.
    lowest: int
    highest: int
    legal: tuple[float, float] | None  #: Range of the real numbers that are accepted.


@dataclass(frozen=True)
class Tensor:
    """An input or an output of a call."""

    name: str
    output: bool
    shape: tuple[int, ...]
    integers: str  #: Type of the caller's whole numbers, such as "uint8"; "bfloat16" has no whole numbers.
    element_bytes: int  #: Of an element in memory.
    offset: int  #: Added to the caller's whole number, it is the element.
    #: ``lowest``, ``highest``: of the caller's whole numbers.
    lowest: int
    highest: int
    reals: Reals | None  #: None: the tensor has no real numbers.
    lengths: tuple[int, ...]  #: Of sequences that may be given one by one; empty for others.
    unit_bytes: int
    #: By buffer: numbers of units in the tensor, and of the same units in the buffer.
    places: Mapping[str, tuple[np.ndarray, np.ndarray]]

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.element_bytes

    def span(self, buffer: str) -> tuple[int, int]:
        """Return first and last byte + 1 of the part of a buffer where its units lie."""
        units = self.places[buffer][1]
        return int(units.min()) * self.unit_bytes, (int(units.max()) + 1) * self.unit_bytes

    def put(self, raw: np.ndarray, buffers: Mapping[str, np.ndarray]) -> None:
        """Place the bytes of all elements in buffers, uint8."""
        for name, (own, units) in self.places.items():
            self._units(buffers[name])[units] = self._units(raw)[own]

    def take(self, buffers: Mapping[str, np.ndarray]) -> np.ndarray:
        """Collect the bytes of all elements from buffers, uint8."""
        raw = np.zeros(self.size_bytes, np.uint8)
        for name, (own, units) in self.places.items():
            self._units(raw)[own] = self._units(buffers[name])[units]
        return raw

    def _units(self, data: np.ndarray) -> np.ndarray:
        whole = data[: data.size - data.size % self.unit_bytes]
        word = min(self.unit_bytes, 8)
        return whole.view(f"u{word}").reshape(-1, self.unit_bytes // word)

    def encode(self, given: Any) -> tuple[np.ndarray, int]:
        """Turn a caller's array into the bytes of its elements; return how many numbers were clamped, too.

        The array has the tensor's shape, with or without a first dimension of 1.  Whole numbers are the
        caller's own; real numbers are quantized as the launch quantizes.

        Raises `InputError` for another shape or type, and for numbers out of range.
        """
        array = self._shaped(given)
        clamped = 0
        if array.dtype.kind in "iu":
            elements = self._whole(array)
        elif array.dtype.kind == "f" and self.reals is not None:
            elements, clamped = self._quantized(array, self.reals)
        else:
            legal = self.integers + (" or a real type" if self.reals is not None else "")
            raise InputError(f"type of {self.name}", str(array.dtype), legal)
        little = np.ascontiguousarray(elements, f"<i{self.element_bytes}")
        return little.reshape(-1).view(np.uint8), clamped

    def _shaped(self, given: Any) -> np.ndarray:
        if self.lengths and isinstance(given, (list, tuple)):
            rows = [np.asarray(row) for row in given]
            found = tuple(row.shape[0] if row.ndim == 1 else row.shape for row in rows)
            if found != self.lengths:
                raise InputError(f"lengths of {self.name}", found, str(self.lengths))
            given = np.concatenate(rows)
        array = np.asarray(given)
        plain = self.shape[1:] if self.shape[:1] == (1,) else self.shape
        if array.shape not in (self.shape, plain, (1, *self.shape)):
            raise InputError(f"shape of {self.name}", array.shape, str(self.shape))
        return array.reshape(self.shape)

    def _whole(self, array: np.ndarray) -> np.ndarray:
        if str(array.dtype) != self.integers or _range_of(self.integers) != (self.lowest, self.highest):
            for number in (int(array.min()), int(array.max())):
                if not self.lowest <= number <= self.highest:
                    raise InputError(self.name, number, f"from {self.lowest} to {self.highest}")
        return array.astype(np.int64) + self.offset if self.offset else array

    def _quantized(self, array: np.ndarray, reals: Reals) -> tuple[np.ndarray, int]:
        if not np.isfinite(array).all():
            raise InputError(self.name, "NaN or infinity", "finite everywhere")
        if reals.legal is not None:
            for number in (float(array.min()), float(array.max())):
                if not reals.legal[0] <= number <= reals.legal[1]:
                    raise InputError(self.name, number, "from {} to {}".format(*reals.legal))
        kind = array.dtype if reals.type == "own" else np.dtype(reals.type)
        numbers, arrays = array.astype(kind), {name: of.astype(kind) for name, of in reals.arrays.items()}
        if "centre" in arrays:
            numbers = numbers - arrays["centre"]
        if "factor" in arrays:
            numbers = numbers * arrays["factor"]
        if "divisor" in arrays:
            numbers = numbers / arrays["divisor"]
        numbers = numbers / arrays["scale"]
        numbers = np.floor(numbers + kind.type(0.5)) if reals.half_up else np.rint(numbers)
        if "zero" in reals.arrays:
            numbers = numbers.astype(np.float64) + reals.arrays["zero"]
        clamped = np.count_nonzero((numbers < reals.lowest) | (numbers > reals.highest))
        return np.clip(numbers, reals.lowest, reals.highest).astype(np.int64), int(clamped)

    def decode(self, raw: np.ndarray, *, integers: bool = False) -> np.ndarray:
        """Turn the bytes of an output's elements into real numbers, or into the kernel's whole numbers."""
        elements = self._elements(raw).reshape(self.shape)
        if integers or self.reals is None:
            return elements.copy() if self.integers == "bfloat16" else self._given(elements)
        if self.integers == "bfloat16":
            elements = (elements.astype(np.uint32) << np.uint32(16)).view(np.float32)
        arrays = self.reals.arrays
        numbers = elements.astype(np.float64)
        if "zero" in arrays:
            numbers = numbers - arrays["zero"]
        return (numbers * arrays["scale"]).astype(self.reals.type)

    def _elements(self, raw: np.ndarray) -> np.ndarray:
        signed = self.lowest + self.offset < 0
        if self.element_bytes in (1, 2, 4, 8):
            return raw.view(f"<{'i' if signed else 'u'}{self.element_bytes}")
        wide = np.zeros((raw.size // self.element_bytes, 8), np.uint8)
        wide[:, -self.element_bytes :] = raw.reshape(-1, self.element_bytes)
        # The highest byte has the sign: shifted from the top, it fills the bits above.
        return wide.view("<i8" if signed else "<u8").reshape(-1) >> (64 - 8 * self.element_bytes)

    def _given(self, elements: np.ndarray) -> np.ndarray:
        if self.offset:
            elements = elements.astype(np.int64) - self.offset
        return elements.astype(self.integers)


def _range_of(integers: str) -> tuple[int, int]:
    limits = np.iinfo(integers)
    return int(limits.min), int(limits.max)


def read_tensor(entry: Mapping[str, Any], arrays: Mapping[str, np.ndarray], prefix: str) -> Tensor:
    """Make a tensor of its entry in ``launch.json`` and its arrays in ``tensors.npz``."""
    reals, own = entry["reals"], prefix + "tensor."
    return Tensor(
        name=entry["name"],
        output=entry["output"],
        shape=tuple(entry["shape"]),
        integers=entry["integers"],
        element_bytes=entry["element_bytes"],
        offset=entry["offset"],
        lowest=entry["lowest"],
        highest=entry["highest"],
        reals=None
        if reals is None
        else Reals(
            arrays={name: arrays[prefix + name] for name in _ARRAYS if prefix + name in arrays},
            type=reals["type"],
            half_up=reals["half_up"],
            lowest=reals["lowest"],
            highest=reals["highest"],
            legal=None if reals["legal"] is None else tuple(reals["legal"]),
        ),
        lengths=tuple(entry["lengths"]),
        unit_bytes=entry["unit_bytes"],
        places={
            key[len(own) :]: (array, arrays[f"{prefix}buffer.{key[len(own) :]}"])
            for key, array in arrays.items()
            if key.startswith(own)
        },
    )
