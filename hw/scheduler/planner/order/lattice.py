"""A problem as flat arrays and bit sets, for compiled searches over down-sets.

A **down-set** is the set of operators executed at some moment of some order: with each operator it contains
all that it depends on.  Sets are rows of 63-bit words (the sign bit stays clear).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hw.scheduler.compiled import compiled
from hw.scheduler.plan.problem import Problem

Integers = NDArray[np.int64]

#: Members of a set in one word.
BITS = 63

#: Index of a single bit by its remainder: the powers of two below 2**66 have distinct remainders modulo 67.
_PLACE = np.zeros(67, dtype=np.int64)
for _bit in range(BITS):
    _PLACE[2**_bit % 67] = _bit


class FoundOrder(NamedTuple):
    """Operators by step, the order's words, and a lower bound of all orders."""

    order: tuple[int, ...]
    words: int
    bound_words: int

    @property
    def proven(self) -> bool:
        """Whether the order meets the bound."""
        return self.words == self.bound_words


class Lattice(NamedTuple):
    """A problem for compiled searches."""

    before: Integers  #: Shape (operators, words of a set): direct predecessors of each operator.
    #: ``after_first``, ``after``: shape (operators + 1,), shape (dependences,): direct successors of operator
    #: ``o``: ``after[after_first[o] : after_first[o + 1]]``.
    after_first: Integers
    after: Integers
    users: Integers  #: Shape (tensors, words of a set): operators that read each tensor.
    #: Shape (operators + 1,): where the operands of each operator begin, inputs before outputs.
    first: Integers
    #: ``owner``, ``tensor``, ``saved``, ``alone``: shape (operands,): the operator; the operand; units that
    #: streaming saves, 0 if it cannot stream; 1 if it streams only while no other operand does.
    owner: Integers
    tensor: Integers
    saved: Integers
    alone: Integers
    #: ``fifo``, ``whole``: shape (operators,): units of FIFOs; units an operator needs with all operands
    #: whole, FIFOs included.
    fifo: Integers
    whole: Integers
    #: ``size``, ``source``, ``cheap``: shape (tensors,): units; 1 for tensors that begin off chip; 1 if a
    #: write to memory is never avoidable: sources, outputs.
    size: Integers
    source: Integers
    cheap: Integers
    unit: int  #: Words of a unit: the greatest common divisor of all sizes.

    @classmethod
    def of(cls, problem: Problem, *, streaming: bool = False) -> Lattice:
        """Flatten a problem; without ``streaming`` all ``saved`` are 0."""
        operators, tensors = range(problem.operator_count), range(problem.tensor_count)
        operands = [(o, tensor) for o in operators for tensor in (*problem.inputs[o], *problem.outputs[o])]
        saved = [streaming * (problem.size[tensor] - problem.window(o, tensor)) for o, tensor in operands]
        unit = math.gcd(*problem.size, *problem.fifo, *saved)
        before, users = (
            np.zeros((len(rows), -(-len(operators) // BITS)), np.int64) for rows in (operators, tensors)
        )
        after: list[set[int]] = [set() for _ in operators]
        for tensor in tensors:
            writer = problem.producer[tensor]
            for reader in problem.consumers[tensor]:
                add(users[tensor], reader)
                if writer >= 0:
                    add(before[reader], writer)
                    after[writer].add(reader)
        source = _row([writer < 0 for writer in problem.producer])
        return cls(
            before=before,
            after_first=np.cumsum([0, *map(len, after)]),
            after=_row([later for row in after for later in sorted(row)]),
            users=users,
            first=np.searchsorted([o for o, _ in operands], np.arange(len(operators) + 1)),
            owner=_row([o for o, _ in operands]),
            tensor=_row([tensor for _, tensor in operands]),
            saved=_row(saved) // unit,
            alone=_row([streaming and problem.streams_alone(o, tensor) for o, tensor in operands]),
            fifo=_row(problem.fifo) // unit,
            whole=_row(problem.working_set) // unit,
            size=_row(problem.size) // unit,
            source=source,
            cheap=source | _row(problem.written),
            unit=unit,
        )

    def weighed(self, price: int) -> Lattice:
        """Return the problem with weights as sizes: the heaviest moment of an order bounds its traffic.

        A live unit outside the scratchpad was paid for once, or twice if its write is avoidable, too.  Each
        live unit weighs this cost, at most ``price``; a scratchpad unit holds a weight of ``price``.  Then
        the weight beyond the whole scratchpad is paid in traffic.  Prices 1 and 2 suffice: in between the
        bound is linear.
        """
        leaving = np.where(self.cheap == 1, 1, 2) * self.size
        # A tensor that existed before or is needed again is paid for when it is streamed.
        uses = np.bitwise_count(self.users).sum(axis=1)
        paid = np.where(uses > self.source, leaving, 0)[self.tensor]
        gain = np.maximum(price * self.saved - paid, 0)
        together, alone = np.zeros((2, len(self.before)), dtype=np.int64)
        np.add.at(together, self.owner, gain * (1 - self.alone))
        np.maximum.at(alone, self.owner, gain * self.alone)
        return self._replace(
            size=np.minimum(price * self.size, leaving),
            whole=price * self.whole - np.maximum(together, alone),
        )


def _row(values: Sequence[int]) -> Integers:
    return np.array(values, dtype=np.int64)


@compiled
def contains(row: Integers, member: int) -> bool:
    """Whether a set has a member."""
    return (row[member // BITS] >> (member % BITS)) & 1 == 1


@compiled
def copy_into(row: Integers, other: Integers) -> None:
    """Copy a row.  For ``row[:] = other`` Numba would also compile its error path, for seconds."""
    for word in range(len(row)):
        row[word] = other[word]


@compiled
def set_all(row: Integers, value: int) -> None:
    """Set all words of a row, without ``row[:] = value``; see `copy_into`."""
    for word in range(len(row)):
        row[word] = value


@compiled
def add(row: Integers, member: int) -> None:
    """Add a member to a set."""
    row[member // BITS] |= 1 << member % BITS


@compiled
def remove(row: Integers, member: int) -> None:
    """Remove a member from a set."""
    row[member // BITS] &= ~(1 << member % BITS)


@compiled
def covers(row: Integers, other: Integers) -> bool:
    """Whether a set contains another."""
    missing = 0
    for word in range(len(row)):
        missing |= other[word] & ~row[word]
    return missing == 0


@compiled
def lowest(word: int) -> int:
    """Return the index of the lowest set bit of a word that is not 0."""
    return _PLACE[(word & -word) % 67]


@compiled
def units_of(row: Integers, size: Integers) -> int:
    """Return the units of the members of a set."""
    total = 0
    for word in range(len(row)):
        left = row[word]
        while left != 0:
            total += size[word * BITS + lowest(left)]
            left &= left - 1
    return total
