"""A memory port of the weight stream."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib import axi
from hw.lib.dma.burst import command_layout
from hw.lib.dma.read import ReadDMA
from hw.lib.skid import Skid

#: Bits of an address in memory.
ADDRESS_BITS = 64


class WeightPort(wiring.Component):
    """Reads the words of commands, one after the other: whole words of the port.

    ``width``: bits of the port.
    """

    def __init__(self, *, width: int) -> None:
        self._width = width
        super().__init__(
            {
                "command": In(stream.Signature(command_layout(ADDRESS_BITS))),
                "axi": Out(axi.ReadSignature(data_width=width, addr_width=ADDRESS_BITS)),
                "o": Out(stream.Signature(width)),
                "bytes_moved": Out(48),  #: Since reset.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Command -> DMA -> register."""
        m = Module()
        m.submodules.dma = dma = ReadDMA(data_width=self._width, addr_width=ADDRESS_BITS, whole=True)
        # The command waits here until the port takes it: ports need not agree in a cycle.
        m.submodules.commands = commands = Skid(dma.command.payload.shape())
        m.submodules.words = words = Skid(self._width)
        connect(m, flipped(self.command), commands.i)
        connect(m, commands.o, dma.command)
        connect(m, dma.axi, flipped(self.axi))
        connect(m, words.o, flipped(self.o))
        m.d.comb += [
            words.i.valid.eq(dma.o.valid),
            words.i.payload.eq(dma.o.payload.data),
            dma.o.ready.eq(words.i.ready),
            self.bytes_moved.eq(dma.bytes_useful),
        ]
        return m
