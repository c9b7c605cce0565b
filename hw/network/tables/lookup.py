"""A table in one lane."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Value

from hw.lib.arithmetic.chosen import chosen
from hw.lib.memory import ports, uninitialised
from hw.network.tables.layouts import TABLE_WORDS


def looked_up(m: Module, name: str, write: Any, byte: Value) -> Value:
    """Return the table's result of a signed byte, in the same cycle; ``write``: a `TableWrite`.

    Bytes of 64 results lie side by side.
    """
    ram = uninitialised(width=32, depth=TABLE_WORDS, ram_style="distributed")
    m.submodules[name] = ram
    put, get = ports(ram, domain="comb")
    place = Cat(byte[:7], ~byte[7])  # from 0 on
    m.d.comb += [
        put.en.eq(write.enable),
        put.addr.eq(write.row),
        put.data.eq(write.data),
        get.addr.eq(place[:6]),
    ]
    return chosen([get.data.word_select(part, 8) for part in range(4)], place[6:]).as_signed()
