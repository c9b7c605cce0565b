"""The transfer engine from the scratchpad to memory, in the order of its table."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped

from hw.lib import axi
from hw.lib.dma.write import WriteDMA
from hw.lib.skid import Skid
from hw.lib.width import WidthConverter
from hw.network.config import WORD_BYTES, NetworkConfig
from hw.network.kernel.gated_issue import gated_issue, start_members
from hw.network.program.records import transfer_layout
from hw.network.scratchpad.reader import GranuleReadPort
from hw.scheduler.core.layouts import MEMORY_ADDRESS_BITS


class TransferOut(wiring.Component):
    """Drains the scratchpad.

    A transfer is complete when all its writes are acknowledged.

    Behaviour
    ---------
    A word of the port a cycle, without gaps between transfers.
    """

    def __init__(self, config: NetworkConfig) -> None:
        self._config = config
        port = axi.WriteSignature(data_width=8 * config.port_bytes, addr_width=MEMORY_ADDRESS_BITS)
        super().__init__(
            {
                **start_members(config, transfer_layout(config)),
                "read": Out(GranuleReadPort(config.shape)),
                "axi": Out(port),
                "bytes_moved": Out(48),  #: Since reset.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Issue -> places -> requests; words -> parts -> DMA."""
        m = Module()
        port_bits = 8 * self._config.port_bytes
        lanes = WORD_BYTES // self._config.port_bytes
        issue = gated_issue(m, self._config, self)
        m.submodules.dma = dma = WriteDMA(data_width=port_bits, addr_width=MEMORY_ADDRESS_BITS)
        m.submodules.requests = requests = Skid(self._config.shape.address_bits)
        m.submodules.split = split = WidthConverter(lane_width=port_bits, i_lanes=lanes, o_lanes=1)
        m.submodules.part = part = Skid(port_bits)
        connect(m, issue.command, dma.command)
        connect(m, dma.axi, flipped(self.axi))
        request, response = self.read.request, self.read.response
        offset = Const(0, self._config.shape.offset_bits)
        m.d.comb += [
            requests.i.valid.eq(issue.place.valid),
            requests.i.payload.eq(issue.place.payload.address),
            issue.place.ready.eq(requests.i.ready),
            request.valid.eq(requests.o.valid),
            request.payload.address.eq(Cat(offset, requests.o.payload)),
            request.payload.enable.eq(2**self._config.shape.granules - 1),
            requests.o.ready.eq(request.ready),
            split.i.valid.eq(response.valid),
            split.i.p.data.eq(response.payload.data.as_value()),
            split.i.p.keep.eq(2**lanes - 1),
            response.ready.eq(split.i.ready),
            part.i.valid.eq(split.o.valid),
            part.i.payload.eq(split.o.p.data),
            split.o.ready.eq(part.i.ready),
            dma.i.valid.eq(part.o.valid),
            dma.i.payload.data.eq(part.o.payload),
            part.o.ready.eq(dma.i.ready),
            dma.done.ready.eq(1),
            self.bytes_moved.eq(dma.bytes_useful),
        ]
        with m.If(self.start):
            m.d.sync += self.completed.eq(0)
        with m.Elif(dma.done.valid):
            m.d.sync += self.completed.eq(self.completed + 1)
        return m
