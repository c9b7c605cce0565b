"""Control of wide data by registers that each have few loads."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value

#: Loads of a register of control: more fill an area that its net takes long to cross.
LOADS = 64
#: Bits that simulators compute at once; parts that begin between them take twice as many steps.
_WORD_BITS = 32


def copies(like: Signal, count: int) -> list[Signal]:
    """Return ``count`` registers like ``like``, to be driven by one value, each of them for a part of the
    data.

    They are equal, and tools are told not to make one of them.
    """
    attrs = {"keep": 1} if count > 1 else {}
    return [Signal.like(like, name=f"{like.name}_{n}", attrs=attrs) for n in range(count)]


def shifted_down(m: Module, value: Value, width: int, amounts: Sequence[Signal], count: int) -> Value:
    """Return ``count`` lanes of ``value``, of ``width`` bits each, from lane ``amount`` on; those beyond the
    last repeat it.

    ``amounts`` are `copies` of the amount, each of which shifts some neighbouring bits.  The highest bit of
    an amount shifts first, so that later ones shift few lanes more than ``count``.  Tools take the bits of
    ``>>`` in the reverse order: each then moves all lanes that a later one may ask for.
    """
    left = len(value) // width
    for bit in reversed(range(len(amounts[0]))):
        step = 1 << bit
        kept = min(left, count + step - 1)
        # A signal of its own: as an expression it would be written out for each of its uses, and so on.
        shifted = Signal(width * kept, name=f"{amounts[0].name}_{bit}")
        beyond = max(0, min(kept, step + kept - left))
        further = Cat(value[width * step :], value[-width:].replicate(beyond))
        share = -(-len(shifted) // len(amounts))
        if share > _WORD_BITS:
            share += -share % _WORD_BITS
        for amount, first in zip(amounts, range(0, len(shifted), share), strict=False):
            bits = slice(first, min(first + share, len(shifted)))
            m.d.comb += shifted[bits].eq(Mux(amount[bit], further[bits], value[bits]))
        value, left = shifted, kept
    return value[: width * count]
