"""The longest time that anything took."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.fifo import Fifo

#: Bits of a time in cycles: more than any deadline.
WAIT_BITS = 13


class Longest(wiring.Component):
    """Measures from each pulse of one kind to its answer.

    Parameters
    ----------
    limit
        Most that can be unanswered.

    Members
    -------
    asked, came : In(1)
        Answers come in the order of what was asked, at the earliest 4 cycles after.
    cycles : Out(13)
        Most cycles from one to its answer so far; modulo 8,192.

    Why
    ---
    It tells how much of a deadline is used.  It follows from what nobody outside may know: whoever makes it
    readable says so (docs).
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        super().__init__({"asked": In(1), "came": In(1), "cycles": Out(WAIT_BITS)})

    def elaborate(self, platform: Any) -> Module:
        """Stamps wait in a FIFO; the difference takes a cycle, the comparison another."""
        m = Module()
        now, took, known = Signal(WAIT_BITS), Signal(WAIT_BITS, reset_less=True), Signal()
        m.submodules.stamps = stamps = Fifo(WAIT_BITS, depth=self._limit)
        m.d.comb += [
            stamps.i.valid.eq(self.asked),
            stamps.i.payload.eq(now),
            stamps.o.ready.eq(self.came),
        ]
        m.d.sync += [now.eq(now + 1), took.eq(now - stamps.o.payload), known.eq(self.came)]
        with m.If(known & (took > self.cycles)):
            m.d.sync += self.cycles.eq(took)
        return m
