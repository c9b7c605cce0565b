"""Counting and choosing among the bits of a word."""

import functools
import operator
from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value

#: Bits counted together in the first step.
_GROUP = 6
#: Bits of two words that a LUT compares, and words of which it selects a bit.
_COMPARED = _SELECTED = 3
#: Maximum number of bits for which a carry chain finds the lowest.
_CHAIN = 16


def named(m: Module, name: str, value: Any) -> Signal:
    """Return a signal with a value, for code that takes its bits one by one.

    Amaranth would write the whole expression once for each bit, and a design would take minutes to generate.
    """
    value = Value.cast(value)
    signal = Signal(len(value), name=name)
    m.d.comb += signal.eq(value)
    return signal


def any_of(values: Sequence[Any]) -> Value:
    """Return the bitwise or of values, as a tree."""
    values = [Value.cast(value) for value in values]
    while len(values) > 1:
        values = [
            functools.reduce(operator.or_, values[at : at + _GROUP]) for at in range(0, len(values), _GROUP)
        ]
    return values[0]


def select(chosen: Any, values: Sequence[Any]) -> Value:
    """Return the or of those ``values`` whose bit is set in ``chosen``."""
    chosen = Value.cast(chosen)
    return any_of(
        [Value.cast(value) & chosen[at].replicate(len(Value.cast(value))) for at, value in enumerate(values)]
    )


def select_many(m: Module, name: str, chosen: Value, values: Sequence[Value]) -> Value:
    """Return the same as `select`; a LUT selects among three values.

    ``name``: begins the names of inner signals. They are kept, or tools would build trees of more LUTs.
    """
    ones = []
    for at in range(0, len(values), _SELECTED):
        one = Signal(len(values[at]), name=f"{name}_{at}", attrs={"keep": 1})
        m.d.comb += one.eq(select(chosen[at : at + _SELECTED], values[at : at + _SELECTED]))
        ones.append(one)
    return any_of(ones)


def encode(one: Value) -> Value:
    """Return the number of the only bit that is set; 0 when none is."""
    width = max(1, (len(one) - 1).bit_length())
    return Cat(Cat(one[at] for at in range(len(one)) if at >> bit & 1).any() for bit in range(width))


def equal_words(
    m: Module, name: str, words: Sequence[Value], word: Value, wanted: Value | None = None
) -> Value:
    """Compare a word with all ``words``, where ``wanted``; a LUT compares three bits.

    ``name``: begins the names of inner signals. They are kept, or tools would build trees of pairs, of twice
    as many LUTs.
    """
    parts = []
    for last in range(len(word), 0, -_COMPARED):
        bits = slice(max(0, last - _COMPARED), last)
        part = Signal(len(words), name=f"{name}_{last}", attrs={"keep": 1})
        equal = Cat(old[bits] == word[bits] for old in words)
        m.d.comb += part.eq(equal if wanted is None or last > _COMPARED else equal & wanted)
        parts.append(part)
    return functools.reduce(operator.and_, parts)


def lowest(m: Module, name: str, bits: Value) -> Value:
    """Return the lowest set bit alone; ``name`` begins the names of inner signals."""
    if len(bits) <= _CHAIN:
        return (bits & (~bits + 1))[: len(bits)]
    bits = named(m, f"{name}_bits", bits)
    groups = [bits[at : at + 8] for at in range(0, len(bits), 8)]
    first = named(m, f"{name}_first", lowest(m, name, Cat(group.any() for group in groups)))
    return Cat(lowest(m, name, group) & first[at].replicate(len(group)) for at, group in enumerate(groups))


def count_before(m: Module, name: str, bits: Value, *, cycles: int) -> list[Value]:
    """Count the set bits below each bit, and at last all set bits.

    ``cycles``: latency: 0, or 1 with a register inside.
    """
    inner: list[list[Value]] = []
    totals: list[Value] = []
    width = (len(bits)).bit_length()
    for at in range(0, len(bits), _GROUP):
        group = bits[at : at + _GROUP]
        counts = [_sum([group[below] for below in range(upto)]) for upto in range(len(group) + 1)]
        if cycles:
            held = [Signal(3, name=f"{name}_{at}_{upto}", reset_less=True) for upto in range(len(counts))]
            m.d.sync += [signal.eq(count) for signal, count in zip(held, counts, strict=True)]
            counts = list(held)
        inner.append(counts[:-1])
        totals.append(counts[-1])
    before = [_sum(totals[:at]) for at in range(len(totals) + 1)]
    found = [(before[at] + count)[:width] for at, counts in enumerate(inner) for count in counts]
    return [*found, before[-1][:width]]


def _sum(values: Sequence[Value]) -> Value:
    if not values:
        return Const(0, 1)
    while len(values) > 1:
        pairs = [values[at] + values[at + 1] for at in range(0, len(values) - 1, 2)]
        values = [*pairs, *values[len(pairs) * 2 :]]
    return values[0]
