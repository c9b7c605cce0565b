"""Starts each row of results when its rows of the map have arrived, and frees rows."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import SIDE_BITS, ConvConfig
from hw.conv.core.layouts import SLOT_BITS, TapCommand


class RowGate(wiring.Component):
    """Compares the rows of the map that have arrived with those of the next row of results.

    Behaviour
    ---------
    Two limits move down the map by the stride with each row: rows needed, and rows free.  Both are computed
    for the next row while one runs.
    """

    #: Cycles from ``filled`` to ``ready``; fewest cycles from ``begin`` to ``begin``.
    LATENCY: ClassVar = 2
    INTERVAL: ClassVar = 4

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse: before the first row of results.
                "begin": In(1),  #: The next row begins; only with ``ready``.
                "job": In(TapCommand(config)),  #: Constant from ``start`` on.
                "filled": In(SIDE_BITS),  #: Rows that are in the line buffer.
                #: All rows for the next row of results have arrived.  Low for three cycles after ``start``
                #: and ``begin``.
                "ready": Out(1),
                #: ``row``, ``slot``: the first row of the map that the current row of results needs, and its
                #: slot; from the cycle after ``begin`` on.
                "row": Out(SIDE_BITS),
                "slot": Out(SLOT_BITS),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Compute both limits of the next row."""
        m = Module()
        job = self.job
        line = signed(SIDE_BITS + 3)
        need = Signal(line)
        free = Signal(line)
        after = Signal(line)
        enough = Signal()
        complete = Signal()
        fresh = Signal(2)  # cycles in which the comparison is of the previous row
        change = self.start | self.begin
        m.d.sync += [
            enough.eq(self.filled >= need),
            complete.eq(self.filled == job.fill.rows),
            fresh.eq((fresh << 1) | change),
            self.ready.eq((enough | complete) & ~fresh.any() & ~change),
        ]

        # The limit of free rows is at least 0: rows above the map's edge were never written.
        next_row = Signal.like(self.row)
        next_slot = Signal(SLOT_BITS + 1)
        moved = Signal(range(8))
        moves = Signal()
        wrapped = Signal.like(self.slot)
        m.d.comb += [
            after.eq(free + job.stride_rows),
            wrapped.eq(Mux(next_slot >= job.fill.slots, next_slot - job.fill.slots, next_slot)),
        ]
        m.d.sync += moves.eq(self.begin)
        with m.If(self.begin):
            m.d.sync += [
                self.row.eq(next_row),
                self.slot.eq(wrapped),
                need.eq(need + job.stride_rows),
                free.eq(after),
                moved.eq(Mux(after < 0, 0, Mux(free < 0, after, job.stride_rows))),
            ]
        with m.If(moves):
            m.d.sync += [next_row.eq(next_row + moved), next_slot.eq(self.slot + moved)]
        with m.If(self.start):
            m.d.sync += [need.eq(job.first_need), free.eq(job.first_free)]
            m.d.sync += [self.row.eq(0), self.slot.eq(0), next_row.eq(0), next_slot.eq(0)]
        return m
