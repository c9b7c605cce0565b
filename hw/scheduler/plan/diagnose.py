"""Why a scratchpad is too small: the fewest tensors that one step needs at once, and what would suffice.

A plan exists exactly when each operator fits alone: everything else can leave the scratchpad before it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from hw.errors import InputError
from hw.scheduler.graph.graph import Graph, TensorKind
from hw.scheduler.plan.options import PlanOptions, When
from hw.scheduler.plan.problem import Problem

#: Operands up to which all sets are tried; of more, a set of which no tensor can be left out is given.
_EXHAUSTIVE = 14
#: Tensors that a refusal names.
_NAMED = 8


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What makes a plan impossible."""

    operator: str  #: The operator whose step does not fit.
    tensors: tuple[str, ...]  #: The smallest set of its tensors that does not fit together, largest first.
    #: What these need, buffers of a pipelined group included, each tensor through its window where allowed.
    needed_bytes: int
    #: The least scratchpad for which a plan of this graph exists under the same options.
    sufficient_bytes: int
    #: The same when tensors may be streamed; equal to ``sufficient_bytes`` when they may already.
    streaming_bytes: int


def refuse_too_large(graph: Graph, memory_bytes: int, memory: str) -> None:
    """Refuse a network that does not fit a board's memory, whatever the plan.

    The InputError names the tensor that is larger than the memory, or the bytes of all that lie there.
    """
    legal = f"at most {memory_bytes}, {memory}"
    there = [tensor for tensor in graph.tensors if tensor.kind is not TensorKind.ACTIVATION]
    for tensor in there:
        if tensor.size_bytes > memory_bytes:
            raise InputError(f"size_bytes of tensor {tensor.name!r}", tensor.size_bytes, legal)
    off_chip = sum(tensor.size_bytes for tensor in there)
    if off_chip > memory_bytes:
        raise InputError("bytes of inputs, weights, caches and outputs", off_chip, legal)


def diagnose(problem: Problem, options: PlanOptions) -> Diagnosis | None:
    """Find out why no plan exists; None when one does.

    Of the options, the scratchpad and streaming matter; tiling and grouping make other problems.
    """
    word, streaming = problem.word_bytes, options.streams
    needs, streamed = (
        [problem.least_words(operator, streaming=each) for operator in range(problem.operator_count)]
        for each in (streaming, True)
    )
    conflicts = [
        (operator, _smallest(problem, operator, options.capacity, streaming=streaming))
        for operator, words in enumerate(needs)
        if words > options.capacity
    ]
    if not conflicts:
        return None
    operator, tensors = min(conflicts, key=lambda found: (len(found[1]), -needs[found[0]], found[0]))
    return Diagnosis(
        operator=problem.graph.operators[operator].name,
        tensors=tuple(problem.graph.tensors[tensor].name for tensor in tensors),
        needed_bytes=word * problem.least_words(operator, tensors, streaming=streaming),
        sufficient_bytes=word * max(needs),
        streaming_bytes=word * max(streamed),
    )


def _smallest(problem: Problem, operator: int, capacity: int, *, streaming: bool) -> tuple[int, ...]:
    """Return the fewest operands that do not fit together; of equally many, those that need most."""
    operands = sorted(problem.operands[operator], key=lambda tensor: (-problem.size[tensor], tensor))

    def needed(tensors: Sequence[int]) -> int:
        return problem.least_words(operator, tensors, streaming=streaming)

    if len(operands) <= _EXHAUSTIVE:
        best = (max(itertools.combinations(operands, n), key=needed) for n in range(len(operands)))
        return next((found for found in best if needed(found) > capacity), tuple(operands))
    return _irreducible(problem, operator, operands, capacity, streaming=streaming)


def _irreducible(
    problem: Problem, operator: int, operands: Sequence[int], capacity: int, *, streaming: bool
) -> tuple[int, ...]:
    """Leave out what can be, from the last on: what is left does not fit, and would without any of it.

    `Problem.least_words` of what is left is kept up to date.  To count it anew for each operand takes minutes
    where there are thousands.
    """
    size, windows = problem.size, problem.window
    saved = {tensor: size[tensor] - windows(operator, tensor) if streaming else 0 for tensor in operands}
    alone = {tensor for tensor in operands if streaming and problem.streams_alone(operator, tensor)}
    total = problem.fifo[operator] + sum(size[tensor] for tensor in operands)
    together = sum(saved[tensor] for tensor in operands if tensor not in alone)
    kept = set(operands)
    most = sorted(alone, key=saved.__getitem__)  # what saves most alone comes last
    for tensor in reversed(operands):
        kept.remove(tensor)
        while most and most[-1] not in kept:
            most.pop()
        best = saved[most[-1]] if most else 0
        left, passing = total - size[tensor], together - (0 if tensor in alone else saved[tensor])
        if left - max(passing, best) > capacity:
            total, together = left, passing
            continue
        kept.add(tensor)
        if tensor in alone and saved[tensor] >= best:
            most.append(tensor)
    return tuple(tensor for tensor in operands if tensor in kept)


def refuse(problem: Problem, options: PlanOptions) -> NoReturn:
    """End with the InputError that says why no plan exists: it names the operator, the tensors that do not
    fit together and the scratchpad that would do.
    """
    found = diagnose(problem, options)
    given = f"{options.scratchpad_bytes} bytes"
    if found is None:
        legal = "large enough for bands of rows: no operator of this graph can be cut finely enough"
        raise InputError("scratchpad", given, legal)
    words = {name: problem.words(tensor.size_bytes) for name, tensor in problem.graph.tensor.items()}
    sizes = [f"{name!r} ({words[name] * problem.word_bytes} bytes)" for name in found.tensors[:_NAMED]]
    if others := found.tensors[_NAMED:]:
        more = sum(words[name] for name in others) * problem.word_bytes
        sizes.append(f"{len(others)} smaller tensors ({more} bytes)")
    what = " and ".join(filter(None, [", ".join(sizes[:-1]), *sizes[-1:]]))
    legal = f"at least {found.sufficient_bytes} bytes"
    if found.streaming_bytes < found.sufficient_bytes:
        legal += f" ({found.streaming_bytes} with streaming)"
    if options.tiling is not When.NEVER:
        legal += " for whole operators, or fewer where they can be cut into bands"
    legal += f"; operator {found.operator!r} needs {found.needed_bytes} bytes at once for "
    raise InputError("scratchpad", given, legal + (what or "the buffers between its members"))
