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
    one.  ``done`` follows the last row by `DONE_LATENCY` cycles, when users of ``slot`` and ``block`` have
    registered it.
    """

    #: From the last cycle of the last record to ``done``.
    DONE_LATENCY = 4

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse; not while ``loading``.
                "address": In(_ADDRESS_BITS),  #: Of the image.
                "records": In(32),  #: At least 1.
                "command": Out(stream.Signature(command_layout(_ADDRESS_BITS))),
                "words": In(
                    stream.Signature(RECORD_BITS)
                ),  #: The records; nothing else comes between launches.
                "write": Out(1),  #: ``table`` and ``row`` hold a record of no RAM.
                "table": Out(TABLE_BITS),
                "row": Out(ROW_BITS),
                #: ``slot``, ``block``: registered.
                "slot": Out(SlotWrite()),
                "block": Out(BlockWrite()),
                "loading": Out(1),  #: From the cycle after ``start`` to ``done``.
                "done": Out(1),  #: One-cycle pulse.
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
        left = Signal(32)  # records after the one that is held or comes next
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
            m.d.sync += [*(each.eq(1) for each in frees), left.eq(left - 1)]
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
        self._launch(m, ends & (left == 0))
        with m.If(self.start):
            m.d.sync += left.eq(self.records - 1)
        return m

    def _launch(self, m: Module, last: Value) -> None:
        """Ask for the records, and end some cycles after the last one."""
        late = Signal(self.DONE_LATENCY - 1)
        bytes_low = Const(0, exact_log2(RECORD_BYTES))
        m.d.comb += [
            self.command.payload.address.eq(self.address),
            self.command.payload.length.eq(Cat(bytes_low, self.records)[:LENGTH_BITS]),
        ]
        m.d.sync += [late.eq(Cat(last, late)), self.done.eq(late[-1])]
        with m.If(self.command.ready):
            m.d.sync += self.command.valid.eq(0)
        with m.If(self.done):
            m.d.sync += self.loading.eq(0)
        with m.If(self.start):
            m.d.sync += [self.loading.eq(1), self.command.valid.eq(1)]
