"""Pages of keys and values: the page table locates each tile in memory."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.config import AttentionConfig
from hw.attention.walk.job import ADDRESS_BITS, UNIT_SHIFT
from hw.attention.walk.job_setup import tile_shape
from hw.attention.walk.layouts import TileRequest
from hw.lib.skid import Skid

#: Entries queued for each stream: as deep as the RAM of one LUT.
ENTRIES_AHEAD = 64


class PageEntry(data.StructLayout):
    """An entry of a page table."""

    def __init__(self) -> None:
        super().__init__(
            {
                #: ``k``, ``v``: offset of the page from a port's base, in 16 bytes, without the offsets of
                #: job and head.
                "k": 32,
                "v": 32,
                "last": 1,  #: No more entries are read for this pass.
            }
        )


class PageLookup(wiring.Component):
    """Finds the page of each tile.

    ``config``: shape of the engine, which is ``paged``.

    Behaviour
    ---------
    Tiles of jobs without pages pass in the same cycle.  With ``paged`` the first tile of a pass takes two
    cycles, and each further one two cycles after the one before.  Each entry that is skipped, before or
    behind the last tile, costs a cycle.

    Why
    ---
    A stream needs at least two cycles for a tile, except for the last one of a pass, and tiles are queued
    before the core.  The numbers of tiles rise within a pass, so the table is read once from end to end and
    never stored.
    """

    #: Cycles from a pass's first tile on ``i`` to ``o``, and from an entry, which passes a register.
    LATENCY: ClassVar = 2
    ENTRY_LATENCY: ClassVar = Skid.LATENCY + 1
    #: Cycles from a tile to the next, in the same page.
    INTERVAL: ClassVar = 2

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        tiles = stream.Signature(TileRequest(config))
        super().__init__(
            {
                "i": In(tiles),  #: The tiles of each pass in order; ``place`` is ignored.
                #: For each pass with ``paged``, the entries from that of tile ``first_paged`` on; all of them
                #: are read.
                "entries": In(stream.Signature(PageEntry())),
                #: The tile with the offsets of its page; ``place`` is its number in the page.
                "o": Out(tiles),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        request, o = self.i.payload, self.o.payload
        source, command = request.source, request.command
        # A register: LUT RAM is slow, and sums begin here.
        m.submodules.entry = entry = Skid(PageEntry())
        connect(m, flipped(self.entries), entry.i)
        held = entry.o.payload
        begins = Signal(tile_shape(self._config), reset_less=True)  # first tile of the entry's page
        found = Signal()
        offsets = {side: Signal(ADDRESS_BITS, name=f"{side}_offset", reset_less=True) for side in "kv"}
        for side, offset in offsets.items():
            # In every cycle: tile and entry are constant until the tile is taken.
            m.d.sync += offset.eq(source[f"{side}_offset"] + (held[side] << UNIT_SHIFT))
        m.d.comb += [
            o.eq(request),
            o.place.eq(request.tile & source.page_mask),
            o.source.k_offset.eq(Mux(source.paged, offsets["k"], source.k_offset)),
            o.source.v_offset.eq(Mux(source.paged, offsets["v"], source.v_offset)),
            found.eq((request.tile & ~source.page_mask) == begins),
        ]
        with m.FSM():
            with m.State("PASS"):
                m.d.comb += [
                    self.o.valid.eq(self.i.valid & ~source.paged),
                    self.i.ready.eq(self.o.ready & ~source.paged),
                ]
                m.d.sync += begins.eq(source.first_paged)
                with m.If(self.i.valid & source.paged):
                    m.next = "LOOK"
            with m.State("LOOK"), m.If(self.i.valid & entry.o.valid):
                # A placeholder waits for an entry, too: without one its sums would change while it is
                # offered.
                with m.If(found | command.dummy):
                    m.next = "OFFER"
                with m.Else():
                    m.d.comb += entry.o.ready.eq(1)
                    m.d.sync += begins.eq(begins + source.page_mask + 1)
            with m.State("OFFER"):
                m.d.comb += [self.o.valid.eq(1), self.i.ready.eq(self.o.ready)]
                with m.If(self.o.ready):
                    m.next = "LOOK"
                    with m.If(command.closes):
                        m.next = "LEFT"
            with m.State("LEFT"):
                m.d.comb += entry.o.ready.eq(1)
                with m.If(entry.o.valid & held.last):
                    m.next = "PASS"
        return m
