"""Parts of shifters in levels: the choice of a window, and the check of the bits above it."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Mux, Value


def chosen(amount: Value, values: Sequence[Value | int]) -> Value:
    """Return the value of four that two bits choose."""
    lower, upper = (Mux(amount[0], values[n + 1], values[n]) for n in (0, 2))
    return Mux(amount[1], upper, lower)


def differs(bits: Value, sign: Value) -> Value:
    """Say whether a bit differs from the sign."""
    return (bits ^ sign.replicate(len(bits))).any()
