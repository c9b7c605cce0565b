"""Layers as other tools' files have them: sizes alone, for any engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hw.errors import InputError, check_range


@dataclass(frozen=True, kw_only=True)
class Convolution:
    """A convolution; names and orders are those of ONNX's Conv."""

    channels: int
    rows: int
    columns: int
    outputs: int
    #: ``kernel``, ``strides``, ``dilations``: of rows and of columns.
    kernel: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)  #: Above, left, below, right.
    group: int = 1

    def __post_init__(self) -> None:
        for axis, name in enumerate(("rows", "columns")):
            reach = self.dilations[axis] * (self.kernel[axis] - 1) + 1
            padded = (self.rows, self.columns)[axis] + self.pads[axis] + self.pads[axis + 2]
            check_range(name, (self.rows, self.columns)[axis], 1)
            if reach > padded:
                raise InputError(name, padded, f"at least {reach}, the kernel's, with padding")
        for name in ("channels", "outputs"):
            if getattr(self, name) % self.group:
                raise InputError(name, getattr(self, name), f"a multiple of {self.group}, the groups")

    @property
    def out_size(self) -> tuple[int, int]:
        """Rows and columns of the result."""
        size = (self.rows, self.columns)
        rows, columns = (
            (size[n] + self.pads[n] + self.pads[n + 2] - self.dilations[n] * (self.kernel[n] - 1) - 1)
            // self.strides[n]
            + 1
            for n in (0, 1)
        )
        return rows, columns

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return (
            math.prod(self.out_size) * self.outputs * (self.channels // self.group) * math.prod(self.kernel)
        )


@dataclass(frozen=True, kw_only=True)
class Product:
    """A matrix product: ``[rows, inner] x [inner, columns]``."""

    rows: int
    columns: int
    inner: int

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.rows * self.columns * self.inner


@dataclass(frozen=True, kw_only=True)
class Attention:
    """``softmax(q kT) v`` of several heads; query heads that share keys are rows of one."""

    heads: int
    queries: int
    keys: int
    query_size: int
    value_size: int

    @property
    def macs(self) -> int:
        """Multiply-accumulates of both products."""
        return self.heads * self.queries * self.keys * (self.query_size + self.value_size)


@dataclass(frozen=True, kw_only=True)
class Other:
    """Work of another kind."""

    reason: str  #: Its kind, as in ``Pooling``.

    @property
    def macs(self) -> int:
        """None are counted."""
        return 0


Work = Convolution | Product | Attention | Other


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A layer of a file."""

    name: str  #: As in the file.
    where: str  #: ``file:line``, or the file.
    work: Work
    count: int = 1  #: Times that it is done: images of a batch, heads.
    parts: tuple[str, ...] = ()  #: Of attention: names of the layers that it stands for.

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all times."""
        return self.count * self.work.macs


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The content of a file."""

    source: str  #: Its form: ``SCALE-Sim topology``.
    layers: tuple[Layer, ...]  #: In the file's order, without attention.
    #: Attention among the layers, each in the place of its ``parts``.
    attentions: tuple[Layer, ...] = ()
    notes: tuple[str, ...] = ()  #: Statements of the file that no engine follows.


def joined(first: Layer, second: Layer, parts: Sequence[str], *, name: str) -> Layer | None:
    """Return the attention of two products; None where the second does not take the first one's result.

    The first makes logits ``[queries, keys]``, the second multiplies them by values.
    """
    logits, results = first.work, second.work
    if not (isinstance(logits, Product) and isinstance(results, Product)):
        return None
    if (logits.rows, logits.columns, first.count) != (results.rows, results.inner, second.count):
        return None
    work = Attention(
        heads=first.count,
        queries=logits.rows,
        keys=logits.columns,
        query_size=logits.inner,
        value_size=results.columns,
    )
    return Layer(name=name, where=first.where, work=work, parts=tuple(parts))
