"""A launch as the host library sees it: tensors, their numbers, and the places of their bytes in buffers.

The library (``hw/host``) needs NumPy alone and knows no layout.  Every layout of an engine has one writer and
one reader.  They locate each byte of a tensor here: they write and read numbers of bytes in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import field
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from hw.launch import Buffers, Bytes, Tensor, Tensors
from sim.report.sections import doc
from sim.run.expected import joined, places_of, split

_STRICT = ConfigDict(extra="forbid", strict=True)
#: Largest unit of bytes that move together.
_UNIT_BYTES = 64
#: Digits of a byte's number, a byte each.
_DIGITS = 4


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class RealEntry:
    """The real values of a tensor's elements, without their arrays."""

    type: Annotated[str, doc("Type of the division, or own: the caller's; of outputs, type of the results.")]
    half_up: Annotated[bool, doc("Whether halves are rounded up, not to even.")] = False
    lowest: Annotated[int, doc("Least element; smaller ones become it.")]
    highest: Annotated[int, doc("Largest element; larger ones become it.")]
    legal: Annotated[tuple[float, float] | None, doc("Range of the real numbers that are accepted.")] = None


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class TensorEntry:
    """An input or an output of the call; its arrays are in `tensors.npz`, behind its number and a dot."""

    name: Annotated[str, doc("The caller's name.")]
    output: Annotated[bool, doc("Whether the call returns it.")]
    shape: Annotated[tuple[Annotated[int, Field(ge=1)], ...], doc("The caller's shape.")]
    integers: Annotated[str, doc("Type of the caller's whole numbers, or bfloat16.")]
    element_bytes: Annotated[int, Field(ge=1, le=8), doc("Of an element in memory, little endian.")]
    offset: Annotated[int, doc("Added to the caller's whole number, it is the element.")] = 0
    lowest: Annotated[int, doc("Least of the caller's whole numbers.")]
    highest: Annotated[int, doc("Largest of the caller's whole numbers.")]
    reals: Annotated[RealEntry | None, doc("Its real numbers; null where it has none.")] = None
    lengths: Annotated[tuple[int, ...], doc("Of sequences that may be given one by one.")] = ()
    unit_bytes: Annotated[int, doc("Bytes of a unit that the arrays of places count.")] = 1


@plain_dataclass(frozen=True, kw_only=True, eq=False)
class HostTensor:
    """A tensor of a call, and the arrays of its real numbers.

    An input's elements are ``round((x - centre) * factor / divisor / scale) + zero``, an output's real
    numbers ``(element - zero) * scale``. Arrays broadcast to the shape; only ``scale`` is required.
    """

    entry: TensorEntry
    arrays: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.entry.shape) * self.entry.element_bytes


def host_tensor(
    name: str,
    shape: Sequence[int],
    integers: str,
    *,
    output: bool = False,
    element_bytes: int = 0,
    offset: int = 0,
    limits: tuple[int, int] | None = None,
    lengths: Sequence[int] = (),
    reals: RealEntry | None = None,
    arrays: Mapping[str, Any] | None = None,
) -> HostTensor:
    """Make a tensor; size of elements and limits of numbers are by default those of its type.

    ``arrays``: of the real numbers, see `HostTensor`.
    """
    if integers == "bfloat16":
        own, known = 2, (0, 0)
    else:
        own, info = np.dtype(integers).itemsize, np.iinfo(integers)
        known = (int(info.min), int(info.max))
    lowest, highest = limits or known
    return HostTensor(
        entry=TensorEntry(
            name=name,
            output=output,
            shape=tuple(map(int, shape)),
            integers=integers,
            element_bytes=element_bytes or own,
            offset=offset,
            lowest=lowest,
            highest=highest,
            reals=reals,
            lengths=tuple(map(int, lengths)),
        ),
        arrays={key: np.asarray(array, np.float64) for key, array in (arrays or {}).items()},
    )


@plain_dataclass(frozen=True, kw_only=True, eq=False)
class HostCall:
    """The tensors of a launch, and its layouts.

    Calls with other values of ``inputs`` differ from the launch in these tensors' bytes alone.
    """

    inputs: tuple[HostTensor, ...]
    outputs: tuple[HostTensor, ...]
    #: Returns the bytes of the buffers with inputs.  Takes the elements of each input, in order, little
    #: endian, in the caller's shape, of any value.
    write: Callable[[Sequence[Tensor]], Buffers]
    #: Returns the elements of each output by name; each of their bytes is one of a buffer, of any value.
    read: Callable[[Buffers], Tensors]


