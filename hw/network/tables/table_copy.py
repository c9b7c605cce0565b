"""The store of all tables, and the copy of one of them to the lanes."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.lib.delay import delay
from hw.lib.memory import ports, uninitialised
from hw.network.tables.layouts import GROUP_WORDS, TABLE_GROUPS, TABLE_WORDS, GroupWrite, TableWrite

#: Cycles from ``begin`` until a step may be taken, if the table is not in the lanes.
COPY_CYCLES = TABLE_WORDS + 3


class TableCopy(wiring.Component):
    """Copies one of ``tables`` to the lanes, unless they have it.

    Behaviour
    ---------
    A word of four results a cycle.  ``busy`` from the cycle after ``begin`` on, for `COPY_CYCLES` cycles; not
    at all if the lanes have the table and no row of any was written since.
    """

    def __init__(self, *, tables: int) -> None:
        self._tables = tables
        super().__init__(
            {
                "rows": In(GroupWrite(tables)),
                "begin": In(1),
                "table": In(range(tables)),  #: Stays from ``begin`` on.
                "busy": Out(1),
                "write": Out(TableWrite()),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Counter -> store -> words of a group, which are shifted down."""
        m = Module()
        m.submodules.store = store = uninitialised(
            width=32 * GROUP_WORDS, depth=TABLE_GROUPS * self._tables, ram_style="block"
        )
        to_store, from_store = ports(store)
        held = Signal.like(self.table)
        known = Signal()
        reads = Signal()
        row = Signal(range(TABLE_WORDS))
        left = Signal(range(COPY_CYCLES))
        m.d.comb += [
            to_store.en.eq(self.rows.enable),
            to_store.addr.eq(self.rows.row),
            to_store.data.eq(Value.cast(self.rows.data)),
            from_store.en.eq(1),
            from_store.addr.eq(Cat(row[exact_log2(GROUP_WORDS) :], self.table)),
        ]
        with m.If(self.begin & ~(known & (held == self.table))):
            m.d.sync += [
                reads.eq(1),
                row.eq(0),
                known.eq(1),
                held.eq(self.table),
                self.busy.eq(1),
                left.eq(COPY_CYCLES - 1),
            ]
        with m.Elif(self.busy):
            m.d.sync += [row.eq(row + 1), left.eq(left - 1), self.busy.eq(left != 0)]
            with m.If(row == TABLE_WORDS - 1):
                m.d.sync += reads.eq(0)
        with m.If(self.rows.enable):
            m.d.sync += known.eq(0)
        fetched = delay(m, "fetched", row[: exact_log2(GROUP_WORDS)] == 0, 1, reset=False)
        words = Signal(32 * GROUP_WORDS, reset_less=True)
        m.d.sync += words.eq(Mux(fetched, from_store.data, words >> 32))
        m.d.comb += [
            self.write.data.eq(words[:32]),
            self.write.enable.eq(delay(m, "reads", reads, 2)),
            self.write.row.eq(delay(m, "row", row, 2, reset=False)),
        ]
        return m
