"""Rotation of the granules of a word."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Array, Cat, Mux, Signal, Value

from hw.lib.loads import copies
from hw.network.scratchpad.shape import GranuleShape

#: Bits of each granule that one copy of a rotation serves.
_COPY_BITS = 32


def rotation_copies(shape: GranuleShape, name: str) -> list[Signal]:
    """Return registers of a rotation for `rotated`; drive all with one value."""
    count = 2 * (shape.granule_bits // _COPY_BITS)
    return copies(Signal(shape.offset_bits, name=name, reset_less=True), count)


def rotated(granules: Any, amounts: list[Signal]) -> list[Value]:
    """Return granules from number ``amount`` on, in a circle; half of them have a copy of their own."""
    count = len(granules)
    result = []
    for place in range(count):
        chunks = []
        for chunk in range(len(amounts) // 2):
            amount = amounts[2 * chunk + (2 * place >= count)]
            values: list[Any] = [
                granules[(place + step) % count].word_select(chunk, _COPY_BITS) for step in range(count)
            ]
            for bit in range(len(amount)):
                values = [
                    Mux(amount[bit], odd, even) for even, odd in zip(values[::2], values[1::2], strict=True)
                ]
            chunks.append(values[0])
        result.append(Cat(*chunks))
    return result


def turned(bits: Value, amount: Value) -> list[Value]:
    """Return bits from number ``amount`` on, in a circle."""
    return [
        Array(bits[(n + step) % len(bits)] for step in range(len(bits)))[amount] for n in range(len(bits))
    ]
