"""Pipelined groups after InTAR (arXiv 2502.08807): a producer and its only consumer share the array.

One after the other, two operators have the whole array each, and the tensor between them lies in the
scratchpad, or leaves it.  As a group they split the array, and the tensor passes through a buffer of a few
rows: it costs neither much room nor traffic, but the other tensors of both are needed at once, and a step of
the group takes as long as its slowest member.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hw.errors import InputError
from hw.scheduler.diagnose import diagnose
from hw.scheduler.graph import Access, Graph, Operator, Tensor, TensorKind
from hw.scheduler.hiding import Pace, simulate
from hw.scheduler.options import PlanOptions
from hw.scheduler.problem import Problem
from hw.scheduler.residency import solve_residency
from hw.scheduler.transfers import latest_moves, least_step_cycles

#: What a graph costs, as numbers that are compared one after the other; None when it has no plan.
Weigh = Callable[[Graph], tuple[int, ...] | None]

#: Graphs that `improve` weighs at effort 1.
MOST_TRIALS = 48
#: Branch-and-bound nodes that one trial may take.
_TRIAL_NODES = 200


def candidates(graph: Graph, *, most_members: int = 2) -> tuple[tuple[str, str], ...]:
    """Give the pairs of operators that can share the array, by name, producer first.

    The producer has one output, an activation; only the consumer reads it, by rows; and no tensor is read by
    both, which would have to pass twice.

    Parameters
    ----------
    graph : Graph
    most_members : int
        Operators a group may have; an operator of a pair may be a group already.
    """
    found = []
    for consumer in graph.operators:
        for name in consumer.inputs:
            producer = graph.producer.get(name)
            if (
                producer is not None
                and producer.outputs == (name,)
                and graph.tensor[name].kind is TensorKind.ACTIVATION
                and graph.consumers[name] == (consumer,)
                and name in consumer.accesses
                # Without a shape nothing is known of how much a row is.
                and consumer.accesses[name].axis < len(graph.tensor[name].shape)
                and not set(producer.inputs) & set(consumer.inputs)
                and len(_members(producer)) + len(_members(consumer)) <= most_members
                # A pipeline is a chain: what comes in must come in at its head.
                and name in _members(consumer)[0].inputs
            ):
                found.append((producer.name, consumer.name))
    return tuple(found)


def _members(operator: Operator) -> tuple[Operator, ...]:
    return operator.members or (operator,)


def group(graph: Graph, members: Sequence[str], *, word_bytes: int = 32) -> Graph:
    """Make operators into a pipelined group.

    Parameters
    ----------
    graph : Graph
    members : sequence of str
        Operators, or groups, each a producer of the next as `candidates` says.
    word_bytes : int
        What buffers are rounded up to.

    Returns
    -------
    Graph
        With the group in the place of the last of them.

    Raises
    ------
    InputError
        When these operators are no such chain.
    """
    by_name = {operator.name: operator for operator in graph.operators}
    for name in members:
        if name not in by_name:
            raise InputError("member of a group", name, "an operator of the graph")
    if len(members) < 2:
        raise InputError("members of a group", tuple(members), "at least two")
    joined = members[0]
    for name in members[1:]:
        if (joined, name) not in candidates(graph, most_members=len(graph.operators)):
            raise InputError(
                "members of a group", (joined, name), "a producer and the only reader, by rows, of its tensor"
            )
        graph, joined = _join(graph, joined, name, word_bytes)
    return graph


def _join(graph: Graph, first: str, second: str, word_bytes: int) -> tuple[Graph, str]:
    producer = next(operator for operator in graph.operators if operator.name == first)
    consumer = next(operator for operator in graph.operators if operator.name == second)
    (between,) = producer.outputs
    # What comes through a buffer is taken first: else the member before, and its reads, could not move on.
    head, *rest = _members(consumer)
    head = replace(head, inputs=(between, *(name for name in head.inputs if name != between)))
    reach = consumer.accesses[between]
    accesses = {name: access for name, access in consumer.accesses.items() if name != between}
    for name, access in producer.accesses.items():
        if access.output_axis == reach.axis:
            accesses[name] = through(access, reach)
    operator = Operator(
        name=f"{first}+{second}",
        kind="group",
        inputs=(*producer.inputs, *(name for name in consumer.inputs if name != between)),
        outputs=consumer.outputs,
        macs=producer.macs + consumer.macs,
        weight_bytes=producer.weight_bytes + consumer.weight_bytes,
        accesses=accesses,
        members=(*_members(producer), head, *rest),
        inner=(*producer.inner, graph.tensor[between], *consumer.inner),
    )
    operator = replace(operator, fifo_bytes=sum(buffer_bytes(operator, word_bytes).values()))
    operators = [operator if old is consumer else old for old in graph.operators if old is not producer]
    tensors = tuple(tensor for tensor in graph.tensors if tensor.name != between)
    return replace(graph, tensors=tensors, operators=tuple(operators)), operator.name


def through(first: Access, second: Access) -> Access:
    """Give the access of an output to an input two operators before it.

    Exact where no row of an input makes several of an output; else a row more is named at either end.

    Parameters
    ----------
    first : Access
        Of the tensor between to the input.
    second : Access
        Of the output to the tensor between.
    """
    exact = first.up == second.up == 1
    # Rows of the input per row of the tensor between are stride/up; its rounding is bounded both ways.
    ahead = second.pad + (second.up > 1)
    pad = first.pad - (-ahead * first.stride // first.up) + (not exact)
    behind = second.kernel - 1 - second.pad
    kernel = -(-behind * first.stride // first.up) - first.pad + first.kernel + pad + (not exact)
    return Access(
        axis=first.axis,
        output_axis=second.output_axis,
        kernel=kernel,
        stride=first.stride * second.stride,
        pad=pad,
        up=first.up * second.up,
    )


def buffer_bytes(operator: Operator, word_bytes: int) -> Mapping[str, int]:
    """Give the bytes of the buffer that each inner tensor of a group passes through, by name, in pipeline
    order: the rows a row of its reader needs and those that are made meanwhile, in whole words.
    """
    readers = {
        tensor.name: next(member for member in operator.members if tensor.name in member.inputs)
        for tensor in operator.inner
    }
    return {
        tensor.name: _buffer(tensor, readers[tensor.name].accesses[tensor.name], word_bytes)
        for tensor in operator.inner
    }


def _buffer(tensor: Tensor, access: Access, word_bytes: int) -> int:
    rows = access.kernel + -(-access.stride // access.up)
    row_bytes = -(-tensor.size_bytes // tensor.shape[access.axis])
    words = max(2, -(-rows * row_bytes // word_bytes))
    return min(words, -(-tensor.size_bytes // word_bytes)) * word_bytes


def weigh(graph: Graph, options: PlanOptions, pace: Pace) -> tuple[int, int] | None:
    """Give the avoidable words and the cycles of a graph in the order it lists, without addresses.

    Parameters
    ----------
    graph : Graph
    options : PlanOptions
    pace : Pace
        Of the transfer engines.

    Returns
    -------
    tuple of int or None
        None when an operator does not fit.
    """
    problem = Problem(graph=graph, word_bytes=options.word_bytes)
    if diagnose(problem, options) is not None:
        return None
    order = range(problem.operator_count)
    residency = solve_residency(
        problem,
        order,
        options.capacity,
        streaming=options.streaming.value,
        minimise=("bytes",),
        node_limit=_TRIAL_NODES,
        time_limit_s=options.time_limit_s,
    )
    cycles = least_step_cycles(problem, order, options.macs_per_cycle)
    moves = latest_moves(problem, order, residency)
    return residency.avoidable_words, simulate(moves, cycles, pace).total


def improve(
    graph: Graph,
    options: PlanOptions,
    *,
    weigh_graph: Weigh | None = None,
    pace: Pace | None = None,
    most_members: int = 2,
) -> Graph:
    """Group neighbours where that saves bytes or, at equal bytes, cycles.

    All pairs that exclude each other the least are tried at once; where they do not pay together, each half
    of them is, and so on down to single pairs.

    Parameters
    ----------
    graph : Graph
        Its operators in the order in which they are executed.
    options : PlanOptions
    weigh_graph : callable or None
        What a graph costs; `weigh` when None.
    pace : Pace or None
        Of the transfer engines, for `weigh`.
    most_members : int
        Operators a group may have: as many as the hardware has cores.

    Returns
    -------
    Graph
        The same when no group pays.
    """
    measure = weigh_graph or (lambda candidate: weigh(candidate, options, pace or Pace()))
    search = _Search(graph, measure, MOST_TRIALS * options.effort, options)
    while search.improve(most_members):
        pass
    return search.graph


class _Search:
    """The best graph so far, and what is left to try."""

    def __init__(self, graph: Graph, measure: Weigh, trials: int, options: PlanOptions) -> None:
        self.graph = graph
        self._measure, self._trials, self._options = measure, trials, options
        self._weight = measure(graph)
        self._refused: set[tuple[str, str]] = set()

    def improve(self, most_members: int) -> bool:
        """Try what is not refused yet; tell whether a group was made."""
        pairs = [
            pair for pair in candidates(self.graph, most_members=most_members) if pair not in self._refused
        ]
        producer = {operator.name: operator for operator in self.graph.operators}
        sizes = {pair: self.graph.tensor[producer[pair[0]].outputs[0]].size_bytes for pair in pairs}
        taken: set[str] = set()
        chosen = []
        for pair in sorted(pairs, key=lambda pair: -sizes[pair]):
            if not taken.intersection(pair):
                taken.update(pair)
                chosen.append(pair)
        return bool(chosen) and self._try(chosen)

    def _try(self, pairs: list[tuple[str, str]]) -> bool:
        """Make groups of pairs, or of some of them."""
        if not self._trials:
            return False
        self._trials -= 1
        grouped = self.graph
        for pair in pairs:
            grouped = group(grouped, pair, word_bytes=self._options.word_bytes)
        weight = self._measure(grouped)
        if weight is not None and (self._weight is None or weight < self._weight):
            self.graph, self._weight = grouped, weight
            return True
        if len(pairs) == 1:
            self._refused.update(pairs)
            return False
        half = len(pairs) // 2
        found = [self._try(part) for part in (pairs[:half], pairs[half:])]
        return any(found)
