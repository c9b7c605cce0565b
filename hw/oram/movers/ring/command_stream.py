"""Takes commands from a stream."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.fifo import Fifo
from hw.oram.config import BEAT_BYTES, OramConfig
from hw.oram.core.layouts import BEAT_BITS
from hw.oram.movers.ring.command_reader import OPERATIONS_BITS, STOP_BIT


class CommandStream(wiring.Component):
    """The part of `CommandReader` where commands come by themselves.

    Parameters
    ----------
    config
        Shape of the map.

    Members
    -------
    operations, start, halt, o, there, busy
        As of `CommandReader`.
    i : In(stream of BEAT_BITS)
        Records; taken in a launch only.  The numbers in them mean nothing.

    Behaviour
    ---------
    ``there`` is in the cycle after that of a record's last beat.
    """

    def __init__(self, config: OramConfig) -> None:
        self._beats = config.command_bytes // BEAT_BYTES
        self.stored = Fifo(BEAT_BITS, depth=self._beats * config.command_records, ram_style="block")
        super().__init__(
            {
                "operations": In(OPERATIONS_BITS),
                "start": In(1),
                "halt": In(1),
                "i": In(stream.Signature(BEAT_BITS)),
                "o": Out(stream.Signature(BEAT_BITS)),
                "there": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Count beats and records."""
        m = Module()
        m.submodules.stored = stored = self.stored
        connect(m, stored.o, flipped(self.o))
        final = self._beats - 1
        place = Signal(range(self._beats))
        missing, endless, ending = Signal(OPERATIONS_BITS), Signal(), Signal()
        taken, stop = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(stored.i.ready & self.busy & (endless | missing.any()) & ~self.halt),
            taken.eq(self.i.valid & self.i.ready),
            stop.eq(Mux(place == 0, self.i.payload[STOP_BIT], ending)),
            stored.i.valid.eq(taken & ~stop),
            stored.i.payload.eq(self.i.payload),
        ]
        m.d.sync += self.there.eq(0)
        with m.If(self.busy & ~endless & ~missing.any()):
            m.d.sync += self.busy.eq(0)
        with m.If(taken):
            m.d.sync += [place.eq(place + 1), ending.eq(stop)]
            with m.If(place == final):
                m.d.sync += [place.eq(0), self.there.eq(~stop), missing.eq(missing - 1)]
                with m.If(stop):
                    m.d.sync += self.busy.eq(0)
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), missing.eq(self.operations), endless.eq(self.operations == 0)]
        return m
