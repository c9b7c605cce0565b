"""Exact decomposition: where a network can be cut so that the traffic and peaks of its parts say all.

A **cut vertex** is an operator that every other operator comes before or after, whatever the order, and after
which only its own outputs are still needed.  Every order passes it with the same tensors alive, so the parts
before and after it are planned apart and their avoidable words add up to the optimum of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hw.errors import InputError
from hw.scheduler.graph.graph import Graph, Operator, TensorKind
from hw.scheduler.plan.problem import Problem


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A part of a problem that is planned apart.

    Members
    -------
    problem : Problem
        The part. What the next part reads is an output of it; what the previous one wrote is written by its
        first operator, which reads nothing.
    operators : tuple of int
        The operator of the whole problem that each operator of the part is.
    entry : bool
        Whether the first operator stands for the previous part's last one, and is not executed again.
    """

    problem: Problem
    operators: tuple[int, ...]
    entry: bool

    @classmethod
    def whole(cls, problem: Problem) -> Segment:
        """Give a problem as its only part."""
        return cls(problem=problem, operators=tuple(range(problem.operator_count)), entry=False)

    def original(self, order: Sequence[int]) -> tuple[int, ...]:
        """Give an order of the part as operators of the whole problem, without the entry."""
        return tuple(self.operators[operator] for operator in order if operator or not self.entry)


def segments(problem: Problem, capacity: int | None = None) -> tuple[Segment, ...]:
    """Cut a problem at its cut vertices.

    Parameters
    ----------
    problem : Problem
    capacity : int or None
        Words of the scratchpad. A cut vertex that does not fit with its operands whole is not cut at then:
        which of them are streamed ties both sides together. Without streaming, and for peaks, leave it out.

    Returns
    -------
    tuple of Segment
        In the order of execution; the problem itself when there is none.
    """
    vertices = [
        operator
        for operator in _cut_vertices(problem)
        if capacity is None or problem.working_set[operator] <= capacity
    ]
    if not vertices:
        return (Segment.whole(problem),)
    parts = []
    previous = -1
    for vertex in [*vertices, problem.operator_count - 1]:
        parts.append(_part(problem, previous, vertex))
        previous = vertex
    return tuple(parts)


def join(parts: Sequence[Segment], orders: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Put orders of the parts together to one of the whole problem.

    Raises
    ------
    InputError
        When there is not one order for each part.
    """
    if len(parts) != len(orders):
        raise InputError("orders", len(orders), f"one for each of {len(parts)} segments")
    return tuple(
        operator for part, order in zip(parts, orders, strict=True) for operator in part.original(order)
    )


def _cut_vertices(problem: Problem) -> list[int]:
    """Operators after which the problem may be cut, in order; never the last one.

    A cut vertex stands at the same place in every topological order, so looking at the given one is enough.
    """
    count = problem.operator_count
    before = [0] * count
    for operator, mask in enumerate(problem.predecessors):
        total = mask
        while mask:
            last = mask.bit_length() - 1
            total |= before[last]
            mask &= ~(1 << last)
        before[operator] = total
    last_use = [max(readers, default=-1) for readers in problem.consumers]
    first_use = [
        min(readers) if writer < 0 else writer
        for readers, writer in zip(problem.consumers, problem.producer, strict=True)
    ]
    # Sums to the tensors that are needed both up to and after an operator, its own outputs not counted.
    change = [0] * (count + 1)
    for tensor, end in enumerate(last_use):
        if end > first_use[tensor]:
            change[first_use[tensor] + (problem.producer[tensor] >= 0)] += 1
            change[end] -= 1
    common = (1 << count) - 1
    after_all = [0] * count
    for operator in reversed(range(count)):
        after_all[operator] = common
        common &= before[operator]
    found = []
    needed = 0
    for operator in range(count - 1):
        needed += change[operator]
        follows_all = before[operator] == (1 << operator) - 1
        precedes_all = after_all[operator] >> operator & 1
        if needed == 0 and follows_all and precedes_all:
            found.append(operator)
    return found


def _part(problem: Problem, previous: int, last: int) -> Segment:
    """Cut out the operators after ``previous`` up to ``last``."""
    graph = problem.graph
    executed = graph.operators[previous + 1 : last + 1]
    read = {name for operator in executed for name in operator.inputs}
    written = {name for operator in executed for name in operator.outputs}
    operators = tuple(range(previous + 1, last + 1))
    if previous >= 0:
        vertex = graph.operators[previous]
        handed = tuple(name for name in vertex.outputs if name in read)
        entry = Operator(name=vertex.name, kind=vertex.kind, inputs=(), outputs=handed)
        executed = (entry, *executed)
        operators = (previous, *operators)
        written |= set(handed)
    tensors = tuple(
        replace(tensor, kind=TensorKind.OUTPUT)
        if tensor.kind is TensorKind.ACTIVATION and tensor.name not in read
        else tensor
        for tensor in graph.tensors
        if tensor.name in read or tensor.name in written
    )
    part = Graph(name=f"{graph.name}[{operators[0]}:{last + 1}]", tensors=tensors, operators=executed)
    return Segment(
        problem=Problem(graph=part, word_bytes=problem.word_bytes),
        operators=operators,
        entry=previous >= 0,
    )
