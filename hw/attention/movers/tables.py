"""The reads through port 0 beside queries, keys and values: descriptors, bitmaps, slopes, page tables."""

from enum import IntEnum
from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.config import AttentionConfig
from hw.attention.walk.descriptor import USED_BYTES
from hw.attention.walk.job import ADDRESS_BITS
from hw.attention.walk.job_setup import BITMAP_ROW_BYTES, PAGE_ENTRY_BYTES, PAGE_GROUP, SLOPE_BYTES
from hw.attention.walk.layouts import TablePass
from hw.lib import axi
from hw.lib.dma.align_read import packed_layout
from hw.lib.dma.read import ReadDMA
from hw.lib.fifo import Fifo

#: Commands that may be outstanding.
_COMMANDS = 64


class _Kind(IntEnum):
    """The content of a command's words."""

    BITMAP = 0
    SLOPES = 1
    PAGES = 2
    DESCRIPTOR = 3


class TablePort(wiring.Component):
    """Reads the tables of passes, and descriptors.

    Behaviour
    ---------
    For each pass, in this order: its bitmap row, its slopes, its page entries; a command a cycle.

    Why
    ---
    There is one reader for all tables, so words wait until those before them are taken.  This cannot
    deadlock: a pass gets its tables once all passes before have theirs, and descriptors always have room.
    Within a pass only page entries wait for tiles to be fetched: a whole bitmap row has room, and slopes do
    not depend on tiles.  Hence entries come last.
    """

    def __init__(self, config: AttentionConfig, *, data_width: int) -> None:
        self._config = config
        self._dma = ReadDMA(data_width=data_width, addr_width=ADDRESS_BITS, commands=_COMMANDS)
        members: dict[str, Any] = {
            "i": In(stream.Signature(TablePass(config))),
            #: Addresses of descriptors.  They are read while no pass has a table to read.
            "fetch": In(stream.Signature(ADDRESS_BITS)),
            "descriptors": Out(stream.Signature(data_width)),  #: Their words; must always be taken.
            "bitmaps": Out(stream.Signature(packed_layout(data_width))),  #: Bitmap rows.
            "axi": Out(axi.ReadSignature(data_width=data_width, addr_width=ADDRESS_BITS)),
            "bytes_useful": Out(48),  #: Bytes read since reset.
        }
        if config.alibi:
            #: Slopes; those of a pass begin at lane 0 of a word.
            members["slopes"] = Out(stream.Signature(data_width))
        if config.paged:
            members["pages"] = Out(stream.Signature(packed_layout(data_width)))  #: Entries of page tables.
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Commands to the DMA, a queue of their kinds, and the routing of words by kind."""
        m = Module()
        m.submodules.dma = dma = self._dma
        m.submodules.kinds = kinds = Fifo(_Kind, depth=_COMMANDS)
        connect(m, dma.axi, flipped(self.axi))
        m.d.comb += self.bytes_useful.eq(dma.bytes_useful)
        self._ask(m, dma, kinds)

        # Words are routed by the kind of their command, up to its last word.
        word = dma.o
        targets = {_Kind.BITMAP: self.bitmaps, _Kind.DESCRIPTOR: self.descriptors}
        if self._config.alibi:
            targets[_Kind.SLOPES] = self.slopes
        if self._config.paged:
            targets[_Kind.PAGES] = self.pages
        for kind, target in targets.items():
            here = kinds.o.valid & (kinds.o.payload == kind)
            packed = kind in (_Kind.BITMAP, _Kind.PAGES)
            m.d.comb += [
                target.payload.eq(word.payload if packed else word.payload.data),
                target.valid.eq(word.valid & here),
            ]
            with m.If(here):
                m.d.comb += word.ready.eq(target.ready)
        m.d.comb += kinds.o.ready.eq(word.valid & word.ready & word.payload.last)
        return m

    def _ask(self, m: Module, dma: ReadDMA, kinds: Fifo) -> None:
        """Issue the commands of a pass; without one, that of a descriptor, if any is requested."""
        config, current = self._config, self.i.payload
        command = dma.command.payload
        tables = [(_Kind.BITMAP, current.bitmap, current.bitmap_rows, BITMAP_ROW_BYTES)]
        if config.alibi:
            tables.append((_Kind.SLOPES, current.slopes, current.heads, SLOPE_BYTES))
        if config.paged:
            tables.append((_Kind.PAGES, current.pages, current.page_groups, PAGE_GROUP * PAGE_ENTRY_BYTES))
        did, asked, later = (Signal(len(tables), name=name) for name in ("did", "asked", "later"))
        kind = Signal(_Kind)
        go = Signal()
        wanted = Cat(self.i.valid & (count != 0) for _, _, count, _ in tables)
        m.d.comb += [
            asked.eq(wanted & ~did),
            later.eq(asked & (asked - 1)),  # all but the first one
            # Valid only with ready: a pass may arrive while a descriptor's address waits.
            go.eq((asked.any() | self.fetch.valid) & dma.command.ready & kinds.i.ready),
            dma.command.valid.eq(go),
            kinds.i.valid.eq(go),
            kinds.i.payload.eq(kind),
            self.i.ready.eq(~asked.any() | (go & ~later.any())),
            self.fetch.ready.eq(go & ~asked.any()),
            kind.eq(_Kind.DESCRIPTOR),
            command.address.eq(self.fetch.payload),
            command.length.eq(USED_BYTES),
        ]
        for n in reversed(range(len(tables))):
            table, address, count, unit_bytes = tables[n]
            with m.If(asked[n]):
                m.d.comb += [
                    kind.eq(table),
                    command.address.eq(address),
                    command.length.eq(count * unit_bytes),
                ]
        with m.If(go):
            m.d.sync += did.eq(did | (asked & ~later))
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += did.eq(0)
