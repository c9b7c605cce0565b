"""A problem as flat arrays and bit sets, for compiled searches over down-sets.

A **down-set** is what has been executed at some moment of some order: a set of operators that contains, with
each operator, all it depends on.  Sets are rows of 63-bit words (the sign bit stays clear).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from hw.scheduler.plan.problem import Problem

Integers = NDArray[np.int64]

#: Members of a set in one word.
BITS = 63

compiled: Any = numba.njit(cache=True)

#: Place of a single bit by its remainder: the powers of two below 2**66 have all different remainders by 67.
_PLACE = np.zeros(67, dtype=np.int64)
for _bit in range(BITS):
    _PLACE[2**_bit % 67] = _bit


class Lattice(NamedTuple):
    """A problem for compiled searches; operands are listed by operator, inputs before outputs.

    Members
    -------
    before : shape (operators, words of a set)
        Direct predecessors of each operator.
    after_first : shape (operators + 1,), after : shape (dependences,)
        Direct successors of operator ``o``: ``after[after_first[o] : after_first[o + 1]]``.
    users : shape (tensors, words of a set)
        Operators that read each tensor.
    first : shape (operators + 1,)
        Where the operands of each operator begin.
    tensor, writes, saved, alone : shape (operands,)
        The operand; 1 where the operator writes it; units that streaming it saves, 0 where it cannot be
        streamed; 1 where it streams only while nothing else of the operator does.
    whole : shape (operators,)
        Units each operator needs with all operands whole, first-in first-out buffers included.
    size, source, cheap : shape (tensors,)
        Units; 1 for what lies off chip first; 1 where a write to memory is never avoidable: sources, outputs.
    unit : int
        Words of a unit: the greatest common divisor of all sizes.
    """

    before: Integers
    after_first: Integers
    after: Integers
    users: Integers
    first: Integers
    tensor: Integers
    writes: Integers
    saved: Integers
    alone: Integers
    whole: Integers
    size: Integers
    source: Integers
    cheap: Integers
    unit: int

    @classmethod
    def of(cls, problem: Problem, *, streaming: bool = False) -> Lattice:
        """Flatten a problem."""
        count = problem.operator_count
        operands = [
            (operator, tensor, tensor in problem.outputs[operator])
            for operator in range(count)
            for tensor in (*problem.inputs[operator], *problem.outputs[operator])
        ]
        saved = [
            problem.size[tensor] - problem.window(operator, tensor) if streaming else 0
            for operator, tensor, _ in operands
        ]
        alone = [streaming and problem.streams_alone(operator, tensor) for operator, tensor, _ in operands]
        first = np.zeros(count + 1, dtype=np.int64)
        for operator, _, _ in operands:
            first[operator + 1] += 1
        unit = math.gcd(*problem.size, *problem.fifo, *saved)
        source = [writer < 0 for writer in problem.producer]
        cheap = [off or out for off, out in zip(source, problem.written, strict=True)]
        width = -(-count // BITS)
        after = [[later for later in range(count) if mask >> later & 1] for mask in problem.successors]
        return cls(
            before=np.array([_row(mask, width) for mask in problem.predecessors], dtype=np.int64),
            after_first=np.cumsum([0, *map(len, after)]),
            after=np.array([later for row in after for later in row], dtype=np.int64),
            users=np.array(
                [_row(sum(1 << user for user in users), width) for users in problem.consumers], dtype=np.int64
            ),
            first=np.cumsum(first),
            tensor=np.array([tensor for _, tensor, _ in operands], dtype=np.int64),
            writes=np.array([output for _, _, output in operands], dtype=np.int64),
            saved=np.array(saved, dtype=np.int64) // unit,
            alone=np.array(alone, dtype=np.int64),
            whole=np.array(problem.working_set, dtype=np.int64) // unit,
            size=np.array(problem.size, dtype=np.int64) // unit,
            source=np.array(source, dtype=np.int64),
            cheap=np.array(cheap, dtype=np.int64),
            unit=unit,
        )


def _row(mask: int, width: int) -> list[int]:
    return [mask >> BITS * word & (1 << BITS) - 1 for word in range(width)]


@compiled
def contains(row: Integers, member: int) -> bool:
    """Tell whether a set has a member."""
    return (row[member // BITS] >> (member % BITS)) & 1 == 1


@compiled
def covers(row: Integers, other: Integers) -> bool:
    """Tell whether a set contains another."""
    missing = 0
    for word in range(len(row)):
        missing |= other[word] & ~row[word]
    return missing == 0


@compiled
def meets(row: Integers, other: Integers) -> bool:
    """Tell whether two sets have a member in common."""
    common = 0
    for word in range(len(row)):
        common |= other[word] & row[word]
    return common != 0


@compiled
def lowest(word: int) -> int:
    """Give the place of the lowest bit of a word that is not 0."""
    return _PLACE[(word & -word) % 67]


@compiled
def units_of(word: int, offset: int, size: Integers) -> int:
    """Give the units of the tensors in one word of a set, whose first member is ``offset``."""
    total = 0
    while word != 0:
        total += size[offset + lowest(word)]
        word &= word - 1
    return total


@compiled
def mixed(row: Integers) -> np.int64:
    """Hash a set, or any row of words, to a number from 0 to 2**62 - 1."""
    value = np.uint64(0x9E3779B97F4A7C15)
    for word in range(len(row)):
        value ^= np.uint64(row[word])
        value *= np.uint64(0xBF58476D1CE4E5B9)
        value ^= value >> np.uint64(29)
        value *= np.uint64(0x94D049BB133111EB)
        value ^= value >> np.uint64(32)
    return np.int64(value >> np.uint64(2))


@compiled
def push(heap_key: Integers, heap_item: Integers, count: int, key: int, item: int) -> int:
    """Add an entry to a binary heap, the least (key, item) at its top; give the new count."""
    place = count
    while place > 0:
        parent = (place - 1) >> 1
        if heap_key[parent] < key or (heap_key[parent] == key and heap_item[parent] < item):
            break
        heap_key[place] = heap_key[parent]
        heap_item[place] = heap_item[parent]
        place = parent
    heap_key[place] = key
    heap_item[place] = item
    return count + 1


@compiled
def pop(heap_key: Integers, heap_item: Integers, count: int) -> int:
    """Take the top off a binary heap; give the new count."""
    count -= 1
    key, item = heap_key[count], heap_item[count]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        right = child + 1
        if right < count and (
            heap_key[right] < heap_key[child]
            or (heap_key[right] == heap_key[child] and heap_item[right] < heap_item[child])
        ):
            child = right
        if heap_key[child] > key or (heap_key[child] == key and heap_item[child] > item):
            break
        heap_key[place] = heap_key[child]
        heap_item[place] = heap_item[child]
        place = child
    heap_key[place] = key
    heap_item[place] = item
    return count
