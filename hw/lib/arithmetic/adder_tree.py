"""A pipelined adder tree: a register behind every sum, so that no path grows with the number of values."""

import contextlib
from collections.abc import Sequence

from amaranth.hdl import Module, Signal, Value

from hw.errors import InputError, check_range

#: Values added in one cycle: two carry chains between registers.
RADIX = 4


def tree_levels(count: int) -> int:
    """Return the levels of a tree over ``count`` values, which are the cycles from them to their sum."""
    check_range("count", count, 1)
    levels = 0
    while count > 1:
        levels, count = levels + 1, -(-count // RADIX)
    return levels


def adder_tree(
    m: Module,
    name: str,
    values: Sequence[Value],
    bits: int,
    *,
    first_level: int = 1,
    enables: Sequence[Value] | None = None,
) -> Value:
    """Add ``values``, a level a cycle.

    ``name``: of the registers, which are ``name_LEVEL_INDEX``. ``values``: at least one. ``bits``: of the
    final sum.  All registers have as many: sums are modulo ``2**bits``, and nothing is extended twice.
    ``first_level``: the number of the first level in the names. ``enables``: a bit for the registers of each
    level, the first level's first; without them they always change.

    Returns the sum of the ``values`` of `tree_levels` cycles ago, signed, ``bits`` wide; a single value as it
    is.
    """
    levels = tree_levels(len(values))
    if enables is not None and len(enables) != levels:
        raise InputError("enables", enables, f"one for each of {levels} levels")
    for level in range(levels):
        sums = partial_sums(values)
        values = registers(f"{name}_{first_level + level}", len(sums), bits)
        with contextlib.nullcontext() if enables is None else m.If(enables[level]):
            m.d.sync += [register.eq(value) for register, value in zip(values, sums, strict=True)]
    return values[0].as_signed()


def partial_sums(values: Sequence[Value]) -> list[Value]:
    """Add `RADIX` values at a time: one level of a tree, as expressions."""
    return [_sum(values[first : first + RADIX]) for first in range(0, len(values), RADIX)]


def registers(name: str, count: int, bits: int) -> list[Signal]:
    """Make ``count`` registers for data, ``name_INDEX``, which reset leaves as they are."""
    return [Signal(bits, name=f"{name}_{n}", reset_less=True) for n in range(count)]


def _sum(values: Sequence[Value]) -> Value:
    """Add by halves, so that no carry chain is longer than needed."""
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    return _sum(values[:middle]) + _sum(values[middle:])