def described(
    call: HostCall, outputs: Mapping[str, int]
) -> tuple[tuple[TensorEntry, ...], dict[str, Tensor]]:
    """Return the entries of a call's tensors, and the arrays of ``tensors.npz``.

    ``outputs``: bytes of each output buffer.

    Raises `ValueError` where a layout computes with elements, or places one nowhere.
    """
    entries: list[TensorEntry] = []
    arrays: dict[str, Tensor] = {}
    placed = [*_input_places(call), *_output_places(call, outputs)]
    for number, (tensor, places) in enumerate(zip((*call.inputs, *call.outputs), placed, strict=True)):
        unit = _unit(places)
        entries.append(TensorEntry(**(vars(tensor.entry) | {"unit_bytes": unit})))
        arrays |= {f"{number}.{name}": array for name, array in tensor.arrays.items()}
        for buffer, (own, there) in places.items():
            arrays[f"{number}.tensor.{buffer}"] = (own[::unit] // unit).astype(np.int32)
            arrays[f"{number}.buffer.{buffer}"] = (there[::unit] // unit).astype(np.int32)
    return tuple(entries), arrays


#: By buffer: numbers of bytes of a tensor, and of the same bytes in the buffer, which ascend.
_Places = dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]


def _input_places(call: HostCall) -> Iterator[_Places]:
    sizes = [tensor.size_bytes for tensor in call.inputs]
    if not sizes:
        return
    ends = np.cumsum([0, *sizes])

    def write(content: Bytes) -> Buffers:
        parts = [content[first:end] for first, end in pairwise(ends)]
        return call.write(
            [
                part.view(f"<i{tensor.entry.element_bytes}").reshape(tensor.entry.shape)
                for part, tensor in zip(parts, call.inputs, strict=True)
            ]
        )

    total = int(ends[-1])
    low, high = (write(np.full(total, byte, np.uint8)) for byte in (0, 255))
    there = {name: np.flatnonzero(low[name] != high[name]) for name in low}
    numbers = {name: np.zeros(places.size, np.int64) for name, places in there.items()}
    for digit in range(_DIGITS):
        found = write((np.arange(total) >> 8 * digit & 255).astype(np.uint8))
        for name, places in there.items():
            numbers[name] |= found[name][places].astype(np.int64) << 8 * digit
    # Every other byte is the same for all elements, and those found are what was given.
    given = np.random.default_rng(0).integers(0, 256, total, np.uint8)
    for name, content in write(given).items():
        expected = low[name].copy()
        if (numbers[name] >= total).any():
            raise ValueError("the writer computes with elements of inputs")
        expected[there[name]] = given[numbers[name]]
        if not np.array_equal(content, expected):
            raise ValueError("the writer computes with elements of inputs")
    for first, end in pairwise(ends):
        own = {name: (first <= n) & (n < end) for name, n in numbers.items()}
        yield {
            name: (numbers[name][mask] - first, there[name][mask]) for name, mask in own.items() if mask.any()
        }


def _output_places(call: HostCall, sizes: Mapping[str, int]) -> Iterator[_Places]:
    if not call.outputs:
        return
    names = [tensor.entry.name for tensor in call.outputs]
    order: Tensors = {tensor.entry.name: np.zeros(tensor.size_bytes, np.uint8) for tensor in call.outputs}

    def read(buffers: Buffers) -> Tensors:
        found = call.read(buffers)
        for name in names:
            if found[name].nbytes != order[name].nbytes:
                raise ValueError(f"output {name} has {found[name].nbytes} bytes, not {order[name].nbytes}")
        return found

    places = places_of(sizes, read, order).astype(np.int64)
    content = np.random.default_rng(0).integers(0, 256, sum(sizes.values()), np.uint8)
    found = joined(read(split(content, sizes)), order)
    if (places >= content.size).any() or not np.array_equal(found, content[places]):
        raise ValueError("the reader computes with elements of outputs")
    first = 0
    for name in names:
        own = places[first : first + order[name].size]
        first += own.size
        begin, of_tensor = 0, {}
        for buffer, size in sizes.items():
            inside = np.flatnonzero((begin <= own) & (own < begin + size))
            if inside.size:
                inside = inside[np.argsort(own[inside], kind="stable")]
                of_tensor[buffer] = (inside, own[inside] - begin)
            begin += size
        yield of_tensor


def _unit(places: _Places) -> int:
    """Return the largest power of two of bytes that always move together."""
    unit = _UNIT_BYTES
    for own, there in places.values():
        breaks = np.flatnonzero((np.diff(own) != 1) | (np.diff(there) != 1)) + 1
        starts = np.concatenate([[0], breaks])
        lengths = np.diff(np.concatenate([starts, [own.size]]))
        for numbers in (own[starts], there[starts], lengths):
            unit = math.gcd(unit, *(np.unique(numbers & (_UNIT_BYTES - 1)).tolist()))
    return unit
