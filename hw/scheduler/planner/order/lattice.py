"""A problem as flat arrays and bit sets, for compiled searches over down-sets.

A **down-set** is what has been executed at some moment of some order: a set of operators that contains, with
each operator, all it depends on.  Sets are rows of 63-bit words (the sign bit stays clear).
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

#: Place of a single bit by its remainder: the powers of two below 2**66 have all different remainders by 67.
_PLACE = np.zeros(67, dtype=np.int64)
for _bit in range(BITS):
    _PLACE[2**_bit % 67] = _bit


class FoundOrder(NamedTuple):
    """Operators by step, the words the order was judged by, and those that no order is below."""

    order: tuple[int, ...]
    words: int
    bound_words: int

    @property
    def proven(self) -> bool:
        """Whether no order is better."""
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
    #: streaming it saves, 0 where it cannot be streamed; 1 where it streams only while nothing else of the
    #: operator does.
    owner: Integers
    tensor: Integers
    saved: Integers
    alone: Integers
    #: ``fifo``, ``whole``: shape (operators,): units of first-in first-out buffers; units an operator needs
    #: with all operands whole, these included.
    fifo: Integers
    whole: Integers
    #: ``size``, ``source``, ``cheap``: shape (tensors,): units; 1 for what lies off chip first; 1 where a
    #: write to memory is never avoidable: sources, outputs.
    size: Integers
    source: Integers
    cheap: Integers
    unit: int  #: Words of a unit: the greatest common divisor of all sizes.

    @classmethod
    def of(cls, problem: Problem, *, streaming: bool = False) -> Lattice:
        """Flatten a problem; without streaming nothing is saved by it."""
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
        """Return the problem with weights for sizes: the heaviest moment of an order bounds its traffic.

        What is alive at some moment and does not lie in the scratchpad was paid for: a unit once, or twice
        where its write is avoidable, too.  So with a price of a unit in the scratchpad of 1 or 2 (in between
        the bound is linear), and absent units weighing what they cost but no more than the price, the weight
        above the price of the whole scratchpad is paid.
        """
        leaving = np.where(self.cheap == 1, 1, 2) * self.size
        # What was there before or is needed again is paid for when it is streamed.
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
    """Tell whether a set has a member."""
    return (row[member // BITS] >> (member % BITS)) & 1 == 1


@compiled
def copy_into(row: Integers, other: Integers) -> None:
    """Make a row equal to another one: of ``row[:] = other`` Numba compiles the error, too, for seconds."""
    for word in range(len(row)):
        row[word] = other[word]


@compiled
def set_all(row: Integers, value: int) -> None:
    """Make all words of a row equal, without ``row[:] = value`` as in `copy_into`."""
    for word in range(len(row)):
        row[word] = value


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
def lowest(word: int) -> int:
    """Return the place of the lowest bit of a word that is not 0."""
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
