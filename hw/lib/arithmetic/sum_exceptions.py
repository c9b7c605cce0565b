"""Exceptions of a sum: pairs of operands whose rounding is inverted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value, signed
from amaranth.lib import data

from hw.errors import check_range
from hw.lib.delay import delay

#: Exceptions of a sum.
EXCEPTIONS = 2
#: Cycles from operands to their match.
MATCH_LATENCY = 2


class SumExceptions(data.ArrayLayout):
    """The exceptions of a sum; those that are not used match no operands.

    >>> SumExceptions().size
    34
    """

    def __init__(self) -> None:
        pair = data.StructLayout({"used": 1, "first": signed(8), "second": signed(8)})
        super().__init__(pair, EXCEPTIONS)


def exception_fields(pairs: Sequence[tuple[int, int]]) -> list[dict[str, int]]:
    """Return the fields of `SumExceptions` for pairs of int8."""
    check_range("exceptions of a sum", len(pairs), 0, EXCEPTIONS)
    used = [{"used": 1, "first": first, "second": second} for first, second in pairs]
    return used + [{"used": 0, "first": 0, "second": 0}] * (EXCEPTIONS - len(pairs))


def matched(m: Module, name: str, operands: tuple[Value, Value], exceptions: Any, *, latency: int) -> Value:
    """Say whether the operands of ``latency`` cycles ago are one of the exceptions.

    * ``name``: of the registers. ``operands``: two int8.
    * ``exceptions``: a view of `SumExceptions`; they stay from the first operands on.
    * ``latency``: at least `MATCH_LATENCY`.
    """
    # An operand's 8 bits take three LUTs, all pairs one.
    firsts = Signal(EXCEPTIONS, name=f"{name}_firsts", reset_less=True)
    seconds = Signal(EXCEPTIONS, name=f"{name}_seconds", reset_less=True)
    match = Signal(name=f"{name}_match", reset_less=True)
    for n in range(EXCEPTIONS):
        m.d.sync += firsts[n].eq(operands[0] == exceptions[n].first)
        m.d.sync += seconds[n].eq(operands[1] == exceptions[n].second)
    used = Cat(exceptions[n].used for n in range(EXCEPTIONS))
    m.d.sync += match.eq((firsts & seconds & used).any())
    return delay(m, f"{name}_late_match", match, latency - MATCH_LATENCY, reset=False)
