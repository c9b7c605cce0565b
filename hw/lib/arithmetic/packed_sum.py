"""Sums of packed words (`hw.lib.arithmetic.packed`) beyond those that a word has room for."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Signal, Value

from hw.lib.arithmetic.adder_tree import RADIX
from hw.lib.arithmetic.packed import FIELD_BITS, WORD_BITS


def packed_sums(m: Module, name: str, words: Sequence[Value]) -> tuple[Value, Value, Value]:
    """Add up the fields of ``words``, a level of the tree a cycle.

    ``name``: of the registers: ``name_high_LEVEL_INDEX`` and so on.

    Returns three values of `hw.lib.arithmetic.adder_tree.tree_levels` cycles ago: ``high``, ``carry`` and
    ``low``, the first and the last signed.  The sum of the high fields is ``high + carry``, that of the low
    ones ``low``.

    Why
    ---
    A high field lacks one if the low field is negative.  That one is the carry-in of an addition which comes
    anyway; the last is left to an addition of the caller.
    """
    highs = [word[FIELD_BITS:WORD_BITS].as_signed() for word in words]
    high, (carry,) = _tree(m, f"{name}_high", highs, [word[FIELD_BITS - 1] for word in words])
    low, _ = _tree(m, f"{name}_low", [word[:FIELD_BITS].as_signed() for word in words], [])
    return high, carry, low


def with_carry(one: Value, other: Value, carry: Value) -> Value:
    """Return ``one + other + carry`` of two signed values and a bit, with one adder."""
    return (Cat(carry, one).as_signed() + Cat(carry, other).as_signed()) >> 1


def _tree(m: Module, name: str, values: list[Value], carries: list[Value]) -> tuple[Value, list[Value]]:
    """Add values and as many carries, or none; return the sum and the carry that is left."""
    level = 0
    while len(values) > 1:
        level += 1
        sums: list[Value] = []
        left: list[Value] = []
        for n, first in enumerate(range(0, len(values), RADIX)):
            group = slice(first, first + RADIX)
            total, rest = _added(values[group], carries[group])
            held = Signal(total.shape(), name=f"{name}_{level}_{n}", reset_less=True)
            m.d.sync += held.eq(total)
            sums.append(held)
            for bit in rest:
                late = Signal(name=f"{name}_carry_{level}_{n}", reset_less=True)
                m.d.sync += late.eq(bit)
                left.append(late)
        values, carries = sums, left
    return values[0], carries


def _added(values: Sequence[Value], carries: Sequence[Value]) -> tuple[Value, Sequence[Value]]:
    """Add by halves, with a carry-in for each addition while there are carries."""
    if len(values) == 1:
        return values[0], carries
    middle = len(values) // 2
    lower, carries = _added(values[:middle], carries)
    upper, carries = _added(values[middle:], carries)
    if not carries:
        return lower + upper, carries
    return with_carry(lower, upper, carries[0]), carries[1:]
