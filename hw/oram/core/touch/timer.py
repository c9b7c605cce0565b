"""Pulses, each after a fixed time."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError
from hw.lib.fifo import Fifo


class Timer(wiring.Component):
    """Gives every pulse again.

    Parameters
    ----------
    cycles
        From a pulse to its repetition, at least 5.
    spacing
        Cycles between pulses at least.

    Members
    -------
    i : In(1)
    o : Out(1)
        ``i`` of ``cycles`` before; reset forgets what is under way.

    Why
    ---
    What may happen at a fixed time after something public must not depend on when its data came.  Ends are
    stamped and compared instead of shifted through a line of flip-flops, which reset would have to reach.
    """

    def __init__(self, *, cycles: int, spacing: int = 1) -> None:
        if cycles < 2 + Fifo.DEEP_LATENCY:
            raise InputError("cycles", cycles, f"at least {2 + Fifo.DEEP_LATENCY}")
        self._cycles = cycles
        self._places = -(-cycles // spacing) + 1
        super().__init__({"i": In(1), "o": Out(1)})

    def elaborate(self, platform: Any) -> Module:
        """Stamps wait in a FIFO; the oldest is compared with the time."""
        m = Module()
        bits = self._cycles.bit_length()
        now, end = Signal(bits), Signal(bits)
        m.submodules.ends = ends = Fifo(bits, depth=self._places)
        due = ends.o.valid & (ends.o.payload == now)
        m.d.comb += [
            end.eq(now + self._cycles - 1),
            ends.i.valid.eq(self.i),
            ends.i.payload.eq(end),
            ends.o.ready.eq(due),
        ]
        m.d.sync += [now.eq(now + 1), self.o.eq(due)]
        return m
