"""A quick estimate of what an order costs: one pass, no solver."""

from __future__ import annotations

from collections.abc import Sequence

from hw.scheduler.plan.problem import Problem


def estimate(
    problem: Problem, order: Sequence[int], capacity: int, *, streaming: bool, limit: int | None = None
) -> int | None:
    """Estimate the avoidable words of an order: what is used again last leaves the scratchpad first (Belady).

    Operands whose step does not fit whole are streamed, the one that saves most first.

    Parameters
    ----------
    problem : Problem
    order : sequence of int
    capacity : int
        Words.
    streaming : bool
    limit : int or None
        The estimate ends when it is above.

    Returns
    -------
    int or None
        None when a step does not fit, or the estimate is above the limit.
    """
    walk = _Walk(problem, order, capacity)
    for step in range(len(order)):
        if not walk.execute(step, streaming) or (limit is not None and walk.words > limit):
            return None
    return walk.words


class _Walk:
    """The state of an estimate: what is resident, what has a copy off chip."""

    def __init__(self, problem: Problem, order: Sequence[int], capacity: int) -> None:
        self.words = 0
        self._problem, self._order, self._capacity = problem, order, capacity
        self._uses: list[list[int]] = [[] for _ in problem.size]
        for step in reversed(range(len(order))):
            for tensor in problem.inputs[order[step]]:
                self._uses[tensor].append(step)
        self._resident: set[int] = set()
        self._room = capacity
        # Writing an output is compulsory, so that dropping it is free.
        self._saved = [
            out or writer < 0 for out, writer in zip(problem.written, problem.producer, strict=True)
        ]
        self._fetched = [False] * len(problem.size)

    def execute(self, step: int, streaming: bool) -> bool:
        """Make room for a step's operands, and let go of what is not used again; tell whether it fits."""
        problem, operator = self._problem, self._order[step]
        inputs, outputs = problem.inputs[operator], problem.outputs[operator]
        passing = self._passing(operator, streaming)
        if passing is None:
            return False
        needed = problem.fifo[operator]
        for tensor in (*inputs, *outputs):
            if tensor in passing:
                self._drop(tensor, free=False)
                needed += problem.window(operator, tensor)
            elif tensor not in self._resident:
                needed += problem.size[tensor]
        self._evict(needed, {*inputs, *outputs})
        for tensor in inputs:
            self._uses[tensor].pop()
            if tensor not in self._resident:
                self._fetch(tensor)
        for tensor in outputs:
            if tensor in passing and self._uses[tensor]:
                self._save(tensor)
        for tensor in (*inputs, *outputs):
            if tensor not in passing and tensor not in self._resident:
                self._resident.add(tensor)
                self._room -= problem.size[tensor]
            if not self._uses[tensor]:
                self._drop(tensor, free=True)
        return True

    def _passing(self, operator: int, streaming: bool) -> set[int] | None:
        """Choose what an operator streams so that it fits; None when it does not."""
        problem = self._problem
        excess = problem.working_set[operator] - self._capacity
        if excess <= 0:
            return set()
        if not streaming:
            return None
        savings = [
            (problem.size[tensor] - problem.window(operator, tensor), tensor)
            for tensor in (*problem.inputs[operator], *problem.outputs[operator])
        ]
        savings.sort(reverse=True)
        alone = [(saved, tensor) for saved, tensor in savings if problem.streams_alone(operator, tensor)]
        chosen = set()
        for saved, tensor in savings:
            if excess > 0 and not problem.streams_alone(operator, tensor):
                chosen.add(tensor)
                excess -= saved
        if excess <= 0:
            return chosen
        whole = problem.working_set[operator] - self._capacity
        return {alone[0][1]} if alone and alone[0][0] >= whole else None

    def _evict(self, needed: int, operands: set[int]) -> None:
        if needed <= self._room:
            return
        others = sorted(
            (tensor for tensor in self._resident if tensor not in operands),
            key=lambda tensor: (self._uses[tensor][-1], tensor),
        )
        while others and needed > self._room:
            self._drop(others.pop(), free=False)
        # Operands that lie there were counted as being there: they always fit together.

    def _drop(self, tensor: int, *, free: bool) -> None:
        if tensor in self._resident:
            self._resident.remove(tensor)
            self._room += self._problem.size[tensor]
            if not free:
                self._save(tensor)

    def _save(self, tensor: int) -> None:
        if not self._saved[tensor]:
            self._saved[tensor] = True
            self.words += self._problem.size[tensor]

    def _fetch(self, tensor: int) -> None:
        if self._problem.producer[tensor] >= 0 or self._fetched[tensor]:
            self.words += self._problem.size[tensor]
        self._fetched[tensor] = True
