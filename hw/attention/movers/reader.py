"""Rows of keys or values from one memory port."""

from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.config import AttentionConfig
from hw.attention.walk.job import ADDRESS_BITS, UNIT_SHIFT
from hw.attention.walk.layouts import RowsFetch, read_rows
from hw.lib import axi
from hw.lib.dma.align_read import packed_layout
from hw.lib.dma.read import ReadDMA
from hw.lib.fifo import Fifo
from hw.lib.rows.cutter import RowCutter, RowPart
from hw.lib.skid import Skid

#: Commands by which the DMA may lead the cutter.
_COMMANDS = 64


class RowReader(wiring.Component):
    """Reads rows and cuts them into parts.

    Behaviour
    ---------
    As `hw.lib.dma.read.ReadDMA` and `RowCutter`, with a register between and behind them.  Where ports take
    turns, a whole row is queued here for its turn, so that P ports together return a part a cycle.
    """

    def __init__(self, config: AttentionConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        self._dma = ReadDMA(data_width=data_width, addr_width=ADDRESS_BITS, commands=_COMMANDS)
        self._cutter = RowCutter(read_rows(config), part_bits=config.part_bits, data_width=data_width)
        super().__init__(
            {
                "fetch": In(stream.Signature(RowsFetch(config))),
                "o": Out(stream.Signature(RowPart(config.part_bits))),
                "axi": Out(axi.ReadSignature(data_width=data_width, addr_width=ADDRESS_BITS)),
                "bytes_useful": Out(48),  #: Bytes read since reset.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """DMA -> registers, as in `QueryReader` -> cutter -> queue."""
        m = Module()
        config = self._config
        m.submodules.dma = dma = self._dma
        m.submodules.cutter = cutter = self._cutter
        m.submodules.rows = rows = Fifo(read_rows(config), depth=_COMMANDS)
        m.submodules.words = words = Skid(packed_layout(self._data_width))
        queue: Any
        if config.ports > 1 and config.folds > 1:
            queue = Fifo(RowPart(config.part_bits), depth=2 * config.folds)
        else:
            queue = Skid(RowPart(config.part_bits))
        m.submodules.queue = queue
        connect(m, dma.axi, flipped(self.axi))
        connect(m, dma.o, words.i)
        connect(m, words.o, cutter.i)
        connect(m, rows.o, cutter.rows)
        connect(m, cutter.o, queue.i)
        connect(m, queue.o, flipped(self.o))
        both = Cat(dma.command.ready, rows.i.ready).all()
        m.d.comb += [
            self.bytes_useful.eq(dma.bytes_useful),
            self.fetch.ready.eq(both),
            dma.command.valid.eq(self.fetch.valid & rows.i.ready),
            dma.command.payload.address.eq(self.fetch.payload.address),
            dma.command.payload.length.eq(self.fetch.payload.length << UNIT_SHIFT),
            rows.i.valid.eq(self.fetch.valid & dma.command.ready),
            rows.i.payload.eq(self.fetch.payload.rows),
        ]
        return m
