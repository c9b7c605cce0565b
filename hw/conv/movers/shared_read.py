"""One read DMA for several users."""

from typing import Any, ClassVar

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.movers.layouts import ADDRESS_BITS
from hw.conv.movers.port_order import SourcedCommand
from hw.lib import axi
from hw.lib.dma.align_read import packed_layout
from hw.lib.dma.read import ReadDMA
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid

#: Commands whose data may be outstanding.
_COMMANDS = 64


class SharedRead(wiring.Component):
    """Reads for several users, each in the order of its commands.

    Behaviour
    ---------
    Words wait for those of earlier commands, of any user: a user must take its words without waiting for
    another's.
    """

    #: Cycles from the DMA's word to its user.
    LATENCY: ClassVar = Skid.LATENCY

    def __init__(self, *, sources: int, data_width: int) -> None:
        self._sources = sources
        self._dma = ReadDMA(data_width=data_width, addr_width=ADDRESS_BITS, commands=_COMMANDS)
        self._data_width = data_width
        super().__init__(
            {
                "command": In(stream.Signature(SourcedCommand(sources))),
                "o": Out(stream.Signature(packed_layout(data_width))).array(sources),
                "axi": Out(axi.ReadSignature(data_width=data_width, addr_width=ADDRESS_BITS)),
                "bytes_useful": Out(48),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Note the user of each command; words go by these notes."""
        m = Module()
        m.submodules.dma = dma = self._dma
        m.submodules.words = words = Skid(packed_layout(self._data_width))
        m.submodules.notes = notes = Fifo(range(max(2, self._sources)), depth=_COMMANDS)
        connect(m, dma.axi, flipped(self.axi))
        connect(m, dma.o, words.i)
        # Registered: the user of a word begins the path of the users' `ready`.
        m.submodules.whose = whose = Skid(range(max(2, self._sources)))
        connect(m, notes.o, whose.i)
        given = self.command
        m.d.comb += [
            dma.command.payload.eq(given.payload.command),
            notes.i.payload.eq(given.payload.source),
            dma.command.valid.eq(given.valid & notes.i.ready),
            notes.i.valid.eq(given.valid & dma.command.ready),
            given.ready.eq(dma.command.ready & notes.i.ready),
            self.bytes_useful.eq(dma.bytes_useful),
            whose.o.ready.eq(words.o.valid & words.o.ready & words.o.payload.last),
        ]
        for n in range(self._sources):
            mine = whose.o.valid & (whose.o.payload == n)
            m.d.comb += [self.o[n].payload.eq(words.o.payload), self.o[n].valid.eq(words.o.valid & mine)]
            with m.If(mine):
                m.d.comb += words.o.ready.eq(self.o[n].ready)
        return m
