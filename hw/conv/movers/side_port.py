"""The port beside the maps: descriptors and offsets in, the log of jobs out."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import offset_entry
from hw.conv.movers.descriptor import used_bytes
from hw.conv.movers.layouts import ADDRESS_BITS, OffsetRead
from hw.conv.movers.offset_reader import OffsetReader
from hw.conv.movers.port_order import PortOrder
from hw.conv.movers.shared_read import SharedRead
from hw.lib import axi
from hw.lib.dma.write import WriteDMA
from hw.lib.fifo import Fifo

#: Bytes of an entry of the log: the cycle, counted from the start, in which a job was in memory.
LOG_BYTES = 8
_OFFSETS, _DESCRIPTORS = 0, 1


class SidePort(wiring.Component):
    """Reads descriptors and offsets, and writes the cycle in which each job was done."""

    #: Cycles from a job's end to its entry after its command in the DMA, and from the response on.
    LOG_LATENCY: ClassVar = Fifo.LATENCY + 1
    LOG_DONE_LATENCY: ClassVar = 1

    def __init__(self, config: ConvConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse: cycles and entries of the log are counted from here.
                "log": In(ADDRESS_BITS),  #: Address of the log.
                #: ``fetch``, ``words``: addresses and words of descriptors, see
                #: `hw.lib.descriptors.queue.DescriptorQueue`.
                "fetch": In(stream.Signature(ADDRESS_BITS)),
                "words": Out(stream.Signature(data_width)),
                "offset_read": In(stream.Signature(OffsetRead(config))),
                "offsets": Out(stream.Signature(offset_entry(config))),
                "written": In(1),  #: One-cycle pulse: a job is in memory.
                "busy": Out(1),  #: An entry of the log is not in memory.
                "read": Out(axi.ReadSignature(data_width=data_width, addr_width=ADDRESS_BITS)),
                "write": Out(axi.WriteSignature(data_width=data_width, addr_width=ADDRESS_BITS)),
                "read_bytes": Out(48),
                "write_bytes": Out(48),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build one reader for two users, and one writer."""
        m = Module()
        width = self._data_width
        m.submodules.reader = reader = SharedRead(sources=2, data_width=width)
        m.submodules.order = order = PortOrder(sources=2, ports=1)
        m.submodules.offsets = offsets = OffsetReader(self._config, data_width=width)
        m.submodules.writer = writer = WriteDMA(
            data_width=width, addr_width=ADDRESS_BITS, fifo_beats=16, commands=4, outstanding=4
        )
        connect(m, reader.axi, flipped(self.read))
        connect(m, writer.axi, flipped(self.write))
        connect(m, flipped(self.offset_read), offsets.i)
        connect(m, offsets.o, flipped(self.offsets))
        connect(m, order.o[0], reader.command)
        connect(m, reader.o[_OFFSETS], offsets.words)
        wanted, descriptors = order.i[_OFFSETS], order.i[_DESCRIPTORS]
        m.d.comb += [
            descriptors.valid.eq(self.fetch.valid),
            wanted.valid.eq(offsets.command.valid),
            wanted.payload[0].eq(offsets.command.payload),
            offsets.command.ready.eq(wanted.ready),
            descriptors.payload[0].address.eq(self.fetch.payload),
            descriptors.payload[0].length.eq(used_bytes(self._config)),
            self.fetch.ready.eq(descriptors.ready),
            self.words.valid.eq(reader.o[_DESCRIPTORS].valid),
            self.words.payload.eq(reader.o[_DESCRIPTORS].payload.data),
            reader.o[_DESCRIPTORS].ready.eq(self.words.ready),
            self.read_bytes.eq(reader.bytes_useful),
            self.write_bytes.eq(writer.bytes_useful),
        ]

        # The log.  Jobs end further apart than a queue of a few entries needs to be written.
        m.submodules.entries = entries = Fifo(64, depth=16)
        cycle = Signal(64)
        address = Signal(ADDRESS_BITS)
        m.d.sync += cycle.eq(cycle + 1)
        with m.If(self.start):
            m.d.sync += [cycle.eq(0), address.eq(self.log)]
        unwritten = Signal(range(32))
        commanded = Signal()
        sent = Signal()
        ended = writer.done.valid & writer.done.ready
        m.d.sync += unwritten.eq(unwritten + self.written - ended)
        m.d.comb += [
            entries.i.valid.eq(self.written),
            entries.i.payload.eq(cycle),
            writer.command.valid.eq(entries.o.valid & ~commanded),
            writer.command.payload.address.eq(address),
            writer.command.payload.length.eq(LOG_BYTES),
            writer.i.valid.eq(entries.o.valid & ~sent),
            writer.i.payload.data.eq(entries.o.payload),
            writer.done.ready.eq(1),
            self.busy.eq(self.written | (unwritten != 0)),
        ]
        both = Signal()
        m.d.comb += [both.eq(commanded & sent), entries.o.ready.eq(both)]
        with m.If(writer.command.valid & writer.command.ready):
            m.d.sync += [commanded.eq(1), address.eq(address + LOG_BYTES)]
        with m.If(writer.i.valid & writer.i.ready):
            m.d.sync += sent.eq(1)
        with m.If(both):
            m.d.sync += [commanded.eq(0), sent.eq(0)]
        return m
