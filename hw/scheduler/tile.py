"""How finely to cut a graph into bands for a scratchpad: candidates, and an estimate of their traffic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hw.scheduler.graph import Graph
from hw.scheduler.options import PlanOptions, When
from hw.scheduler.problem import Problem
from hw.scheduler.rows import extent, row_axes, split

#: Largest band, as parts of the scratchpad: a three-row kernel reads three bands and writes one.
_PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
#: Most operators of a cut graph: what the later stages take in reasonable time.
MAX_OPERATORS = 3000


def tile(graph: Graph, options: PlanOptions) -> Graph | None:
    """Cut a graph into bands so that little traffic is left in a scratchpad.

    Every tensor above a certain size is cut into bands of at most that size; the size is the one with the
    least traffic by `estimate`, then the one with the fewest operators.

    Parameters
    ----------
    graph : Graph
    options : PlanOptions
        Of which scratchpad, word and streaming matter.

    Returns
    -------
    Graph or None
        None when no tensor can be cut, or no way of cutting lets every operator run.
    """
    best: tuple[int, int] | None = None
    chosen = None
    for bands in candidates(graph, options):
        cut = split(graph, bands)
        problem = Problem(graph=cut, word_bytes=options.word_bytes)
        words = estimate(
            problem,
            range(problem.operator_count),
            options.capacity,
            streaming=options.streaming is not When.NEVER,
            limit=best[0] - problem.compulsory if best else None,
        )
        if words is None:
            continue
        # Bands are rounded up to words each, so that what is compulsory is not the same for all.
        weight = (words + problem.compulsory, problem.operator_count)
        if best is None or weight < best:
            best, chosen = weight, cut
    return chosen


def candidates(graph: Graph, options: PlanOptions) -> Iterator[Mapping[str, int]]:
    """Give ways of cutting, coarse ones first: bands of each tensor that is cut, by name.

    Of each size there are two: with the tensors that some operator needs whole, and without them.
    """
    axes = row_axes(graph)
    wholly_read = {
        name for operator in graph.operators for name in operator.inputs if name not in operator.accesses
    }
    seen: set[tuple[tuple[str, int], ...]] = set()
    for parts in _PARTS:
        limit_bytes = max(options.word_bytes, options.scratchpad_bytes // parts)
        for spared in (frozenset[str](), wholly_read):
            bands = _bands(graph, axes, limit_bytes, spared)
            made = sum(bands.get(operator.outputs[0], 1) for operator in graph.operators)
            key = tuple(bands.items())
            if bands and key not in seen and made <= MAX_OPERATORS:
                seen.add(key)
                yield bands


def _bands(
    graph: Graph, axes: Mapping[str, int], limit_bytes: int, spared: frozenset[str] | set[str]
) -> dict[str, int]:
    """Give bands so that none exceeds a size, as far as rows go."""
    largest = {tensor.name: tensor.size_bytes for tensor in graph.tensors}
    for operator in graph.operators:
        # What reads a large tensor by rows is cut as finely, however little it makes.
        read = max((graph.tensor[name].size_bytes for name in operator.accesses), default=0)
        for name in operator.outputs:
            largest[name] = max(largest[name], read)
    found: dict[str, int] = {}
    for name, size in largest.items():
        if name in axes and name not in spared and size > limit_bytes:
            rows = extent(graph, name, axes)
            found[name] = _even(rows, min(rows, -(-size // limit_bytes)))
    for operator in graph.operators:
        most = max(found.get(name, 1) for name in operator.outputs)
        if any(name in spared for name in operator.outputs):
            most = 1
        found.update(dict.fromkeys(operator.outputs, most))
    return {name: bands for name, bands in found.items() if bands > 1}


def _even(rows: int, bands: int) -> int:
    """Round a number of bands up so that all have equally many rows, when that is at most half more: bands
    of neighbouring tensors then begin in the same rows.
    """
    for more in range(bands, min(rows, bands + bands // 2) + 1):
        if rows % more == 0:
            return more
    return bands


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
