"""Reads offsets: rows of 16-bit numbers become the offsets of T taps."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import offset_entry
from hw.conv.movers.layouts import ADDRESS_BITS, TOTAL_BITS, OffsetRead
from hw.lib.dma.align_read import packed_layout
from hw.lib.dma.burst import command_layout
from hw.lib.fifo import Fifo
from hw.lib.rows.command import RowsCommand
from hw.lib.rows.cutter import RowCutter
from hw.lib.skid import Skid

#: Bits of a number in memory.
_UNIT_BITS = 16


class EntryForm(data.StructLayout):
    """The format of ``entries`` entries: ``fields`` of each offset."""

    def __init__(self) -> None:
        super().__init__({"fields": 2, "entries": TOTAL_BITS})


class OffsetReader(wiring.Component):
    """Cuts offsets out of words.

    Behaviour
    ---------
    An entry a cycle.
    """

    def __init__(self, config: ConvConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        super().__init__(
            {
                "i": In(stream.Signature(OffsetRead(config))),
                "command": Out(stream.Signature(command_layout(ADDRESS_BITS))),  #: The reads.
                "words": In(stream.Signature(packed_layout(data_width))),  #: Their words.
                "o": Out(stream.Signature(offset_entry(config))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Cut entries as rows; a missing field is 0."""
        m = Module()
        config = self._config
        most = 3 * config.taps
        rows = RowsCommand(most_rows=(1 << TOTAL_BITS) - 1, most_units=most, unit_bits=_UNIT_BITS)
        m.submodules.commands = commands = Fifo(command_layout(ADDRESS_BITS), depth=2)
        m.submodules.rows = row_queue = Fifo(rows, depth=2)
        m.submodules.forms = forms = Fifo(EntryForm(), depth=2)
        m.submodules.cutter = cutter = RowCutter(
            rows, part_bits=most * _UNIT_BITS, data_width=self._data_width
        )
        m.submodules.entries = entries = Skid(offset_entry(config))
        connect(m, commands.o, flipped(self.command))
        connect(m, row_queue.o, cutter.rows)
        connect(m, flipped(self.words), cutter.i)
        connect(m, entries.o, flipped(self.o))
        job = self.i.payload
        accept = self.i.valid & self.i.ready
        m.d.comb += [
            self.i.ready.eq(commands.i.ready & row_queue.i.ready & forms.i.ready),
            commands.i.payload.address.eq(job.address),
            commands.i.payload.length.eq(job.bytes),
            row_queue.i.payload.rows.eq(job.entries),
            row_queue.i.payload.units.eq(job.units),
            forms.i.payload.fields.eq(job.fields),
            forms.i.payload.entries.eq(job.entries),
            *(fifo.i.valid.eq(accept) for fifo in (commands, row_queue, forms)),
        ]

        # The format of the entries that leave the cutter.
        fields = Signal(2)
        left = Signal(TOTAL_BITS)
        active = Signal()
        step = Signal()
        ends = step & (left == 0)
        m.d.comb += [
            step.eq(active & cutter.o.valid & entries.i.ready),
            entries.i.valid.eq(active & cutter.o.valid),
            cutter.o.ready.eq(active & entries.i.ready),
            forms.o.ready.eq(~active | ends),
        ]
        with m.If(step):
            m.d.sync += left.eq(left - 1)
        with m.If(forms.o.ready):
            m.d.sync += active.eq(forms.o.valid)
            m.d.sync += [fields.eq(forms.o.payload.fields), left.eq(forms.o.payload.entries - 1)]
        elements = cutter.o.payload.elements

        def unit(number: int) -> Any:
            return elements.word_select(number, _UNIT_BITS) if number < most else 0

        for t in range(config.taps):
            offset = entries.i.payload[t]
            m.d.comb += [
                offset.dy.eq(Mux(fields == 3, unit(3 * t), unit(2 * t))),
                offset.dx.eq(Mux(fields == 3, unit(3 * t + 1), unit(2 * t + 1))),
                offset.mask.eq(unit(3 * t + 2)),
            ]
        return m
