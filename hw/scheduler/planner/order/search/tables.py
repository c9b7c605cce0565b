"""A problem as flat arrays: what the compiled search reads and what it works in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hw.scheduler.plan.problem import Problem

Integers = NDArray[np.int64]


class Tables(NamedTuple):
    """A problem as flat arrays.

    A **slot** is one operand of one operator, numbered by operator, inputs before outputs.  Whatever the
    order, a slot is an event of its tensor, and the gap that follows the event is named by the same slot.
    Sizes are in units: their greatest common divisor, so that equal sums are met more often.

    Members
    -------
    first : shape (operators + 1,)
        First slot of each operator.
    tensor, saved, alone : shape (slots,)
        The operand; units that streaming it saves, 0 when it cannot be streamed; whether it can be streamed
        only while nothing else of the operator is.
    writes, owner : shape (slots,)
        1 where the operand is written; the operator.
    fifo : shape (operators,)
        Units needed beside the operands.
    size : shape (tensors,)
    spills : shape (tensors,)
        1 where writing the tensor to memory is avoidable, else 0.
    before_first, before, after_first, after
        Direct predecessors of operator ``o``: ``before[before_first[o] : before_first[o + 1]]``; likewise
        its successors.
    unit : int
        Words of a unit.
    """

    first: Integers
    tensor: Integers
    saved: Integers
    alone: Integers
    writes: Integers
    owner: Integers
    fifo: Integers
    size: Integers
    spills: Integers
    before_first: Integers
    before: Integers
    after_first: Integers
    after: Integers
    unit: int


class Scratch(NamedTuple):
    """What one evaluation works in, and leaves behind.

    Members
    -------
    step : shape (operators,)
        Step of each operator.
    follower, previous : shape (slots,)
        The tensor's next and last slot in this order, or -1.
    kept, streamed : shape (slots,)
        The residency: whether the gap after each slot is kept, and whether the slot is streamed.
    used : shape (operators + 1,)
        Units in use in each step.
    current, place, spilled, touched, drops : shape (tensors,)
        While replaying: the slot since which a tensor is resident or -1, where it stands in ``resident``,
        whether it lies in memory, the last step that touched it; afterwards its gaps that are not kept.
    resident : shape (tensors,)
        Resident tensors.
    dropped : shape (slots,)
        Gaps that are not kept.
    """

    step: Integers
    follower: Integers
    previous: Integers
    kept: Integers
    streamed: Integers
    used: Integers
    current: Integers
    place: Integers
    spilled: Integers
    touched: Integers
    drops: Integers
    resident: Integers
    dropped: Integers


def tables_of(problem: Problem, *, streaming: bool) -> Tables:
    """Flatten a problem."""
    operators, slots = problem.operator_count, []
    for operator in range(operators):
        for tensor in (*problem.inputs[operator], *problem.outputs[operator]):
            slots.append((operator, tensor))
    saved, alone = [0] * len(slots), [False] * len(slots)
    if streaming:
        for index, (operator, tensor) in enumerate(slots):
            saved[index] = problem.size[tensor] - problem.window(operator, tensor)
            alone[index] = problem.streams_alone(operator, tensor)
    unit = math.gcd(*problem.size, *problem.fifo, *saved)
    counts = [len(problem.inputs[o]) + len(problem.outputs[o]) for o in range(operators)]
    before_first, before = _lists(problem.predecessors)
    after_first, after = _lists(problem.successors)
    return Tables(
        first=_offsets(counts),
        tensor=_array([tensor for _, tensor in slots]),
        saved=_array(saved) // unit,
        alone=_array(alone),
        writes=_array([tensor in problem.outputs[operator] for operator, tensor in slots]),
        owner=_array([operator for operator, _ in slots]),
        fifo=_array(problem.fifo) // unit,
        size=_array(problem.size) // unit,
        spills=_array(
            [writer >= 0 and not out for writer, out in zip(problem.producer, problem.written, strict=True)]
        ),
        before_first=before_first,
        before=before,
        after_first=after_first,
        after=after,
        unit=unit,
    )


def scratch_for(tables: Tables) -> Scratch:
    """Allocate what an evaluation works in."""
    operators, slots, tensors = len(tables.fifo), len(tables.tensor), len(tables.size)
    lengths = (operators, slots, slots, slots, slots, operators + 1, *[tensors] * 6, slots)
    return Scratch(*(np.zeros(length, dtype=np.int64) for length in lengths))


def _array(values: Sequence[int] | Sequence[bool]) -> Integers:
    return np.array(values, dtype=np.int64)


def _offsets(counts: Sequence[int]) -> Integers:
    return np.concatenate([[0], np.cumsum(_array(counts))]).astype(np.int64)


def _lists(masks: Sequence[int]) -> tuple[Integers, Integers]:
    """Bit masks as one list after the other, and where each begins."""
    members = [[bit for bit in range(mask.bit_length()) if mask >> bit & 1] for mask in masks]
    return _offsets([len(each) for each in members]), _array([bit for each in members for bit in each])
