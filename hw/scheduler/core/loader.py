"""The loader: the program image from memory to the tables."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.lib.dma.align_read import packed_layout
from hw.lib.dma.burst import LENGTH_BITS, command_layout
from hw.lib.width import WidthConverter
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.layouts import MEMORY_ADDRESS_BITS
from hw.scheduler.program.image import RECORD_BITS, TABLE_BITS, record_bytes


class Loader(wiring.Component):
    """Reads an image and writes it to the tables record by record (`hw.scheduler.program.image`).

    Behaviour
    ---------
    One record a cycle; where a word is narrower than a record, one word a cycle.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse; not while ``loading``.
                "address": In(MEMORY_ADDRESS_BITS),  #: Of the image: a multiple of the word.
                "records": In(32),  #: At least 1.
                "command": Out(stream.Signature(command_layout(MEMORY_ADDRESS_BITS))),
                "words": In(stream.Signature(packed_layout(config.word_bits))),  #: From the read DMA.
                "table": Out(TABLE_BITS),  #: Of the record in ``row``.
                "row": Out(RECORD_BITS - TABLE_BITS),  #: The record without its table number.
                "write": Out(1),  #: ``row`` holds a record.
                "loading": Out(1),  #: From the cycle after ``start`` to the cycle of the last record.
                "done": Out(1),  #: One-cycle pulse, in the cycle after the last record.
            }
        )
        #: Records not yet received.
        self.left = Signal(32)

    def elaborate(self, platform: Any) -> Module:
        """Words -> record -> table and row."""
        m = Module()
        record = Signal(RECORD_BITS)
        width = self._config.word_bits
        if width >= RECORD_BITS:
            m.d.comb += [
                record.eq(self.words.payload.data),
                self.write.eq(self.words.valid),
                self.words.ready.eq(1),
            ]
        else:
            m.submodules.join = join = WidthConverter(
                lane_width=width, i_lanes=1, o_lanes=RECORD_BITS // width
            )
            m.d.comb += [
                join.i.payload.data.eq(self.words.payload.data),
                join.i.payload.keep.eq(1),
                join.i.valid.eq(self.words.valid),
                self.words.ready.eq(join.i.ready),
                join.o.ready.eq(1),
                record.eq(join.o.payload.data),
                self.write.eq(join.o.valid),
            ]
        last = self.write & (self.left == 1)
        low = Const(0, exact_log2(record_bytes(self._config.word_bytes)))
        m.d.comb += [
            Cat(self.table, self.row).eq(record),
            self.command.payload.address.eq(self.address),
            self.command.payload.length.eq(Cat(low, self.records)[:LENGTH_BITS]),
        ]
        m.d.sync += [self.done.eq(last), self.left.eq(self.left - self.write)]
        with m.If(self.command.ready):
            m.d.sync += self.command.valid.eq(0)
        with m.If(last):
            m.d.sync += self.loading.eq(0)
        with m.If(self.start):
            m.d.sync += [self.loading.eq(1), self.command.valid.eq(1), self.left.eq(self.records)]
        return m
