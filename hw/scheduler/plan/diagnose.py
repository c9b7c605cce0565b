"""Diagnosis of a scratchpad that is too small: the smallest conflict of tensors, and a sufficient size.

A plan exists exactly when each operator fits alone, because everything else can leave the scratchpad first.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from hw.errors import InputError
from hw.scheduler.graph.graph import Graph, TensorKind
from hw.scheduler.plan.options import PlanOptions, When
from hw.scheduler.plan.problem import Problem

#: Operands up to which all sets are tried; above, an irreducible set is found.
_EXHAUSTIVE = 14
#: Tensors that a refusal names.
_NAMED = 8


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The conflict that makes a plan impossible."""

    operator: str  #: The operator whose step does not fit.
    tensors: tuple[str, ...]  #: The smallest set of its tensors that does not fit together, largest first.
    #: Bytes of these, with the buffers of a pipelined group; a tensor that may be streamed counts its window.
    needed_bytes: int
    #: The smallest scratchpad for which a plan of this graph exists under the same options.
    sufficient_bytes: int
    #: The same with streaming allowed; equal to ``sufficient_bytes`` where it is allowed already.
    streaming_bytes: int


def refuse_too_large(graph: Graph, memory_bytes: int, memory: str) -> None:
    """Raise InputError for a network that does not fit a board's memory under any plan.

    The error names a tensor larger than the memory, or the bytes of all inputs, weights, caches and outputs.
    """
    legal = f"at most {memory_bytes}, {memory}"
    in_memory = [tensor for tensor in graph.tensors if tensor.kind is not TensorKind.ACTIVATION]
    for tensor in in_memory:
        if tensor.size_bytes > memory_bytes:
            raise InputError(f"size_bytes of tensor {tensor.name!r}", tensor.size_bytes, legal)
    off_chip = sum(tensor.size_bytes for tensor in in_memory)
    if off_chip > memory_bytes:
        raise InputError("bytes of inputs, weights, caches and outputs", off_chip, legal)


def diagnose(problem: Problem, options: PlanOptions) -> Diagnosis | None:
    """Return the conflict that makes a plan impossible; None when a plan exists.

    Only the scratchpad and streaming matter; tiling and grouping change the problem itself.
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
    """Return the fewest operands that do not fit together; among sets of that size, the largest."""
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
    """Drop each operand, last first, if the others still do not fit; without any one left, the rest fits.

    The sum of `Problem.least_words` is updated incrementally: recomputing it takes minutes for thousands of
    operands.
    """
    size, windows = problem.size, problem.window
    saved = {tensor: size[tensor] - windows(operator, tensor) if streaming else 0 for tensor in operands}
    alone = {tensor for tensor in operands if streaming and problem.streams_alone(operator, tensor)}
    total = problem.fifo[operator] + sum(size[tensor] for tensor in operands)
    together = sum(saved[tensor] for tensor in operands if tensor not in alone)
    kept = set(operands)
    most = sorted(alone, key=saved.__getitem__)  # the largest saving is last
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
    """Raise the InputError that names the operator, its conflicting tensors and a sufficient scratchpad."""
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
