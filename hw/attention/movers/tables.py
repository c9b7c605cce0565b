"""What is read beside queries, keys and values, through port 0: descriptors, bitmap rows, slopes."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.config import AttentionConfig
from hw.attention.walk.descriptor import USED_BYTES
from hw.attention.walk.geometry import BITMAP_ROW_BYTES
from hw.attention.walk.job import ADDRESS_BITS
from hw.attention.walk.layouts import TablePass
from hw.lib import axi
from hw.lib.align_read import packed_layout
from hw.lib.dma_read import ReadDMA
from hw.lib.fifo import Fifo

#: Commands whose data may be outstanding.
_COMMANDS = 64


class _Kind(IntEnum):
    """What the words of a command are."""

    BITMAP = 0
    SLOPES = 1
    DESCRIPTOR = 2


class TablePort(wiring.Component):
    """Reads the tables of passes, and descriptors.

    Parameters
    ----------
    config
        Shape of the engine.
    data_width
        Bits of a beat of the memory port.

    Members
    -------
    i : In(stream of TablePass)
    fetch : In(stream of 64 bits)
        Addresses of descriptors.  They are read whenever no pass has anything to read.
    descriptors : Out(stream of data_width bits)
        Their words; must always be taken.
    bitmaps : Out(stream of packed_layout(data_width))
        Bitmap rows.
    slopes : Out(stream of data_width bits)
        With ``alibi`` only: slopes, each pass's from a word's lane 0 on.
    axi : Out(axi.ReadSignature)
    bytes_useful : Out(48)
        Bytes read since reset.

    Behaviour
    ---------
    For each pass in this order: its bitmap row, its slopes; a command a cycle.

    Why
    ---
    One reader for all three, so words wait for the words before them to be taken.  That cannot block: a pass
    gets its tables in the end if all passes before it get what they need, which is all before it in order;
    and for descriptors there is always room.
    """

    def __init__(self, config: AttentionConfig, *, data_width: int) -> None:
        self._config = config
        self._dma = ReadDMA(data_width=data_width, addr_width=ADDRESS_BITS, commands=_COMMANDS)
        members: dict[str, Any] = {
            "i": In(stream.Signature(TablePass(config))),
            "fetch": In(stream.Signature(ADDRESS_BITS)),
            "descriptors": Out(stream.Signature(data_width)),
            "bitmaps": Out(stream.Signature(packed_layout(data_width))),
            "axi": Out(axi.ReadSignature(data_width=data_width, addr_width=ADDRESS_BITS)),
            "bytes_useful": Out(48),
        }
        if config.alibi:
            members["slopes"] = Out(stream.Signature(data_width))
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Commands to the DMA, a note of what each is for, and the words' way by these notes."""
        m = Module()
        m.submodules.dma = dma = self._dma
        m.submodules.kinds = kinds = Fifo(_Kind, depth=_COMMANDS)
        connect(m, dma.axi, flipped(self.axi))
        m.d.comb += self.bytes_useful.eq(dma.bytes_useful)
        self._ask(m, dma, kinds)

        # Words go where their command's note says, up to the last one.
        word = dma.o
        targets = {_Kind.BITMAP: self.bitmaps, _Kind.DESCRIPTOR: self.descriptors}
        if self._config.alibi:
            targets[_Kind.SLOPES] = self.slopes
        for kind, target in targets.items():
            here = kinds.o.valid & (kinds.o.payload == kind)
            m.d.comb += [
                target.payload.eq(word.payload if kind == _Kind.BITMAP else word.payload.data),
                target.valid.eq(word.valid & here),
            ]
            with m.If(here):
                m.d.comb += word.ready.eq(target.ready)
        m.d.comb += kinds.o.ready.eq(word.valid & word.ready & word.payload.last)
        return m

    def _ask(self, m: Module, dma: ReadDMA, kinds: Fifo) -> None:
        """Give the commands of a pass; where it has none, that of a descriptor if there is one."""
        current = self.i.payload
        command = dma.command.payload
        did_bitmap = Signal()
        kind = Signal(_Kind)
        go, bitmap = Signal(), Signal()
        slopes: Value = Const(0)
        if self._config.alibi:
            slopes = Signal(name="slopes")
            m.d.comb += slopes.eq(self.i.valid & (current.heads != 0))
        m.d.comb += [
            bitmap.eq(self.i.valid & (current.bitmap_rows != 0) & ~did_bitmap),
            # A pass may come while a descriptor's address waits, so nothing is offered that is not taken.
            go.eq((bitmap | slopes | self.fetch.valid) & dma.command.ready & kinds.i.ready),
            dma.command.valid.eq(go),
            kinds.i.valid.eq(go),
            kinds.i.payload.eq(kind),
            self.i.ready.eq(Mux(bitmap, go & ~slopes, go | ~slopes)),
            self.fetch.ready.eq(go & (kind == _Kind.DESCRIPTOR)),
        ]
        with m.If(bitmap):
            m.d.comb += [
                kind.eq(_Kind.BITMAP),
                command.address.eq(current.bitmap),
                command.length.eq(current.bitmap_rows * BITMAP_ROW_BYTES),
            ]
        if self._config.alibi:
            with m.Elif(slopes):
                m.d.comb += [
                    kind.eq(_Kind.SLOPES),
                    command.address.eq(current.slopes),
                    command.length.eq(current.heads << 2),
                ]
        with m.Else():
            m.d.comb += [
                kind.eq(_Kind.DESCRIPTOR),
                command.address.eq(self.fetch.payload),
                command.length.eq(USED_BYTES),
            ]
        m.d.sync += did_bitmap.eq(Mux(self.i.valid & self.i.ready, 0, did_bitmap | (bitmap & go)))
