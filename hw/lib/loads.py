"""Control of wide data by registers that each have few loads."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value

#: Loads of a register of control: more fill an area that its net takes long to cross.
LOADS = 64


def copies(like: Signal, count: int) -> list[Signal]:
    """Give ``count`` registers like ``like``, to be driven by one value, each of them for a part of the data.

    They are equal, and tools are told not to make one of them.
    """
    attrs = {"keep": 1} if count > 1 else {}
    return [Signal.like(like, name=f"{like.name}_{n}", attrs=attrs) for n in range(count)]


def shifted_down(m: Module, lanes: Sequence[Value], amount: Signal, count: int) -> list[Value]:
    """Give ``lanes[amount : amount + count]``, of lanes of equal width; those beyond the last repeat it.

    The highest bit of ``amount`` shifts first, so that later ones shift few lanes more than ``count``.  Tools
    take the bits of ``>>`` in the reverse order: each then moves all lanes that a later one may ask for.
    """
    width, left = len(lanes[0]), len(lanes)
    value: Value = Cat(lanes)
    for bit in reversed(range(len(amount))):
        step = 1 << bit
        kept = min(left, count + step - 1)
        # A signal of its own: as an expression it would be written out for each of its uses, and so on.
        shifted = Signal(width * kept, name=f"{amount.name}_{bit}")
        beyond = max(0, min(kept, step + kept - left))
        further = Cat(value[width * step :], value[-width:].replicate(beyond))
        m.d.comb += shifted.eq(Mux(amount[bit], further, value))
        value, left = shifted, kept
    return [value[n * width : (n + 1) * width] for n in range(min(count, left))]
