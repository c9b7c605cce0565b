"""Delayed pulses."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.errors import check_range
from hw.lib.fifo import Fifo


class Timer(wiring.Component):
    """Repeats every pulse after a fixed time.

    ``cycles``: from a pulse to its repetition, at least 3, or 5 if many are in flight. ``spacing``: least
    cycles between pulses. ``most``: pulses in flight, or 0 for as many as the cycles allow.

    Why
    ---
    An action at a fixed time after a public event must not depend on the arrival of its data. Ends are
    stamped and compared: a shift register would need a reset for each flip-flop.
    """

    def __init__(self, *, cycles: int, spacing: int = 1, most: int = 0) -> None:
        self._cycles = cycles
        bits = cycles.bit_length()
        self.ends = Fifo(bits, depth=most or -(-cycles // spacing) + 1)
        least = 2 + (Fifo.LATENCY if self.ends.kind == "shallow" else Fifo.DEEP_LATENCY)
        check_range("cycles", cycles, least)
        super().__init__(
            {
                "i": In(1),
                "o": Out(1),  #: ``i`` delayed by ``cycles``; reset forgets pulses in flight.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Stamps wait in a FIFO; the oldest is compared with the time."""
        m = Module()
        m.submodules.ends = ends = self.ends
        now, end = (Signal.like(ends.i.payload, name=name) for name in ("now", "end"))
        due = ends.o.valid & (ends.o.payload == now)
        m.d.comb += [
            end.eq(now + self._cycles - 1),
            ends.i.valid.eq(self.i),
            ends.i.payload.eq(end),
            ends.o.ready.eq(due),
        ]
        m.d.sync += [now.eq(now + 1), self.o.eq(due)]
        return m
