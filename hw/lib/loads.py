"""Control registers of wide data, each with few loads."""

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value

#: Loads of a control register: the net of more loads crosses a large area and is slow.
LOADS = 64
#: Bits that simulators compute at once; parts not aligned to them take twice the steps.
_WORD_BITS = 32


def copies(like: Signal, count: int) -> list[Signal]:
    """Return ``count`` registers like ``like``, one for each part of the data; drive all with one value.

    They are equal; the attribute ``keep`` stops tools from merging them.

    >>> copies(Signal(3, name="offset"), 2)
    [(sig offset_0), (sig offset_1)]
    """
    attrs = {"keep": 1} if count > 1 else {}
    return [Signal.like(like, name=f"{like.name}_{n}", attrs=attrs) for n in range(count)]


def shifted_down(m: Module, value: Value, width: int, amounts: Sequence[Signal], count: int) -> Value:
    """Return ``count`` lanes of ``value``, of ``width`` bits each, from lane ``amount`` on; the last lane
    repeats beyond the end.

    ``amounts`` are `copies` of the amount; each shifts some neighbouring bits.  The highest bit of an amount
    shifts first, so that later bits shift few lanes more than ``count``.  Tools build ``>>`` from the lowest
    bit, and every level then shifts all lanes.
    """
    left = len(value) // width
    for bit in reversed(range(len(amounts[0]))):
        step = 1 << bit
        kept = min(left, count + step - 1)
        # A signal: as an expression it would be written out for each use.
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
