"""Items of fixed size out of memory."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.job import ADDRESS_BITS
from hw.lib import axi
from hw.lib.burst import command_layout
from hw.lib.dma_read import ReadDMA
from hw.lib.width import WidthConverter


class ItemReader(wiring.Component):
    """Reads byte ranges and cuts or joins the beats to items.

    Parameters
    ----------
    item_bytes
        Bytes of an item, a power of two.
    data_width
        Bits of a beat of the memory port.

    Members
    -------
    command : In(stream of {"address", "length"})
        ``length`` is a multiple of ``item_bytes``.
    o : Out(stream of item_bytes * 8 bits)
    axi : Out(axi.ReadSignature)
    bytes_useful : Out(48)
        Bytes read since reset.

    Behaviour
    ---------
    As `hw.lib.dma_read.ReadDMA`; one cycle more where an item is not a beat.
    """

    def __init__(self, *, item_bytes: int, data_width: int) -> None:
        self._item_bytes = item_bytes
        self._data_width = data_width
        self._dma = ReadDMA(data_width=data_width, addr_width=ADDRESS_BITS)
        super().__init__(
            {
                "command": In(stream.Signature(command_layout(ADDRESS_BITS))),
                "o": Out(stream.Signature(8 * item_bytes)),
                "axi": Out(axi.ReadSignature(data_width=data_width, addr_width=ADDRESS_BITS)),
                "bytes_useful": Out(48),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Put a converter behind the DMA where one is needed."""
        m = Module()
        m.submodules.dma = dma = self._dma
        connect(m, flipped(self.command), dma.command)
        connect(m, dma.axi, flipped(self.axi))
        m.d.comb += self.bytes_useful.eq(dma.bytes_useful)

        beat_bytes = self._data_width // 8
        lane_bytes = min(beat_bytes, self._item_bytes)
        source: Any = dma.o
        if beat_bytes != self._item_bytes:
            m.submodules.converter = converter = WidthConverter(
                lane_width=8 * lane_bytes,
                i_lanes=beat_bytes // lane_bytes,
                o_lanes=self._item_bytes // lane_bytes,
            )
            # Commands are whole items, so a lane's bytes come and go together.
            keep = [dma.o.payload.keep[n] for n in range(0, beat_bytes, lane_bytes)]
            m.d.comb += [
                converter.i.payload.data.eq(dma.o.payload.data),
                converter.i.payload.keep.eq(Cat(*keep)),
                converter.i.payload.last.eq(dma.o.payload.last),
                converter.i.valid.eq(dma.o.valid),
                dma.o.ready.eq(converter.i.ready),
            ]
            source = converter.o
        m.d.comb += [
            self.o.payload.eq(source.payload.data),
            self.o.valid.eq(source.valid),
            source.ready.eq(self.o.ready),
        ]
        return m
