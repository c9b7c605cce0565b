"""The two transfer engines, memory to scratchpad and back, each strictly in the order of its table."""

from typing import Any

from amaranth.hdl import Cat, Const, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from hw.lib import axi
from hw.lib.dma.align_read import packed_layout
from hw.lib.dma.burst import command_layout
from hw.lib.dma.read import ReadDMA
from hw.lib.dma.write import WriteDMA
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.address_generator import AddressGenerator
from hw.scheduler.core.gate import ReadGate, WriteGate
from hw.scheduler.core.layouts import MEMORY_ADDRESS_BITS, piece_layout, place_layout, transfer_layout
from hw.scheduler.core.ring import RingReader, RingWriter
from hw.scheduler.core.scratchpad import ScratchpadReadPort, write_layout
from hw.scheduler.program.latency import TRANSFERS_AHEAD


class TransferIssue(wiring.Component):
    """Issues each transfer at its start step: a DMA command, and the scratchpad addresses of its words.

    Behaviour
    ---------
    Latency 1 cycle to ``command``, 2 to ``place``; a transfer is issued to both at once.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(transfer_layout(config))),
                "base": In(MEMORY_ADDRESS_BITS),  #: Address of the program's region of the memory.
                #: Slots begun: a read or a stream of start step ``s`` may run when this exceeds ``s``.
                "begun": In(config.step_bits),
                #: Steps computed: any other write of start step ``s`` may run when this exceeds ``s``.  Equal
                #: to ``begun`` for the read engine.
                "computed": In(config.step_bits),
                "command": Out(stream.Signature(command_layout(MEMORY_ADDRESS_BITS))),
                #: Tag: the core of a stream, one-hot; 0 for a whole tensor.
                "place": Out(stream.Signature(place_layout(config, config.cores))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        row, cores = self.i.payload, self._config.cores
        streams = row.ring != 0
        low = Const(0, exact_log2(self._config.word_bytes))
        m.submodules.commands = commands = Skid(self.command.payload.shape())
        m.submodules.pieces = pieces = Fifo(piece_layout(self._config, cores), depth=TRANSFERS_AHEAD)
        m.submodules.walker = walker = AddressGenerator(self._config, cores)
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
            pieces.i.payload.tag.eq(row.core & streams.replicate(cores)),
        ]
        connect(m, commands.o, flipped(self.command))
        connect(m, pieces.o, walker.i)
        connect(m, walker.o, flipped(self.place))
        return m


class TransferEngine(wiring.Component):
    """The common part of both transfer engines.

    Behaviour
    ---------
    One word a cycle, without gaps between transfers.
    """

    def __init__(self, config: SchedulerConfig, members: dict[str, wiring.Member]) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),  #: Resets ``completed``.
                "i": In(stream.Signature(transfer_layout(config))),  #: The transfers, in order.
                "base": In(MEMORY_ADDRESS_BITS),
                #: ``begun``, ``computed``: as in `TransferIssue`.
                "begun": In(config.step_bits),
                "computed": In(config.step_bits),
                "completed": Out(config.transfer_bits),  #: Transfers completed.
                "bytes_moved": Out(48),  #: Since reset.
                **members,
            }
        )

    def _begin(self, completes: Any) -> tuple[Module, TransferIssue]:
        """Make the module with `TransferIssue` and the count of completed transfers."""
        m = Module()
        m.submodules.issue = issue = TransferIssue(self._config)
        connect(m, flipped(self.i), issue.i)
        m.d.comb += [
            issue.base.eq(self.base),
            issue.begun.eq(self.begun),
            issue.computed.eq(self.computed),
        ]
        with m.If(self.start):
            m.d.sync += self.completed.eq(0)
        with m.Elif(completes):
            m.d.sync += self.completed.eq(self.completed + 1)
        return m, issue


class ReadEngine(TransferEngine):
    """Fills the scratchpad.

    A transfer is complete when the scratchpad grants its last word.

    Behaviour
    ---------
    Read addresses are issued as soon as a transfer may run and the DMA has room for the data, even while the
    previous transfer waits for its ring.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        super().__init__(
            config,
            {
                "write": Out(stream.Signature(write_layout(config))),
                #: The ring from which each core reads a stream.
                "rings": Out(RingWriter(config.size_bits)).array(config.cores),
                "axi": Out(axi.ReadSignature(data_width=config.word_bits, addr_width=MEMORY_ADDRESS_BITS)),
                #: The loader (`hw.scheduler.core.loader`) uses the DMA; no transfer may run.
                "loading": In(1),
                #: ``load``, ``loaded``: the loader's DMA commands and words.
                "load": In(stream.Signature(command_layout(MEMORY_ADDRESS_BITS))),
                "loaded": Out(stream.Signature(packed_layout(config.word_bits))),
            },
        )

    def elaborate(self, platform: Any) -> Module:
        """Issue -> DMA; words and their places -> gate."""
        gate = WriteGate(self._config, rings=self._config.cores)
        dma = ReadDMA(data_width=self._config.word_bits, addr_width=MEMORY_ADDRESS_BITS)
        m, issue = self._begin(gate.finished)
        m.submodules.gate, m.submodules.dma = gate, dma
        connect(m, gate.write, flipped(self.write))
        for inner, outer in zip(gate.rings, self.rings, strict=True):
            connect(m, inner, flipped(outer))
        connect(m, dma.axi, flipped(self.axi))

        m.d.comb += [
            dma.command.valid.eq(self.load.valid | issue.command.valid),
            dma.command.payload.eq(issue.command.payload),
            issue.command.ready.eq(dma.command.ready & ~self.load.valid),
            self.load.ready.eq(dma.command.ready),
            self.loaded.valid.eq(dma.o.valid & self.loading),
            self.loaded.payload.eq(dma.o.payload),
            self.bytes_moved.eq(dma.bytes_useful),
        ]
        with m.If(self.load.valid):
            m.d.comb += dma.command.payload.eq(self.load.payload)

        joined = dma.o.valid & issue.place.valid  # never while loading: no transfer is issued then
        m.d.comb += [
            gate.i.valid.eq(joined),
            gate.i.payload.place.eq(issue.place.payload),
            gate.i.payload.data.eq(dma.o.payload.data),
            issue.place.ready.eq(dma.o.valid & gate.i.ready),
            dma.o.ready.eq((issue.place.valid & gate.i.ready) | (self.loading & self.loaded.ready)),
        ]
        return m


