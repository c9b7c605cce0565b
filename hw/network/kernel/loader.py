"""The loader: records of the program image to tables, and their rows to RAMs."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.lib.dma.burst import LENGTH_BITS, command_layout
from hw.lib.loads import LOADS, copies
from hw.network.program.records import (
    BLOCK_RAMS,
    FIRST_RAM,
    INDEX_BITS,
    RECORD_BITS,
    RECORD_BYTES,
    ROW_BITS,
    SLOT_BITS,
    SLOTS,
    SLOTS_LAYOUT,
    TABLE_BITS,
)

#: Bits of an address in memory.
_ADDRESS_BITS = 64
#: Records that are asked for at once behind the opening, and most that are on their way.
CHUNK, AHEAD = 8, 64


class SlotWrite(data.StructLayout):
    """A row of a RAM; ``enable``: in this cycle."""

    def __init__(self) -> None:
        super().__init__({"enable": 1, "table": TABLE_BITS, "row": INDEX_BITS, "data": SLOT_BITS})


class BlockWrite(data.StructLayout):
    """All rows of a record, from row ``SLOTS * block`` on; ``enable``: in this cycle."""

    def __init__(self) -> None:
        block = INDEX_BITS - exact_log2(SLOTS)
        slots = data.ArrayLayout(SLOT_BITS, SLOTS)
        super().__init__({"enable": 1, "table": TABLE_BITS, "block": block, "data": slots})


class ImageLoader(wiring.Component):
    """Reads an image record by record (`hw.network.program.records`).

    Behaviour
    ---------
    A record takes two cycles, and a cycle more for each row after the first of a RAM that takes them one by
    one.  The ``opening`` records come first, by one command.  ``done`` follows their last row by
    `DONE_LATENCY` cycles, when users of ``slot`` and ``block`` have registered it.  The others follow, by
    commands of `CHUNK` records each, and ``complete`` follows the last row like ``done``.

    Why
    ---
    Users of tables are started by ``done``.  A table offers a row when it is there, and rows of RAMs come
    before the rows that refer to them, so nobody waits for ``complete`` but the end of a launch.  A row of a
    table is offered later than the row of a RAM before it is read: it passes a count, a RAM and a queue.
    """

    #: From the last cycle of the last record to ``done``, or to ``complete``.
    DONE_LATENCY = 4
    #: From ``done`` to the first command behind it: transfers that wait for nothing ask first.
    BEHIND_LATENCY = 12

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse; not before the last ``complete``.
                "address": In(_ADDRESS_BITS),  #: Of the image.
                "records": In(32),  #: At least 1.
                "opening": In(32),  #: From 1 to ``records``.
                "command": Out(stream.Signature(command_layout(_ADDRESS_BITS))),
                "words": In(stream.Signature(RECORD_BITS)),  #: The records.
                "write": Out(1),  #: ``table`` and ``row`` hold a record of no RAM.
                "table": Out(TABLE_BITS),
                "row": Out(ROW_BITS),
                #: ``slot``, ``block``: registered.
                "slot": Out(SlotWrite()),
                "block": Out(BlockWrite()),
                "loading": Out(1),  #: From the cycle after ``start`` to ``done``.
                "done": Out(1),  #: One-cycle pulse.
                "complete": Out(1, init=1),  #: No record is to come.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Record register, whose slots are shifted down."""
        m = Module()
        # Up while the register takes any word; a copy for some bits each.
        frees = copies(Signal(init=1, name="free"), RECORD_BITS // LOADS)
        free = frees[0]
        record = Signal(RECORD_BITS, reset_less=True)
        slots = data.View(SLOTS_LAYOUT, record[TABLE_BITS : TABLE_BITS + SLOTS_LAYOUT.size])
        low = TABLE_BITS + SLOTS_LAYOUT["slots"].offset
        shifted = Cat(record[:low], record[low + SLOT_BITS :], Const(0, SLOT_BITS))
        of_ram = Signal()
        of_block = Signal()
        # Records after the one that is held or comes next: of the image, and of its opening.
        left = Signal(32)
        opens = Signal(32)
        row = Signal(INDEX_BITS)
        rows_left = Signal.like(slots.count)
        first = Signal()  # the record's first cycle
        ends = Signal()
        taken = Signal()
        m.d.comb += [
            self.words.ready.eq(free),
            taken.eq(self.words.valid & free),
            Cat(self.table, self.row).eq(record),
            of_ram.eq(self.table >= FIRST_RAM),
            of_block.eq(Cat(self.table == number for number in BLOCK_RAMS).any()),
            self.write.eq(~free & ~of_ram),
            ends.eq(~free & (~of_ram | of_block | Mux(first, slots.count <= 1, rows_left == 0))),
        ]
        for n, each in enumerate(frees):
            bits = slice(n * LOADS, (n + 1) * LOADS)
            with m.If(each):
                m.d.sync += record[bits].eq(self.words.payload[bits])
            with m.Else():
                m.d.sync += record[bits].eq(shifted[bits])
        with m.If(taken):
            m.d.sync += [*(each.eq(0) for each in frees), first.eq(1)]
        with m.Elif(ends):
            m.d.sync += [*(each.eq(1) for each in frees), left.eq(left - 1), opens.eq(opens - 1)]
        with m.If(~free):
            m.d.sync += [
                first.eq(0),
                row.eq(Mux(first, slots.first, row) + 1),
                rows_left.eq(Mux(first, slots.count - 2, rows_left - 1)),
            ]
        m.d.sync += [
            self.slot.enable.eq(~free & of_ram & ~of_block),
            self.slot.table.eq(self.table),
            self.slot.row.eq(Mux(first, slots.first, row)),
            self.slot.data.eq(slots.slots[0]),
            self.block.enable.eq(~free & of_block),
            self.block.table.eq(self.table),
            self.block.block.eq(slots.first[exact_log2(SLOTS) :]),
            Value.cast(self.block.data).eq(Value.cast(slots.slots)),
        ]
        with m.If(self.start):
            m.d.sync += [left.eq(self.records - 1), opens.eq(self.opening - 1)]
        self._open(m, ends & (opens == 0))
        self._complete(m, ends & (left == 0))
        self._ask(m, ends)
        return m

    def _open(self, m: Module, last: Value) -> None:
        """Raise ``done`` some cycles after the last record of the opening."""
        m.d.sync += self.done.eq(self._late(m, "opened", last) & self.loading)
        with m.If(self.done):
            m.d.sync += self.loading.eq(0)
        with m.If(self.start):
            m.d.sync += self.loading.eq(1)

    def _complete(self, m: Module, last: Value) -> None:
        """Raise ``complete`` as many cycles after the last record of the image."""
        with m.If(self._late(m, "ended", last)):
            m.d.sync += self.complete.eq(1)
        with m.If(self.start):
            m.d.sync += self.complete.eq(0)

    def _late(self, m: Module, name: str, last: Value) -> Value:
        """Return ``last``, delayed by all but one of `DONE_LATENCY` cycles."""
        late = Signal(self.DONE_LATENCY - 1, name=name)
        m.d.sync += late.eq(Cat(last, late))
        return late[-1]

    def _ask(self, m: Module, ends: Value) -> None:
        """Ask for the opening, and behind it for chunks while there is room ahead."""
        low = exact_log2(RECORD_BYTES)
        behind = Signal(32)  # records to ask for
        address = Signal(_ADDRESS_BITS, reset_less=True)
        count = Signal(32, reset_less=True)  # of the command
        ahead = Signal(range(AHEAD + 1))  # records asked for behind the opening that have not ended
        asks = Signal()
        opened = Signal(self.BEHIND_LATENCY - 1)
        may = Signal()  # the opening has ended
        accepted = self.command.valid & self.command.ready
        part = Mux(behind[exact_log2(CHUNK) :].any(), CHUNK, behind[: exact_log2(CHUNK)])
        m.d.comb += [
            self.command.payload.address.eq(address),
            self.command.payload.length.eq(Cat(Const(0, low), count)[:LENGTH_BITS]),
            asks.eq(may & ~self.command.valid & (behind != 0) & (ahead <= AHEAD - CHUNK)),
        ]
        m.d.sync += [
            opened.eq(Cat(self.done, opened)),
            ahead.eq(ahead + Mux(asks, part, 0) - (ends & may)),
        ]
        with m.If(opened[-1]):
            m.d.sync += may.eq(1)
        with m.If(accepted):
            m.d.sync += [self.command.valid.eq(0), address.eq(address + Cat(Const(0, low), count))]
        with m.If(asks):
            m.d.sync += [self.command.valid.eq(1), count.eq(part), behind.eq(behind - part)]
        with m.If(self.start):
            m.d.sync += [
                self.command.valid.eq(1),
                address.eq(self.address),
                count.eq(self.opening),
                behind.eq(self.records - self.opening),
                may.eq(0),
            ]
