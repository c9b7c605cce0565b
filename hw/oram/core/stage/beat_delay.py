"""A delay line for beats."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.errors import check_range
from hw.lib.delay import delay
from hw.lib.fifo import SHALLOW_DEPTH
from hw.lib.memory import ports, uninitialised
from hw.oram.core.layouts import BEAT_BITS


class BeatDelay(wiring.Component):
    """Delays beats by ``cycles`` cycles, at least 3.

    Behaviour
    ---------
    A memory with a wrapping address: a place is read before it is written again.
    """

    def __init__(self, *, cycles: int) -> None:
        check_range("cycles", cycles, 3)
        self._cycles = cycles
        beats = stream.Signature(BEAT_BITS, always_ready=True)
        super().__init__(
            {
                "i": In(beats),
                "o": Out(beats),
                "ahead": Out(1),  #: ``o`` has a beat two cycles later.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A register follows the memory's own."""
        m = Module()
        depth = self._cycles - 1
        m.submodules.beats = beats = uninitialised(
            width=BEAT_BITS, depth=depth, ram_style="distributed" if depth <= SHALLOW_DEPTH else "block"
        )
        write, read = ports(beats)
        at = Signal(range(depth))
        following = Mux(at == depth - 1, 0, at + 1)
        held = Signal(BEAT_BITS, reset_less=True)
        m.d.sync += [at.eq(following), held.eq(read.data)]
        m.d.comb += [
            write.addr.eq(at),
            write.data.eq(self.i.payload),
            write.en.eq(1),
            read.addr.eq(following),
            read.en.eq(1),
            self.ahead.eq(ahead := delay(m, "waiting", self.i.valid, self._cycles - 2)),
            self.o.valid.eq(delay(m, "coming", ahead, 2)),
            self.o.payload.eq(held),
        ]
        return m
