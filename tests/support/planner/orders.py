"""Every order of a small problem, and random networks that have many."""

import random
from collections.abc import Iterator

from hw.scheduler.graph.graph import Graph, Operator, Tensor, TensorKind
from hw.scheduler.plan.problem import Problem


def every_order(problem: Problem) -> Iterator[tuple[int, ...]]:
    """All topological orders."""
    count = problem.operator_count

    def extend(order: list[int], done: int) -> Iterator[tuple[int, ...]]:
        if len(order) == count:
            yield tuple(order)
        for operator in range(count):
            if not done >> operator & 1 and problem.predecessors[operator] & ~done == 0:
                yield from extend([*order, operator], done | 1 << operator)

    return extend([], 0)


def wide_problem(seed: int, operators: int, *, fan: int = 2, blocks: int = 1) -> Problem:
    """A random network of one source in which operators read any earlier results.

    With several blocks, the first operator of each reads all results of the block before.
    """
    rng = random.Random(seed)
    made: list[Operator] = []
    size = {"t0": rng.choice((1, 2, 3, 5))}

    def add(inputs: set[str]) -> str:
        name = f"t{len(size)}"
        made.append(Operator(name=f"o{name[1:]}", kind="x", inputs=tuple(sorted(inputs)), outputs=(name,)))
        size[name] = rng.choice((1, 2, 3, 5))
        return name

    start = "t0"
    for block in range(blocks):
        pool = [start]
        for _ in range(operators):
            pool.append(add({pool[rng.randrange(len(pool))] for _ in range(fan)}))
        if block < blocks - 1:
            read = {name for operator in made for name in operator.inputs}
            start = add(set(pool) - read)
    read = {name for operator in made for name in operator.inputs}
    tensors = tuple(
        Tensor(
            name=name,
            size_bytes=32 * units,
            kind=TensorKind.INPUT
            if name == "t0"
            else TensorKind.ACTIVATION
            if name in read
            else TensorKind.OUTPUT,
        )
        for name, units in size.items()
    )
    return Problem(graph=Graph(name="wide", tensors=tensors, operators=tuple(made)))
