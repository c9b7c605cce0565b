"""One operator of a model as input of a shape rule, and the rules' exceptions."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Shape = tuple[int, ...]
Array = np.ndarray[Any, Any]

#: Largest extent: that of a tensor with one byte an element.
MAX_EXTENT = 2**32 - 1


class Misfit(Exception):  # noqa: N818  (no error of the program: it becomes an InputError where the node is known)
    """An operand, or an attribute, that does not fit the others; fields as of `InputError`."""

    def __init__(self, field: str, value: Any, legal: str) -> None:
        super().__init__(field, value, legal)
        self.field, self.value, self.legal = field, value, legal


class Unknown(Exception):  # noqa: N818  (another source of shapes is asked then)
    """The shape depends on values that are missing or known only when the network runs."""


@dataclass(frozen=True, kw_only=True)
class NodeCall:
    """An operator with all facts about its operands that are known before the network runs."""

    op: str  #: Name in ONNX's own domain; in another with the domain before it.
    shapes: tuple[Shape | None, ...]  #: Of the operands; None for an omitted one.
    values: tuple[Array | None, ...]  #: Of the operands that are small constants.
    attributes: Mapping[str, Any]  #: Texts are bytes, as in ONNX.
    opset: int  #: Version of the operators of its domain.
    results: int = 1  #: Outputs the node lists.
    labels: tuple[str, ...] = ()  #: The specification's names of the operands.

    def label(self, position: int) -> str:
        """Name an operand for errors."""
        return f"operand {self.labels[position] if position < len(self.labels) else position}"

    def has(self, position: int) -> bool:
        """Whether an operand is present."""
        return position < len(self.shapes) and self.shapes[position] is not None

    def shape(self, position: int, rank: int | None = None) -> Shape:
        """Return the shape of a required operand, of this rank unless None."""
        shape = self.shapes[position] if position < len(self.shapes) else None
        if shape is None:
            raise Misfit(self.label(position), "left out", "given")
        if rank is not None and len(shape) != rank:
            raise Misfit(f"shape of {self.label(position)}", shape, f"of {rank} dimensions")
        return shape

    def spatial(self, position: int = 0) -> Shape:
        """Return the shape of an operand (N, C, D1, ...)."""
        shape = self.shape(position)
        if len(shape) < 3:
            raise Misfit(f"shape of {self.label(position)}", shape, "of at least 3 dimensions (N, C, L ...)")
        return shape

    def expect(self, position: int, *legal: Shape, why: str = "") -> None:
        """Refuse an operand, if present, of any other shape than these."""
        if self.has(position) and self.shapes[position] not in legal:
            words = " or ".join(map(str, dict.fromkeys(legal)))
            raise Misfit(f"shape of {self.label(position)}", self.shapes[position], f"{words}{why}")

    def one(self, position: int) -> None:
        """Refuse an operand, if present, of more than one element."""
        if self.has(position) and self.shapes[position] not in ((), (1,)):
            raise Misfit(f"shape of {self.label(position)}", self.shapes[position], "() or (1,), one value")

    def numbers(self, position: int) -> list[float]:
        """Return the values of a constant of at most one dimension; Unknown for other operands."""
        if len(self.shape(position)) > 1:
            legal = "of one dimension"
            raise Misfit(f"shape of {self.label(position)}", self.shapes[position], legal)
        value = self.values[position]
        if value is None or value.dtype.kind not in "iufb":
            raise Unknown
        return list(value.reshape(-1).tolist())

    def whole(self, position: int, name: str = "") -> list[int] | None:
        """Return whole numbers from an operand or, in older versions, the attribute ``name``; None without
        either.
        """
        if self.has(position):
            return [int(value) for value in self.numbers(position)]
        return self.ints(name) if name in self.attributes else None

    def ints(self, name: str, default: Sequence[int] = (), count: int | None = None) -> list[int]:
        """Return an attribute of whole numbers, ``count`` of them unless None."""
        values = self.attributes.get(name, list(default))
        if not isinstance(values, (list, tuple)) or not all(isinstance(value, int) for value in values):
            raise Misfit(name, values, "whole numbers")
        if count is not None and len(values) != count:
            raise Misfit(name, list(values), f"{count} values")
        return list(values)

    def number(self, name: str, default: int | None = None, least: int | None = None) -> int:
        """Return an attribute that is a whole number of at least ``least``."""
        value = self.attributes.get(name, default)
        if not isinstance(value, int):
            raise Misfit(name, value, "a whole number")
        if least is not None and value < least:
            raise Misfit(name, value, f"at least {least}")
        return value

    def text(self, name: str, default: str) -> str:
        """Return an attribute that is text."""
        value = self.attributes.get(name, default.encode())
        if not isinstance(value, bytes):
            raise Misfit(name, value, "text")
        return value.decode(errors="replace")

    def axis(self, rank: int, default: int = 0, name: str = "axis") -> int:
        """Return the attribute ``axis``, counted from 0, of a shape of this rank."""
        return counted(self.number(name, default), rank, name)

    def axes(self, values: Sequence[int], rank: int) -> list[int]:
        """Return axes counted from 0; refuse illegal and repeated ones."""
        found = [counted(value, rank, "axes") for value in values]
        if len(set(found)) != len(found):
            raise Misfit("axes", list(values), "named once each")
        return found


def counted(axis: int, rank: int, name: str = "axis") -> int:
    """Count an axis from 0."""
    if not -rank <= axis < rank:
        legal = f"from {-rank} to {rank - 1}" if rank else "left out: the operand has no dimension"
        raise Misfit(name, axis, legal)
    return axis % rank


def bounded(shape: Sequence[int]) -> Shape:
    """Return a shape; refuse extents below 0, or far beyond any tensor."""
    found = tuple(int(extent) for extent in shape)
    if any(not 0 <= extent <= MAX_EXTENT for extent in found):
        raise Misfit("shape of the result", found, f"from 0 to {MAX_EXTENT} in every dimension")
    return found


def joined(shape: Shape, other: Shape) -> Shape | None:
    """Return the broadcast shape of two: from the last dimension on, extents are equal or 1; else None."""
    pairs = list(itertools.zip_longest(reversed(shape), reversed(other), fillvalue=1))
    if any(1 not in pair and pair[0] != pair[1] for pair in pairs):
        return None
    return tuple(second if first == 1 else first for first, second in reversed(pairs))


def broadcast(call: NodeCall, *positions: int) -> Shape:
    """Return the broadcast shape of operands."""
    result: Shape = ()
    for position in positions:
        shape = call.shape(position)
        if (both := joined(shape, result)) is None:
            legal = f"one that fits {result}: equal, or 1, from the last dimension on"
            raise Misfit(f"shape of {call.label(position)}", shape, legal)
        result = both
    return result


def fits_into(call: NodeCall, position: int, shape: Shape) -> None:
    """Refuse an operand, if present, that cannot be broadcast into this shape."""
    if call.has(position) and joined(given := call.shape(position), shape) != shape:
        raise Misfit(f"shape of {call.label(position)}", given, f"one that can be broadcast into {shape}")
