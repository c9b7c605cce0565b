"""The two transfer engines: memory to scratchpad, and back, each strictly in the order of its table."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from hw.lib import axi
from hw.lib.align_read import packed_layout
from hw.lib.burst import command_layout
from hw.lib.dma_read import ReadDMA
from hw.lib.dma_write import WriteDMA
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.layouts import piece_layout, transfer_layout
from hw.scheduler.core.ring import RingReader, RingWriter
from hw.scheduler.core.scratchpad import ReadPort, write_layout
from hw.scheduler.core.walker import Walker
from hw.scheduler.program.latency import TRANSFERS_AHEAD

ADDRESS_BITS = 64


class Issue(wiring.Component):
    """Lets transfers run when their step has come: to the DMA and, as a piece of the scratchpad, to a walker.

    Parameters
    ----------
    config
        Widths.

    Members
    -------
    i : In(stream of transfer_layout)
    base : In(64)
        Address of the program's region of the memory.
    begun : In(step_bits)
        Slots begun: a read or a stream of step ``s`` may run when this is more than ``s``.
    computed : In(step_bits)
        Steps computed: any other write of step ``s`` may run when this is more than ``s``.  For reads tied to
        ``begun``.
    command : Out(stream of hw.lib.burst.command_layout)
    piece : Out(stream of piece_layout)
        Tag: the core, one-hot, of a stream; else 0.

    Behaviour
    ---------
    Latency 1 cycle to ``command``, 1 to ``piece``; a transfer goes to both at once.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        self._piece = piece_layout(config, config.cores)
        super().__init__(
            {
                "i": In(stream.Signature(transfer_layout(config))),
                "base": In(ADDRESS_BITS),
                "begun": In(config.step_bits),
                "computed": In(config.step_bits),
                "command": Out(stream.Signature(command_layout(ADDRESS_BITS))),
                "piece": Out(stream.Signature(self._piece)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        row = self.i.payload
        streams = row.ring != 0
        low = Const(0, exact_log2(self._config.word_bytes))
        m.submodules.commands = commands = Skid(self.command.payload.shape())
        m.submodules.pieces = pieces = Fifo(self._piece, depth=TRANSFERS_AHEAD)
        may_run = (self.computed > row.start_step) | (streams & (self.begun > row.start_step))
        go = self.i.valid & may_run & commands.i.ready & pieces.i.ready
        m.d.comb += [
            self.i.ready.eq(go),
            commands.i.valid.eq(go),
            commands.i.payload.address.eq(self.base + Cat(low, row.dram)),
            commands.i.payload.length.eq(Cat(low, row.words)),
            pieces.i.valid.eq(go),
            pieces.i.payload.address.eq(row.address),
            pieces.i.payload.words.eq(row.words),
            pieces.i.payload.ring.eq(row.ring),
            pieces.i.payload.tag.eq(row.core & streams.replicate(self._config.cores)),
        ]
        connect(m, commands.o, flipped(self.command))
        connect(m, pieces.o, flipped(self.piece))
        return m


class ReadEngine(wiring.Component):
    """Fills the scratchpad.

    Parameters
    ----------
    config
        Widths.

    Members
    -------
    start : In(1)
        ``completed`` goes to 0.
    i : In(stream of transfer_layout)
        The transfers, in order.
    base : In(64)
    begun : In(step_bits)
        As of `Issue`.
    completed : Out(transfer_bits)
        Transfers whose last word is granted by the scratchpad.
    write : Out(stream of write_layout)
    rings : Out(RingWriter) array of ``cores``
        The ring each core reads a stream from.
    axi : Out(hw.lib.axi.ReadSignature)
    bytes_moved : Out(48)
        Since reset.
    loading : In(1)
        The DMA is the loader's (`hw.scheduler.core.loader`); no transfer may run.
    load, loaded
        Its command and its words.

    Behaviour
    ---------
    One word a cycle, from transfer to transfer as well: addresses are given to the memory as soon as a
    transfer may run, as far as the DMA has room for the data, whatever the one before still waits for.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),
                "i": In(stream.Signature(transfer_layout(config))),
                "base": In(ADDRESS_BITS),
                "begun": In(config.step_bits),
                "completed": Out(config.transfer_bits),
                "write": Out(stream.Signature(write_layout(config))),
                "rings": Out(RingWriter(config.size_bits)).array(config.cores),
                "axi": Out(axi.ReadSignature(data_width=config.word_bits, addr_width=ADDRESS_BITS)),
                "bytes_moved": Out(48),
                "loading": In(1),
                "load": In(stream.Signature(command_layout(ADDRESS_BITS))),
                "loaded": Out(stream.Signature(packed_layout(config.word_bits))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Issue -> DMA, walker -> word and place -> write, held by its ring."""
        m = Module()
        config = self._config
        m.submodules.issue = issue = Issue(config)
        m.submodules.dma = dma = ReadDMA(data_width=config.word_bits, addr_width=ADDRESS_BITS)
        m.submodules.walker = walker = Walker(config, config.cores)
        connect(m, flipped(self.i), issue.i)
        connect(m, issue.piece, walker.i)
        connect(m, dma.axi, flipped(self.axi))
        m.d.comb += [
            issue.base.eq(self.base),
            issue.begun.eq(self.begun),
            issue.computed.eq(self.begun),
            self.bytes_moved.eq(dma.bytes_useful),
        ]

        m.d.comb += [
            dma.command.valid.eq(self.load.valid | issue.command.valid),
            dma.command.payload.eq(issue.command.payload),
            issue.command.ready.eq(dma.command.ready & ~self.load.valid),
            self.load.ready.eq(dma.command.ready),
            self.loaded.valid.eq(dma.o.valid & self.loading),
            self.loaded.payload.eq(dma.o.payload),
        ]
        with m.If(self.load.valid):
            m.d.comb += dma.command.payload.eq(self.load.payload)

        place = walker.o.payload
        held = Signal(place.shape())
        filled = Signal()
        allowed = Signal()
        joined = dma.o.valid & walker.o.valid  # never while loading: there are no places
        moved = self.write.valid & self.write.ready
        free = ~filled | moved
        m.d.comb += [
            dma.o.ready.eq((joined & free) | (self.loading & self.loaded.ready)),
            walker.o.ready.eq(joined & free),
            allowed.eq(held.tag == 0),
            self.write.valid.eq(filled & allowed),
            self.write.payload.address.eq(held.address),
        ]
        for core, ring in enumerate(self.rings):
            m.d.comb += ring.written.eq(moved & held.tag[core])
            with m.If(held.tag[core]):
                m.d.comb += allowed.eq(ring.level < held.ring)
        with m.If(free):
            m.d.sync += [filled.eq(joined), held.eq(place), self.write.payload.data.eq(dma.o.payload.data)]
        with m.If(self.start):
            m.d.sync += self.completed.eq(0)
        with m.Else():
            m.d.sync += self.completed.eq(self.completed + (moved & held.last))
        return m


class WriteEngine(wiring.Component):
    """Empties the scratchpad.

    Parameters
    ----------
    config
        Widths.

    Members
    -------
    start : In(1)
        ``completed`` goes to 0.
    i : In(stream of transfer_layout)
        The transfers, in order.
    base : In(64)
    begun, computed : In(step_bits)
        As of `Issue`.
    completed : Out(transfer_bits)
        Transfers whose every write has its response.
    read : Out(ReadPort)
    rings : Out(RingReader) array of ``cores``
        The ring each core writes a stream into.
    axi : Out(hw.lib.axi.WriteSignature)
    bytes_moved : Out(48)
        Since reset.

    Behaviour
    ---------
    One word a cycle, from transfer to transfer as well, while the responses of earlier ones are on their way.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),
                "i": In(stream.Signature(transfer_layout(config))),
                "base": In(ADDRESS_BITS),
                "begun": In(config.step_bits),
                "computed": In(config.step_bits),
                "completed": Out(config.transfer_bits),
                "read": Out(ReadPort(config)),
                "rings": Out(RingReader()).array(config.cores),
                "axi": Out(axi.WriteSignature(data_width=config.word_bits, addr_width=ADDRESS_BITS)),
                "bytes_moved": Out(48),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Issue -> DMA, walker -> read, held by its ring -> words -> DMA."""
        m = Module()
        config = self._config
        m.submodules.issue = issue = Issue(config)
        m.submodules.dma = dma = WriteDMA(data_width=config.word_bits, addr_width=ADDRESS_BITS)
        m.submodules.walker = walker = Walker(config, config.cores)
        connect(m, flipped(self.i), issue.i)
        connect(m, issue.command, dma.command)
        connect(m, issue.piece, walker.i)
        connect(m, dma.axi, flipped(self.axi))
        place, request, response = walker.o.payload, self.read.request, self.read.response
        granted = request.valid & request.ready
        allowed = Signal()
        m.d.comb += [
            issue.base.eq(self.base),
            issue.begun.eq(self.begun),
            issue.computed.eq(self.computed),
            self.bytes_moved.eq(dma.bytes_useful),
            allowed.eq(place.tag == 0),
            request.payload.eq(place.address),
            request.valid.eq(walker.o.valid & allowed),
            walker.o.ready.eq(granted),
            dma.i.payload.data.eq(response.payload),
            dma.i.valid.eq(response.valid),
            response.ready.eq(dma.i.ready),
            dma.done.ready.eq(1),
        ]
        for core, ring in enumerate(self.rings):
            m.d.comb += [
                ring.acquired.eq(granted & place.tag[core]),
                ring.released.eq(granted & place.tag[core]),
            ]
            with m.If(place.tag[core]):
                m.d.comb += allowed.eq(ring.available)
        with m.If(self.start):
            m.d.sync += self.completed.eq(0)
        with m.Else():
            m.d.sync += self.completed.eq(self.completed + dma.done.valid)
        return m
