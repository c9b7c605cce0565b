"""The drain: results leave the rows, row after row, a beat a cycle."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.config import RESULT_BANKS, AttentionConfig
from hw.attention.core.command import UNIT_ELEMENTS, QueryCommand
from hw.attention.core.result.output import OutputRead
from hw.attention.core.row.cell import row_cells
from hw.lib.delay import delay
from hw.lib.fifo import Fifo

#: Beats in flight and waiting: as many as one beat a cycle needs.
_PLACES = 4
#: Most passes between the loading of their queries and the last beat of their results.  With those that
#: arrive before the level is updated, as deep as the RAM of one LUT.
PASSES_AHEAD = 30


class PassResult(data.StructLayout):
    """The results of a pass, for the drain."""

    def __init__(self, config: AttentionConfig) -> None:
        command = QueryCommand(config)
        super().__init__(
            {
                "rows": command["rows"].shape,  #: Rows in use.
                "units": command["value_units"].shape,  #: Elements of each, in `UNIT_ELEMENTS`.
                "empty": 1,  #: No row sees a key: the results are zeros, without computation.
            }
        )


class OutputBeat(data.StructLayout):
    """A beat of results: ``data``, and ``last`` with the last one of a pass."""

    def __init__(self, beat_width: int) -> None:
        super().__init__({"data": beat_width, "last": 1})


class Drain(wiring.Component):
    """Reads results from the rows' buffers.

    Behaviour
    ---------
    The first beat comes 3 cycles after a result is taken, then one a cycle, also across passes. Each row has
    as many beats as its elements need.

    Why
    ---
    A beat is read only with a credit for the queue behind the rows, so back-pressure need not reach all rows
    in one cycle.  Idle cells drive 0, and beats are ORed: a multiplexer's select would have as many loads as
    all cells have bits.
    """

    #: Cycles from the read of a beat to ``o``: the rows' register, the buffers' output latch, the queue; and
    #: from an empty pass to its first beat.
    LATENCY: ClassVar = 2 + Fifo.LATENCY
    EMPTY_LATENCY: ClassVar = 1 + Fifo.LATENCY

    def __init__(self, config: AttentionConfig, *, beat_width: int) -> None:
        self._config = config
        self._beat_width = beat_width
        self._beats = config.output_beats(beat_width)
        super().__init__(
            {
                #: Every pass in order; see `LATENCY` and `PASSES_AHEAD`.
                "passes": In(stream.Signature(PassResult(config))),
                #: For each pass that is not empty, the bank of its complete results; always ready, as each
                #: bank has an entry.
                "i": In(stream.Signature(range(RESULT_BANKS), always_ready=True)),
                #: ``read``: address of the next read, to all rows.  ``row``: a bit for the row that reads.
                "read": Out(OutputRead(config, beat_width)),
                "row": Out(config.rows),
                #: Beat of each cell, 0 while another cell is read: see `ResultRows`.
                "cells": In(beat_width).array(len(row_cells(config))),
                "o": Out(stream.Signature(OutputBeat(beat_width))),
                "freed": Out(1),  #: The last beat of a bank is read in this cycle.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Count rows and beats; then the buffers' output latch, then the register on ``o``."""
        m = Module()
        config = self._config
        m.submodules.results = results = Fifo(range(RESULT_BANKS), depth=RESULT_BANKS)
        m.d.comb += [results.i.payload.eq(self.i.payload), results.i.valid.eq(self.i.valid)]
        m.submodules.passes = passes = Fifo(PassResult(config), depth=PASSES_AHEAD + 2)
        # Two registers: the end of a pass's loading is late, and the loading waits for room here.
        roomy = Signal(init=1)
        loaded = Signal(name="comes")
        m.d.sync += [
            roomy.eq(passes.level < PASSES_AHEAD),
            loaded.eq(self.passes.valid & roomy),
            passes.i.payload.eq(self.passes.payload),
        ]
        m.d.comb += [self.passes.ready.eq(roomy), passes.i.valid.eq(loaded)]
        result = passes.o.payload

        row = Signal(range(config.rows))
        beat = Signal(range(self._beats))
        issue = Signal()
        last_beat = Signal()
        last_row = Signal()
        last = Signal()
        free = Signal(range(_PLACES + 1), init=_PLACES)
        m.d.comb += [
            last_beat.eq(beat == self._last_beat(result)[: len(beat)]),
            last_row.eq(row == (result.rows - 1)[: len(row)]),
            self.row.eq(1 << row),
            issue.eq(passes.o.valid & (results.o.valid | result.empty) & (free != 0)),
            last.eq(issue & last_beat & last_row),
            passes.o.ready.eq(last),
            self.read.valid.eq(issue & ~result.empty),
            self.read.bank.eq(results.o.payload),
            self.read.beat.eq(beat),
            self.freed.eq(last & ~result.empty),
            results.o.ready.eq(self.freed),
        ]
        with m.If(issue):
            m.d.sync += beat.eq(beat + 1)
            with m.If(last_beat):
                m.d.sync += [beat.eq(0), row.eq(Mux(last_row, 0, row + 1))]

        later = Drain.LATENCY - Fifo.LATENCY
        m.submodules.places = places = Fifo(OutputBeat(self._beat_width), depth=_PLACES)
        m.d.comb += [
            places.i.valid.eq(delay(m, "valid", issue, later)),
            places.i.payload.data.eq(_any(list(self.cells))),
            places.i.payload.last.eq(delay(m, "last", last, later, reset=False)),
        ]
        connect(m, places.o, flipped(self.o))
        m.d.sync += free.eq(free - issue + (self.o.valid & self.o.ready))
        return m

    def _last_beat(self, result: Any) -> Any:
        """Return the beats of a row, less 1."""
        unit = UNIT_ELEMENTS * self._config.result_bits
        if unit >= self._beat_width:
            return result.units * (unit // self._beat_width) - 1
        return (result.units - 1) >> (self._beat_width // unit).bit_length() - 1


def _any(values: list[Any]) -> Any:
    """OR values of which at most one is not 0."""
    while len(values) > 1:
        values = [values[n] | values[min(n + 1, len(values) - 1)] for n in range(0, len(values), 2)]
    return values[0]
