"""The AXI read DMA: commands in, one packed stream of their bytes out."""

from typing import Any, ClassVar

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect

from hw.errors import InputError, check_range
from hw.lib import axi
from hw.lib.dma.align_read import ReadAligner, packed_layout
from hw.lib.dma.burst import BurstSplitter, check_bursts, command_layout, span, span_layout
from hw.lib.dma.whole_read import WholeBeats
from hw.lib.fifo import Fifo
from hw.lib.loads import LOADS, copies
from hw.lib.skid import Skid


class ReadDMA(wiring.Component):
    """Reads byte ranges from memory, many bursts ahead.

    * ``data_width``: bits of a beat, on the bus and of a word on ``o``.
    * ``addr_width``, ``id_width``: as of `axi.Signature`.  All bursts have ID 0, so their data come in order.
    * ``burst_beats``: beats of the longest burst: a power of two up to 16.
    * ``fifo_beats``: beats outstanding or in the FIFO; at least ``burst_beats``.  L + ``burst_beats`` keep a
      memory of latency L busy.
    * ``commands``: commands whose data may be outstanding.
    * ``whole``: addresses and lengths are multiples of a beat; then there is no shifter.

    Behaviour
    ---------
    Latency: 2 cycles from ``command`` to ``arvalid``, 2 from ``rvalid`` to ``o.valid`` when nothing is queued
    (3 when the first word needs two beats).  Rate: one bus beat every cycle, across bursts and commands and
    for every alignment.  ``rready`` is always high: an address is issued only when the FIFO has room for a
    burst of full length.

    Why
    ---
    A port that refuses data blocks every other port behind the memory's switch.  With room reserved in
    advance, a slow consumer stops addresses, never data.  The room is that of a full burst: the comparison is
    then a few upper bits of a register.

    Example
    -------
    >>> dma = ReadDMA(data_width=512, fifo_beats=128)
    >>> dma.command.payload.shape()
    StructLayout({'address': 64, 'length': 32})
    >>> dma.axi.signature
    axi.ReadSignature(data_width=512, addr_width=64, id_width=1)
    """

    #: Cycles from ``command`` to ``arvalid``, and from ``rvalid`` to ``o``.
    ADDRESS_LATENCY: ClassVar = 2
    DATA_LATENCY: ClassVar = 2
    #: Default of ``fifo_beats``.
    FIFO_BEATS: ClassVar = 512

    def __init__(
        self,
        *,
        data_width: int = 256,
        addr_width: int = 64,
        id_width: int = 1,
        burst_beats: int = 16,
        fifo_beats: int = FIFO_BEATS,
        commands: int = 64,
        whole: bool = False,
    ) -> None:
        port = axi.ReadSignature(data_width=data_width, addr_width=addr_width, id_width=id_width)
        check_bursts(data_width=data_width, burst_beats=burst_beats)
        if fifo_beats < burst_beats:
            raise InputError("fifo_beats", fifo_beats, f"at least burst_beats ({burst_beats})")
        check_range("commands", commands, 1)
        self._data_width = data_width
        self._burst_beats = burst_beats
        self._fifo_beats = fifo_beats
        self._commands = commands
        self._whole = whole
        super().__init__(
            {
                #: Bytes ``address`` to ``address + length - 1``; ``length`` is at least 1.
                "command": In(stream.Signature(command_layout(addr_width))),
                #: The bytes packed from lane 0 for any address.  Every word but a command's last is whole;
                #: there ``keep`` marks the valid low bytes.
                "o": Out(stream.Signature(packed_layout(data_width))),
                "axi": Out(port),
                "bytes_useful": Out(48),  #: Bytes delivered so far, without those that ``keep`` excludes.
                "bytes_bus": Out(48),  #: Bytes of all beats received so far.
                #: A command is unfinished, until its last word; registered, so a cycle late on both ends.
                "busy": Out(1),
                "error": Out(1),  #: A response other than OKAY since reset.
            }
        )
        # A beat without room: a proof shows that there is none.
        self.lost = Signal()

    def elaborate(self, platform: Any) -> Elaboratable:
        """Splitter -> address register; data register -> FIFO, bypassed when empty -> aligner."""
        m = Module()
        widths = {"data_width": self._data_width, "burst_beats": self._burst_beats}
        m.submodules.splitter = splitter = BurstSplitter(addr_width=self.axi.signature.addr_width, **widths)
        m.submodules.aligner = aligner = WholeBeats(**widths) if self._whole else ReadAligner(**widths)
        m.submodules.spans = spans = Fifo(span_layout(**widths), depth=self._commands)
        m.submodules.beats = beats = Fifo(self._data_width, depth=self._fifo_beats)
        connect(m, spans.o, aligner.span)
        connect(m, aligner.o, wiring.flipped(self.o))

        # A command goes to the splitter and, as a span, to the aligner's queue in one cycle.
        m.d.comb += [
            splitter.command.payload.eq(self.command.payload),
            spans.i.payload.eq(span(self.command.payload, **widths)),
            splitter.command.valid.eq(self.command.valid & spans.i.ready),
            spans.i.valid.eq(self.command.valid & splitter.command.ready),
            self.command.ready.eq(splitter.command.ready & spans.i.ready),
        ]

        # Addresses, while there is room for a full burst.
        address = data.StructLayout({"address": self.axi.araddr.shape(), "len": 8})
        m.submodules.addresses = addresses = Skid(address)
        room = Signal(range(self._fifo_beats + 1), init=self._fifo_beats)
        roomy = room >= self._burst_beats
        issue = Signal()
        m.d.comb += [
            addresses.i.payload.address.eq(splitter.o.payload.address),
            addresses.i.payload.len.eq(splitter.o.payload.beats - 1),
            addresses.i.valid.eq(splitter.o.valid & roomy),
            splitter.o.ready.eq(addresses.i.ready & roomy),
            issue.eq(splitter.o.valid & splitter.o.ready),
            self.axi.arvalid.eq(addresses.o.valid),
            self.axi.araddr.eq(addresses.o.payload.address),
            self.axi.arlen.eq(addresses.o.payload.len),
            addresses.o.ready.eq(self.axi.arready),
        ]
        taken = Signal()
        m.d.sync += room.eq(room - Mux(issue, splitter.o.payload.beats, 0) + taken)

        # Data.  The deep FIFO takes three cycles; a beat bypasses it when it is empty.  A beat that the
        # aligner does not take waits in `front`, which keeps the aligner's `ready` from the FIFO.
        arrived = Signal()
        arrived_data = Signal(self._data_width, reset_less=True)
        front = Signal(self._data_width, reset_less=True)
        # Copies for some bits of a beat.
        fulls = copies(Signal(name="front_full"), -(-self._data_width // LOADS))
        empties = copies(Signal(init=1, name="beats_empty"), len(fulls))
        front_full = fulls[0]
        offered = Mux(beats.empty, arrived, beats.o.valid)
        m.d.comb += self.axi.rready.eq(1)
        m.d.sync += [arrived.eq(self.axi.rvalid), arrived_data.eq(self.axi.rdata)]
        m.d.comb += [
            taken.eq(offered & ~front_full),
            aligner.i.valid.eq(offered | front_full),
            beats.o.ready.eq(~front_full),
            beats.i.payload.eq(arrived_data),
            beats.i.valid.eq(arrived & ~(beats.empty & ~front_full)),
            self.lost.eq(beats.i.valid & ~beats.i.ready),
        ]
        filled, drained = beats.i.valid & beats.i.ready, beats.o.valid & beats.o.ready
        for n, (full, empty) in enumerate(zip(fulls, empties, strict=True)):
            with m.If(filled & ~drained):
                m.d.sync += empty.eq(0)
            with m.If(drained & ~filled):
                m.d.sync += empty.eq(beats.level == 1)
            m.d.sync += full.eq(aligner.i.valid & ~aligner.i.ready)
            bits = slice(n * LOADS, (n + 1) * LOADS)
            beat = Mux(empty, arrived_data[bits], beats.o.payload[bits])
            m.d.comb += aligner.i.payload[bits].eq(Mux(full, front[bits], beat))
            with m.If(~full):
                m.d.sync += front[bits].eq(beat)

        with m.If(self.axi.rvalid):
            m.d.sync += self.bytes_bus.eq(self.bytes_bus + self._data_width // 8)
            with m.If(self.axi.rresp != axi.RESP_OKAY):
                m.d.sync += self.error.eq(1)
        m.d.sync += self.bytes_useful.eq(self.bytes_useful + aligner.bytes_moved)

        # An unfinished command is a queued span, the aligner's, or behind the word on `o`.
        unfinished = Signal(range(self._commands + 3))
        started = self.command.valid & self.command.ready
        finished = self.o.valid & self.o.ready & self.o.payload.last
        m.d.sync += unfinished.eq(unfinished + started - finished)
        m.d.comb += self.busy.eq(unfinished != 0)
        return m
