"""A network in the planner's form: operators that read and write whole tensors.

Source of the terms: COSMA (arXiv 2311.18246, section III): one operator a time step, tensors created once.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hw.errors import InputError, check_range

#: Largest tensor that a 32-bit descriptor can move.
MAX_TENSOR_BYTES = 2**32 - 1


class TensorKind(enum.StrEnum):
    """The place of a tensor's bytes before and after the network runs.

    ``INPUT``, ``WEIGHT`` and ``CACHE`` lie off chip from the start: fetching one once is compulsory.
    ``OUTPUT`` must be off chip at the end: writing it once is compulsory.  An ``ACTIVATION`` need never
    leave the chip.
    """

    INPUT = "input"
    WEIGHT = "weight"
    CACHE = "cache"
    ACTIVATION = "activation"
    OUTPUT = "output"


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """One tensor, written at most once."""

    name: str
    size_bytes: int  #: Stored bytes; with a shape, its elements times ``element_bits``, rounded up to bytes.
    #: Elements in every dimension, outermost first; empty when only the size is known.
    shape: tuple[int, ...] = ()
    element_bits: int = 8
    kind: TensorKind = TensorKind.ACTIVATION
    origin: str = ""  #: Name of the tensor this one is a band of; empty for a whole tensor.

    def __post_init__(self) -> None:
        where = f"tensor {self.name!r}"
        if not self.name:
            raise InputError("name of a tensor", self.name, "at least one character")
        check_range(f"element_bits of {where}", self.element_bits, 1, 64)
        if any(extent < 1 for extent in self.shape):
            raise InputError(f"shape of {where}", self.shape, "positive in every dimension")
        check_range(f"size_bytes of {where}", self.size_bytes, 1, MAX_TENSOR_BYTES)
        if self.shape and self.size_bytes != stored_bytes(self.shape, self.element_bits):
            legal = f"{stored_bytes(self.shape, self.element_bits)}, what shape and element_bits say"
            raise InputError(f"size_bytes of {where}", self.size_bytes, legal)

    @property
    def off_chip_first(self) -> bool:
        """Whether its bytes lie off chip before the network runs."""
        return self.kind in (TensorKind.INPUT, TensorKind.WEIGHT, TensorKind.CACHE)

    def row_words(self, rows: int, axis: int, word_bytes: int) -> int:
        """Words of a buffer for rows along a dimension: at least two, at most the tensor's."""
        row_bytes = -(-self.size_bytes // self.shape[axis])
        return min(-(-self.size_bytes // word_bytes), max(2, -(-rows * row_bytes // word_bytes)))


def stored_bytes(shape: tuple[int, ...], element_bits: int) -> int:
    """Bytes of a dense tensor."""
    return -(-math.prod(shape) * element_bits // 8)


@dataclass(frozen=True, kw_only=True)
class Access:
    """The rows of an input that one row of the output needs.

    Output row ``o`` (along the dimension ``output_axis``) needs ``kernel`` input rows (along ``axis``) from
    ``floor(o * stride / up) - pad`` on, clipped to the tensor.  A convolution has its own stride and padding
    (a dilated kernel counts with its holes), a resize by 2 has ``up=2``, an elementwise operator the
    defaults.
    """

    axis: int = 0
    output_axis: int = 0
    kernel: int = 1
    stride: int = 1
    pad: int = 0
    up: int = 1

    def __post_init__(self) -> None:
        for name, least in (("axis", 0), ("output_axis", 0), ("kernel", 1), ("stride", 1), ("up", 1)):
            check_range(f"{name} of an access", getattr(self, name), least)

    @property
    def held_rows(self) -> int:
        """Rows of a buffer: those that an output row needs, and those that arrive meanwhile."""
        return self.kernel + -(-self.stride // self.up)

    def rows(self, first: int, last: int, extent: int) -> tuple[int, int]:
        """Return the input rows, from and to (excluded), that the output rows ``first`` to ``last``
        (excluded) need of an input with ``extent`` rows; at least one row.
        """
        begin = first * self.stride // self.up - self.pad
        end = (last - 1) * self.stride // self.up - self.pad + self.kernel
        begin = min(max(begin, 0), extent - 1)
        return begin, min(max(end, begin + 1), extent)


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One operator: its inputs, outputs and costs."""

    name: str
    kind: str  #: Its usual name: ``conv``, ``matmul``, ``add``, ``concat``, ``softmax`` ...
    #: ``inputs``, ``outputs``: tensor names; an input used twice is listed once.
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    macs: int = 0  #: Multiply-accumulates of one execution.
    least_cycles: int = 0  #: Least cycles of one execution, whatever its multiply-accumulates.
    #: Parameters that are not tensors of the graph: they bypass the scratchpad, and are compulsory.
    weight_bytes: int = 0
    #: For each input that is read by rows.  Any other input is needed whole before the first output row is
    #: done.
    accesses: Mapping[str, Access] = field(default_factory=dict)
    fused: tuple[str, ...] = ()  #: Names of elementwise operators that were merged into this one.
    #: The operators of a pipelined group, in pipeline order; empty for a plain operator.
    members: tuple[Operator, ...] = ()
    #: Tensors between the members, in pipeline order: never stored whole, and not tensors of the graph.
    inner: tuple[Tensor, ...] = ()
    #: Scratchpad bytes of the FIFOs of the inner tensors.
    fifo_bytes: int = 0

    def __post_init__(self) -> None:
        where = f"operator {self.name!r}"
        if not self.name:
            raise InputError("name of an operator", self.name, "at least one character")
        if not self.outputs:
            raise InputError(f"outputs of {where}", self.outputs, "at least one tensor")
        for name in ("macs", "least_cycles", "weight_bytes", "fifo_bytes"):
            check_range(f"{name} of {where}", getattr(self, name), 0)
        _refuse_twice(f"tensors of {where}", (*self.inputs, *self.outputs), "named once each")
        for tensor in self.accesses:
            if tensor not in self.inputs:
                raise InputError(f"accesses of {where}", tensor, "for one of its inputs")
        handed_on = [name for member in self.members for name in member.outputs if name not in self.outputs]
        if (found := [tensor.name for tensor in self.inner]) != handed_on:
            raise InputError(f"inner tensors of {where}", found, f"what its members hand on, {handed_on}")

    @property
    def chain(self) -> tuple[Operator, ...]:
        """The members of a group; a plain operator alone."""
        return self.members or (self,)


@dataclass(frozen=True, kw_only=True)
class Graph:
    """A network: a directed acyclic graph of operators over tensors.

    Operators are in the default order: the source's, with producers moved before their consumers if needed.
    ``made_by`` is the command that made the graph.

    Raises `InputError` for a repeated name, a tensor without declaration, producer or reader, two producers,
    or a cycle.
    """

    name: str
    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    made_by: str = ""

    def __post_init__(self) -> None:
        if not self.operators:
            raise InputError(f"operators of graph {self.name!r}", self.operators, "at least one")
        _refuse_twice("name of a tensor", (tensor.name for tensor in self.tensors), "used once")
        _refuse_twice("name of an operator", (operator.name for operator in self.operators), "used once")
        for operator in self.operators:
            for name in (*operator.inputs, *operator.outputs):
                if name not in self.tensor:
                    raise InputError(f"tensor of operator {operator.name!r}", name, "one the graph declares")
                if (access := operator.accesses.get(name)) is not None:
                    _refuse_reach(access, self.tensor[name], self.tensor[operator.outputs[0]])
        makers = Counter(name for operator in self.operators for name in operator.outputs)
        used = {name for operator in self.operators for name in operator.inputs}
        for tensor in self.tensors:
            where, count = f"tensor {tensor.name!r}", makers[tensor.name]
            if count > 1:
                raise InputError(where, "written by two operators", "written by one")
            if tensor.off_chip_first and count:
                legal = "activation or output: an operator writes it"
                raise InputError(f"kind of {where}", tensor.kind.value, legal)
            if not tensor.off_chip_first and not count:
                raise InputError(where, "written by no operator", "written by one, or of kind input")
            if tensor.kind is not TensorKind.OUTPUT and tensor.name not in used:
                raise InputError(where, "read by no operator", "read by at least one, or of kind output")
        object.__setattr__(self, "operators", depth_first(self.operators, self.producer))

    @cached_property
    def tensor(self) -> Mapping[str, Tensor]:
        """Tensors by name."""
        return {tensor.name: tensor for tensor in self.tensors}

    @cached_property
    def producer(self) -> Mapping[str, Operator]:
        """The operator that writes a tensor, by the tensor's name; none for a tensor off chip."""
        return {name: operator for operator in self.operators for name in operator.outputs}

    @cached_property
    def consumers(self) -> Mapping[str, tuple[Operator, ...]]:
        """The operators that read a tensor, in the default order, by the tensor's name."""
        readers: dict[str, list[Operator]] = {tensor.name: [] for tensor in self.tensors}
        for operator in self.operators:
            for name in operator.inputs:
                readers[name].append(operator)
        return {name: tuple(operators) for name, operators in readers.items()}


def _refuse_reach(access: Access, read: Tensor, made: Tensor) -> None:
    """Refuse an access beyond the dimensions of its tensors, or far beyond the rows of whole ones."""
    where = f"of the access from {made.name!r} to {read.name!r}"
    for name, tensor in (("axis", read), ("output_axis", made)):
        if tensor.shape and getattr(access, name) >= len(tensor.shape):
            legal = f"below {len(tensor.shape)}, the dimensions of {tensor.name!r}"
            raise InputError(f"{name} {where}", getattr(access, name), legal)
    if read.shape and not (read.origin or made.origin):
        most = 4 * (read.shape[access.axis] + max(access.pad, 0))
        if access.kernel > most:
            raise InputError(
                f"kernel {where}", access.kernel, f"at most {most}, four times the rows and their padding"
            )


def _refuse_twice(field_name: str, names: Iterable[str], legal: str) -> None:
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(field_name, twice[0], legal)


def depth_first(roots: Iterable[Operator], producer: Mapping[str, Operator]) -> tuple[Operator, ...]:
    """Return ``roots`` in order, with the operators that they depend on, each just before its first reader.

    ``producer`` maps a tensor to the operator that writes it. InputError for a cycle of operators.
    """
    done: dict[str, Operator] = {}
    for root in roots:
        path = {} if root.name in done else {root.name: (root, iter(root.inputs))}
        while path:
            name, (operator, inputs) = next(reversed(path.items()))
            makers = (producer[tensor] for tensor in inputs if tensor in producer)
            missing = next((maker for maker in makers if maker.name not in done), None)
            if missing is None:
                done[name] = operator
                del path[name]
            elif missing.name in path:
                names = list(path)
                cycle = names[names.index(missing.name) :]
                raise InputError("graph", " -> ".join([*cycle, cycle[0]]), "without a cycle")
            else:
                path[missing.name] = (missing, iter(missing.inputs))
    return tuple(done.values())
