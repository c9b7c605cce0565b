"""Results of the attention core, to the scratchpad."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.core.drain import OutputBeat
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid
from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.layouts import RowPlace
from hw.network.scratchpad.writer import GranuleWritePort

#: Writes that are not granted yet: more than a port of the scratchpad takes.
_WRITES = 32


class AttentionResultWriter(wiring.Component):
    """Writes each beat of results at its place.

    Behaviour
    ---------
    A beat a cycle.  ``done`` is up for a cycle when all words of a command are granted: reads taken from now
    on see them.
    """

    def __init__(self, config: AttentionUnitConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(OutputBeat(config.beat_granules * config.shape.granule_bits))),
                "place": In(stream.Signature(RowPlace(config, config.beat_granules))),
                "write": Out(GranuleWritePort(config.shape)),
                "done": Out(1),
                "blocked": Out(1),  #: A beat waits for the scratchpad.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Beats -> register -> words; a queue of those that are not granted."""
        m = Module()
        bits, count = self._config.shape.granule_bits, self._config.beat_granules
        m.submodules.beats = beats = Skid(OutputBeat(count * bits))
        m.submodules.ungranted = ungranted = Fifo(1, depth=_WRITES)
        connect(m, flipped(self.i), beats.i)
        word = self.write.write
        there = Signal()
        moves = Signal()
        m.d.comb += [
            there.eq(beats.o.valid & self.place.valid & ungranted.i.ready),
            word.valid.eq(there),
            word.payload.address.eq(self.place.payload.address),
            word.payload.enable.eq(self.place.payload.enable),
            *(
                Value.cast(word.payload.data[n]).eq(beats.o.payload.data.word_select(n, bits))
                for n in range(count)
            ),
            moves.eq(there & word.ready),
            beats.o.ready.eq(moves),
            self.place.ready.eq(moves),
            ungranted.i.valid.eq(moves),
            ungranted.i.payload.eq(self.place.payload.last),
            ungranted.o.ready.eq(self.write.written),
        ]
        m.d.sync += [
            self.done.eq(self.write.written & ungranted.o.payload),
            self.blocked.eq(there & ~word.ready),
        ]
        return m
