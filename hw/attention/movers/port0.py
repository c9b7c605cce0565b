"""Everything that is read through port 0: descriptors, bitmap rows, slopes, queries."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.config import AttentionConfig
from hw.attention.walk.descriptor import USED_BYTES
from hw.attention.walk.geometry import BITMAP_ROW_BYTES
from hw.attention.walk.job import ADDRESS_BITS, UNIT_SHIFT
from hw.attention.walk.layouts import ReadPass, read_rows
from hw.lib import axi
from hw.lib.align_read import packed_layout
from hw.lib.dma_read import ReadDMA
from hw.lib.fifo import Fifo
from hw.lib.rows.cutter import RowCutter, RowPart
from hw.lib.skid import Skid

#: Commands whose data may be outstanding.
_COMMANDS = 64
#: Parts of queries that wait for their pass, so that passes shorter than their queries' beats need not.
PARTS_AHEAD = 64


class _Kind(IntEnum):
    """What the words of a command are."""

    QUERIES = 0
    BITMAP = 1
    SLOPES = 2
    DESCRIPTOR = 3


class QueryPort(wiring.Component):
    """Reads what passes need, and descriptors.

    Parameters
    ----------
    config
        Shape of the engine.
    data_width
        Bits of a beat of the memory port.

    Members
    -------
    i : In(stream of ReadPass)
    fetch : In(stream of 64 bits)
        Addresses of descriptors.  They are read whenever no pass has anything to read.
    descriptors : Out(stream of data_width bits)
        Their words; must always be taken.
    bitmaps : Out(stream of packed_layout(data_width))
        Bitmap rows.
    slopes : Out(stream of data_width bits)
        With ``alibi`` only: slopes, each pass's from a word's lane 0 on.
    queries : Out(stream of RowPart)
    axi : Out(axi.ReadSignature)
    bytes_useful : Out(48)
        Bytes read since reset.

    Behaviour
    ---------
    For each pass in this order: its bitmap row, its slopes, its queries; a command a cycle.

    Why
    ---
    One reader for all four, so words wait for the words before them to be taken.  That cannot block: a pass
    gets its queries in the end if all passes before it get what they need, which is all before it in order;
    and for descriptors there is always room.
    """

    def __init__(self, config: AttentionConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        self._dma = ReadDMA(data_width=data_width, addr_width=ADDRESS_BITS, commands=_COMMANDS)
        members: dict[str, Any] = {
            "i": In(stream.Signature(ReadPass(config))),
            "fetch": In(stream.Signature(ADDRESS_BITS)),
            "descriptors": Out(stream.Signature(data_width)),
            "bitmaps": Out(stream.Signature(packed_layout(data_width))),
            "queries": Out(stream.Signature(RowPart(config.part_bits))),
            "axi": Out(axi.ReadSignature(data_width=data_width, addr_width=ADDRESS_BITS)),
            "bytes_useful": Out(48),
        }
        if config.alibi:
            members["slopes"] = Out(stream.Signature(data_width))
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Commands to the DMA, a note of what each is for, and the words' way by these notes."""
        m = Module()
        config = self._config
        m.submodules.dma = dma = self._dma
        m.submodules.cutter = cutter = RowCutter(
            read_rows(config), part_bits=config.part_bits, data_width=self._data_width
        )
        m.submodules.kinds = kinds = Fifo(_Kind, depth=_COMMANDS)
        m.submodules.rows = rows = Fifo(read_rows(config), depth=_COMMANDS)
        m.submodules.ahead = ahead = Fifo(RowPart(config.part_bits), depth=PARTS_AHEAD)
        m.submodules.skid = skid = Skid(RowPart(config.part_bits))
        # Whether the cutter takes a word is known late, and what reads it must hear of it.
        m.submodules.words = words = Skid(packed_layout(self._data_width))
        connect(m, dma.axi, flipped(self.axi))
        connect(m, words.o, cutter.i)
        connect(m, rows.o, cutter.rows)
        connect(m, cutter.o, ahead.i)
        connect(m, ahead.o, skid.i)
        connect(m, skid.o, flipped(self.queries))
        m.d.comb += self.bytes_useful.eq(dma.bytes_useful)
        self._ask(m, dma, kinds, rows)

        # Words go where their command's note says, up to the last one.
        word = dma.o
        targets = {_Kind.QUERIES: words.i, _Kind.BITMAP: self.bitmaps, _Kind.DESCRIPTOR: self.descriptors}
        if config.alibi:
            targets[_Kind.SLOPES] = self.slopes
        for kind, target in targets.items():
            here = kinds.o.valid & (kinds.o.payload == kind)
            whole = kind in (_Kind.QUERIES, _Kind.BITMAP)
            m.d.comb += [
                target.payload.eq(word.payload if whole else word.payload.data),
                target.valid.eq(word.valid & here),
            ]
            with m.If(here):
                m.d.comb += word.ready.eq(target.ready)
        m.d.comb += kinds.o.ready.eq(word.valid & word.ready & word.payload.last)
        return m

    def _ask(self, m: Module, dma: ReadDMA, kinds: Fifo, rows: Fifo) -> None:
        """Give the commands of a pass, then of a descriptor if there is one."""
        current = self.i.payload
        command = dma.command.payload
        did_bitmap, did_slopes = Signal(), Signal()
        piece = Signal(range(self._config.rows + 1))
        distance = Signal(ADDRESS_BITS)
        kind = Signal(_Kind)
        valid, go, ends = Signal(), Signal(), Signal()
        m.d.comb += [
            # A pass may come while a descriptor's address waits, so nothing is offered that is not taken.
            go.eq(valid & dma.command.ready & kinds.i.ready & rows.i.ready),
            dma.command.valid.eq(go),
            kinds.i.valid.eq(go),
            kinds.i.payload.eq(kind),
            rows.i.valid.eq(go & (kind == _Kind.QUERIES)),
            rows.i.payload.rows.eq(current.q.rows),
            rows.i.payload.units.eq(current.units),
            ends.eq(piece == current.q.count - 1),
            self.i.ready.eq(go & (kind == _Kind.QUERIES) & ends),
            self.fetch.ready.eq(go & (kind == _Kind.DESCRIPTOR)),
            valid.eq(self.i.valid | self.fetch.valid),
        ]
        with m.If(~self.i.valid):
            m.d.comb += [
                kind.eq(_Kind.DESCRIPTOR),
                command.address.eq(self.fetch.payload),
                command.length.eq(USED_BYTES),
            ]
        with m.Elif((current.bitmap_rows != 0) & ~did_bitmap):
            m.d.comb += [
                kind.eq(_Kind.BITMAP),
                command.address.eq(current.bitmap),
                command.length.eq(current.bitmap_rows * BITMAP_ROW_BYTES),
            ]
            with m.If(go):
                m.d.sync += did_bitmap.eq(1)
        if self._config.alibi:
            with m.Elif((current.heads != 0) & ~did_slopes):
                m.d.comb += [
                    kind.eq(_Kind.SLOPES),
                    command.address.eq(current.slopes),
                    command.length.eq(current.heads << 2),
                ]
                with m.If(go):
                    m.d.sync += did_slopes.eq(1)
        with m.Else():
            m.d.comb += [
                kind.eq(_Kind.QUERIES),
                command.address.eq(current.q.address + distance),
                command.length.eq(current.q.units << UNIT_SHIFT),
            ]
            with m.If(go):
                m.d.sync += [piece.eq(piece + 1), distance.eq(distance + current.q.stride)]
                with m.If(ends):
                    m.d.sync += [*(signal.eq(0) for signal in (did_bitmap, did_slopes, piece, distance))]
