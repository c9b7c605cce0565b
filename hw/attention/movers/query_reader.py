"""Queries from one of their memory ports."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.config import AttentionConfig
from hw.attention.walk.job import ADDRESS_BITS, UNIT_SHIFT
from hw.attention.walk.layouts import QueryPass, read_rows
from hw.lib import axi
from hw.lib.dma.align_read import packed_layout
from hw.lib.dma.read import ReadDMA
from hw.lib.fifo import Fifo
from hw.lib.rows.cutter import RowCutter, RowPart
from hw.lib.skid import Skid

#: Commands that may be outstanding.
_COMMANDS = 64
#: Prefetched parts of queries, so that passes shorter than their queries' beats do not stall.
PARTS_AHEAD = 64


class QueryReader(wiring.Component):
    """Reads the queries of passes through one port.

    Behaviour
    ---------
    A command a cycle, for each piece of a pass; a part a cycle.
    """

    def __init__(self, config: AttentionConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        self._part_bits = config.part_bits // config.query_port_count
        self._dma = ReadDMA(data_width=data_width, addr_width=ADDRESS_BITS, commands=_COMMANDS)
        super().__init__(
            {
                "i": In(stream.Signature(QueryPass(config))),
                #: Base address of the port's queries; constant from a cycle before the first pass.
                "base": In(ADDRESS_BITS),
                #: The port's units of each part, a Q-th of it.
                "o": Out(stream.Signature(RowPart(self._part_bits))),
                "axi": Out(axi.ReadSignature(data_width=data_width, addr_width=ADDRESS_BITS)),
                "bytes_useful": Out(48),  #: Bytes read since reset.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Commands for the pieces of a pass; DMA -> registers -> cutter -> prefetched parts."""
        m = Module()
        config = self._config
        m.submodules.dma = dma = self._dma
        m.submodules.cutter = cutter = RowCutter(
            read_rows(config), part_bits=self._part_bits, data_width=self._data_width
        )
        m.submodules.rows = rows = Fifo(read_rows(config), depth=_COMMANDS)
        m.submodules.ahead = ahead = Fifo(RowPart(self._part_bits), depth=PARTS_AHEAD)
        m.submodules.skid = skid = Skid(RowPart(self._part_bits))
        # A register: the handshake of the cutter is late, and the reader of a word depends on it.
        m.submodules.words = words = Skid(packed_layout(self._data_width))
        connect(m, dma.axi, flipped(self.axi))
        connect(m, dma.o, words.i)
        connect(m, words.o, cutter.i)
        connect(m, rows.o, cutter.rows)
        connect(m, cutter.o, ahead.i)
        connect(m, ahead.o, skid.i)
        connect(m, skid.o, flipped(self.o))
        current = self.i.payload
        piece = Signal(range(config.rows + 1))
        start = Signal(ADDRESS_BITS)  # of the piece, with the base
        go = Signal()
        ends = Signal()
        m.d.comb += [
            go.eq(self.i.valid & dma.command.ready & rows.i.ready),
            ends.eq(piece == current.q.count - 1),
            dma.command.payload.address.eq(current.q.address + start),
            dma.command.payload.length.eq(current.q.units << UNIT_SHIFT),
            dma.command.valid.eq(self.i.valid & rows.i.ready),
            rows.i.payload.rows.eq(current.q.rows),
            rows.i.payload.units.eq(current.units),
            rows.i.valid.eq(self.i.valid & dma.command.ready),
            self.i.ready.eq(go & ends),
            self.bytes_useful.eq(dma.bytes_useful),
        ]
        with m.If(go):
            m.d.sync += [
                piece.eq(Mux(ends, 0, piece + 1)),
                start.eq(Mux(ends, self.base, start + current.q.stride)),
            ]
        with m.Elif(~self.i.valid):
            m.d.sync += start.eq(self.base)
        return m
