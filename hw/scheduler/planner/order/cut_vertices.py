"""Exact decomposition: where a network can be cut so that the traffic and peaks of its parts say all.

A **cut vertex** is an operator that every other operator comes before or after, whatever the order, and after
which only its own outputs are still needed.  Every order passes it with the same tensors alive, so the parts
before and after it are planned apart and their avoidable words add up to the optimum of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

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
    ends = [-1, *vertices, problem.operator_count - 1]
    return tuple(_part(problem, *pair) for pair in pairwise(ends)) if vertices else (Segment.whole(problem),)


def join(parts: Sequence[Segment], orders: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Put orders of the parts together to one of the whole problem."""
    pairs = zip(parts, orders, strict=True)
    return tuple(operator for part, order in pairs for operator in part.original(order))


def _cut_vertices(problem: Problem) -> list[int]:
    """Operators after which the problem may be cut, in order; never the last one.

    A cut vertex stands at the same place in every topological order, so looking at the given one is enough:
    all operators before it come before it if each is read by one up to it, and those after it likewise.
    """
    count = problem.operator_count
    crossed = [False] * count
    for readers, writer in zip(problem.consumers, problem.producer, strict=True):
        begin = writer + 1 if writer >= 0 else min(readers)
        for operator in range(begin, max(readers, default=-1)):
            crossed[operator] = True
    last_before = [mask.bit_length() - 1 for mask in problem.predecessors]
    first_after = [(mask & -mask).bit_length() - 1 for mask in problem.successors]
    return [
        vertex
        for vertex in range(count - 1)
        if not crossed[vertex]
        and all(0 <= after <= vertex for after in first_after[:vertex])
        and all(before >= vertex for before in last_before[vertex + 1 :])
    ]


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
