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
    owner, tensor, writes, saved, alone : shape (operands,)
        The operator; the operand; 1 where the operator writes it; units that streaming it saves, 0 where it
        cannot be streamed; 1 where it streams only while nothing else of the operator does.
    fifo, whole : shape (operators,)
        Units of first-in first-out buffers; units an operator needs with all operands whole, these included.
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
    owner: Integers
    tensor: Integers
    writes: Integers
    saved: Integers
    alone: Integers
    fifo: Integers
    whole: Integers
    size: Integers
    source: Integers
    cheap: Integers
    unit: int

    @classmethod
    def of(cls, problem: Problem, *, streaming: bool = False) -> Lattice:
        """Flatten a problem."""
        count = problem.operator_count
        width = -(-count // BITS)
        operands = [
            (operator, tensor, tensor in problem.outputs[operator])
            for operator in range(count)
            for tensor in (*problem.inputs[operator], *problem.outputs[operator])
        ]
        saved, alone = [0] * len(operands), [False] * len(operands)
        if streaming:
            for slot, (operator, tensor, _) in enumerate(operands):
                saved[slot] = problem.size[tensor] - problem.window(operator, tensor)
                alone[slot] = problem.streams_alone(operator, tensor)
        before = np.zeros((count, width), dtype=np.int64)
        after: list[set[int]] = [set() for _ in range(count)]
        users = np.zeros((problem.tensor_count, width), dtype=np.int64)
        for tensor, (readers, writer) in enumerate(zip(problem.consumers, problem.producer, strict=True)):
            for reader in readers:
                users[tensor, reader // BITS] |= 1 << reader % BITS
                if writer >= 0:
                    before[reader, writer // BITS] |= 1 << writer % BITS
                    after[writer].add(reader)
        source = np.array([writer < 0 for writer in problem.producer], dtype=np.int64)
        unit = math.gcd(*problem.size, *problem.fifo, *saved)
        owner, tensor_of, writes = (
            np.array(column, dtype=np.int64) for column in zip(*operands, strict=True)
        )
        return cls(
            before=before,
            after_first=np.cumsum([0, *map(len, after)]),
            after=np.array([later for row in after for later in sorted(row)], dtype=np.int64),
            users=users,
            first=np.searchsorted(owner, np.arange(count + 1)),
            owner=owner,
            tensor=tensor_of,
            writes=writes,
            saved=np.array(saved, dtype=np.int64) // unit,
            alone=np.array(alone, dtype=np.int64),
            fifo=np.array(problem.fifo, dtype=np.int64) // unit,
            whole=np.array(problem.working_set, dtype=np.int64) // unit,
            size=np.array(problem.size, dtype=np.int64) // unit,
            source=source,
            cheap=source | np.array(problem.written, dtype=np.int64),
            unit=unit,
        )


@compiled
def contains(row: Integers, member: int) -> bool:
    """Tell whether a set has a member."""
    return (row[member // BITS] >> (member % BITS)) & 1 == 1


@compiled
def add(row: Integers, member: int) -> None:
    """Add a member to a set."""
    row[member // BITS] |= 1 << member % BITS


@compiled
def remove(row: Integers, member: int) -> None:
    """Take a member from a set."""
    row[member // BITS] &= ~(1 << member % BITS)


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
def slot_of(row: Integers, rows: Integers, table: Integers) -> int:
    """Give the place in a hash table of a set that is among rows, or a free one; free ones hold -1."""
    place = mixed(row) & (len(table) - 1)
    while table[place] >= 0:
        different = 0
        for word in range(len(row)):
            different |= rows[table[place], word] ^ row[word]
        if different == 0:
            break
        place = (place + 1) & (len(table) - 1)
    return place