class WriteEngine(TransferEngine):
    """Drains the scratchpad.

    A transfer is complete when all its writes are acknowledged (AXI response).
    """

    def __init__(self, config: SchedulerConfig) -> None:
        super().__init__(
            config,
            {
                "read": Out(ScratchpadReadPort(config)),
                #: The ring into which each core writes a stream.
                "rings": Out(RingReader()).array(config.cores),
                "axi": Out(axi.WriteSignature(data_width=config.word_bits, addr_width=MEMORY_ADDRESS_BITS)),
            },
        )

    def elaborate(self, platform: Any) -> Module:
        """Issue -> DMA; places -> gate -> words -> DMA."""
        gate = ReadGate(self._config, rings=self._config.cores)
        dma = WriteDMA(data_width=self._config.word_bits, addr_width=MEMORY_ADDRESS_BITS)
        m, issue = self._begin(dma.done.valid)
        m.submodules.gate, m.submodules.dma = gate, dma
        connect(m, issue.command, dma.command)
        connect(m, gate.request, flipped(self.read.request))
        for inner, outer in zip(gate.rings, self.rings, strict=True):
            connect(m, inner, flipped(outer))
        connect(m, dma.axi, flipped(self.axi))
        place, response = issue.place.payload, self.read.response
        m.d.comb += [
            gate.i.valid.eq(issue.place.valid),
            gate.i.payload.address.eq(place.address),
            gate.i.payload.acquire.eq(place.tag),
            gate.i.payload.release.eq(place.tag),
            issue.place.ready.eq(gate.i.ready),
            dma.i.payload.data.eq(response.payload),
            dma.i.valid.eq(response.valid),
            response.ready.eq(dma.i.ready),
            dma.done.ready.eq(1),
            self.bytes_moved.eq(dma.bytes_useful),
        ]
        return m
