"""The transfer engine from memory to the scratchpad, in the order of its table."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib import axi
from hw.lib.dma.burst import command_layout
from hw.lib.dma.read import ReadDMA
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid
from hw.lib.width import WidthConverter
from hw.network.config import WORD_BYTES, NetworkConfig
from hw.network.kernel.gated_issue import gated_issue, start_members
from hw.network.kernel.gather_issue import GatherIssue
from hw.network.kernel.shared_reads import SharedReads
from hw.network.program.records import read_layout
from hw.network.scratchpad.writer import GranuleWritePort
from hw.scheduler.core.layouts import MEMORY_ADDRESS_BITS

#: More words than the scratchpad takes and has not granted.
_UNGRANTED = 32


class TransferIn(wiring.Component):
    """Fills the scratchpad, and reads the program image before and between.

    A transfer is complete when the scratchpad grants its last word.  Rows are gathered by `GatherIssue`.

    Behaviour
    ---------
    A word of the port a cycle, without gaps between transfers.  Read addresses are issued as soon as a
    transfer may run and the DMA has room for the data.
    """

    def __init__(self, config: NetworkConfig) -> None:
        self._config = config
        port = axi.ReadSignature(data_width=8 * config.port_bytes, addr_width=MEMORY_ADDRESS_BITS)
        super().__init__(
            {
                **start_members(config, read_layout(config)),
                "write": Out(GranuleWritePort(config.shape)),
                "axi": Out(port),
                "bytes_moved": Out(48),  #: Since reset.
                "loading": In(1),  #: The loader uses the DMA alone; no transfer may run.
                #: ``load``, ``loaded``: the loader's commands, and their words; see `SharedReads`.
                "load": In(stream.Signature(command_layout(MEMORY_ADDRESS_BITS))),
                "loaded": Out(stream.Signature(8 * WORD_BYTES)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Issue -> DMA -> words; words and their places -> scratchpad."""
        m = Module()
        port_bits = 8 * self._config.port_bytes
        m.submodules.gather = gather = GatherIssue(self._config)
        issue = gated_issue(m, self._config, self, gather=gather)
        m.submodules.dma = dma = ReadDMA(data_width=port_bits, addr_width=MEMORY_ADDRESS_BITS)
        m.submodules.part = part = Skid(port_bits)
        m.submodules.join = join = WidthConverter(
            lane_width=port_bits, i_lanes=1, o_lanes=WORD_BYTES // self._config.port_bytes
        )
        connect(m, dma.axi, flipped(self.axi))
        m.submodules.shared = shared = SharedReads()
        connect(m, issue.command, shared.transfers)
        connect(m, flipped(self.load), shared.load)
        connect(m, shared.command, dma.command)
        connect(m, shared.loaded, flipped(self.loaded))
        m.d.comb += [
            shared.wanted.eq(gather.i.valid),
            shared.loading.eq(self.loading),
            self.bytes_moved.eq(dma.bytes_useful),
            part.i.valid.eq(dma.o.valid),
            part.i.payload.eq(dma.o.payload.data),
            dma.o.ready.eq(part.i.ready),
            join.i.valid.eq(part.o.valid),
            join.i.p.data.eq(part.o.payload),
            join.i.p.keep.eq(1),
            part.o.ready.eq(join.i.ready),
            shared.words.valid.eq(join.o.valid),
            shared.words.payload.eq(join.o.p.data),
            join.o.ready.eq(shared.words.ready),
        ]
        self._write(m, shared, issue.place, gather)
        return m

    def _write(self, m: Module, shared: SharedReads, places: Any, gather: Any) -> None:
        """Send words to their places or to the gather, and count transfers."""
        m.submodules.lasts = lasts = Fifo(1, depth=_UNGRANTED)
        write, words = self.write.write, shared.moved
        joined = Signal()
        takes = Signal()
        kind = gather.kind.payload  # there before the part's first place
        sent = Signal()
        finished = Signal()
        granules = self._config.shape.granules
        offset = Const(0, self._config.shape.offset_bits)
        m.d.comb += [
            joined.eq(words.valid & places.valid),
            takes.eq(Mux(kind.numbers, gather.numbers.ready, write.ready)),
            sent.eq(joined & write.ready & ~kind.numbers),
            write.valid.eq(joined & ~kind.numbers),
            gather.numbers.valid.eq(joined & kind.numbers),
            gather.numbers.payload.eq(words.payload),
            gather.kind.ready.eq(joined & takes & places.payload.last),
            write.payload.address.eq(Cat(offset, places.payload.address)),
            write.payload.enable.eq(2**granules - 1),
            write.payload.data.as_value().eq(words.payload),
            places.ready.eq(words.valid & takes),
            words.ready.eq(places.valid & takes),
            shared.ends.eq(places.payload.last),
            lasts.i.valid.eq(sent),
            lasts.i.payload.eq(places.payload.last & kind.ends),
            lasts.o.ready.eq(self.write.written),
            finished.eq(self.write.written & lasts.o.valid & lasts.o.payload),
        ]
        with m.If(self.start):
            m.d.sync += self.completed.eq(0)
        with m.Elif(finished):
            m.d.sync += self.completed.eq(self.completed + 1)
