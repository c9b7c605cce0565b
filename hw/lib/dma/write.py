"""The AXI write DMA: one packed stream in, written to the byte ranges of commands."""

from typing import Any, ClassVar

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect

from hw.errors import InputError, check_range
from hw.lib import axi
from hw.lib.dma.align_write import WriteAligner, beat_layout
from hw.lib.dma.burst import BurstSplitter, check_bursts, command_layout, span, span_layout
from hw.lib.fifo import Fifo


class WriteDMA(wiring.Component):
    """Writes byte ranges to memory; a burst is issued when its data are complete.

    * ``data_width``: bits of a beat, on the bus and of a word on ``i``.
    * ``addr_width``, ``id_width``: as of `axi.Signature`.  All bursts have ID 0, so their responses come in
      order.
    * ``burst_beats``: beats of the longest burst: a power of two up to 16.
    * ``fifo_beats``: beats that may wait for the bus; at least ``burst_beats``, twice that for one beat a
      cycle.
    * ``commands``: commands that may wait for their first burst, and ``done`` tokens that may wait.
    * ``outstanding``: bursts that may wait for their response.

    Behaviour
    ---------
    One bus beat every cycle, across bursts and commands and for every alignment.  The latency from the last
    word of a burst on ``i`` to ``awvalid`` is 3 cycles.  ``wvalid`` never precedes ``awvalid`` of its burst,
    and never waits for ``awready``.

    Why
    ---
    An address is issued only when the whole burst lies in the FIFO.  A write address holds its path through
    the HBM switch until its last beat.  Issued before its data, an engine that waits for its own results
    would block every other port behind that switch.  The price is the latency of one burst.

    Example
    -------
    >>> dma = WriteDMA(data_width=512, outstanding=8)
    >>> dma.i.payload.shape(), dma.done.payload.shape()
    (StructLayout({'data': 512}), unsigned(1))
    """

    #: Cycles from the last word of a burst on ``i`` to ``awvalid``, and from its response to ``done``.
    ADDRESS_LATENCY: ClassVar = 3
    DONE_LATENCY: ClassVar = Fifo.LATENCY
    #: Default of ``outstanding``.
    OUTSTANDING: ClassVar = 64
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
        commands: int = 16,
        outstanding: int = OUTSTANDING,
    ) -> None:
        port = axi.WriteSignature(data_width=data_width, addr_width=addr_width, id_width=id_width)
        check_bursts(data_width=data_width, burst_beats=burst_beats)
        if fifo_beats < burst_beats:
            raise InputError("fifo_beats", fifo_beats, f"at least burst_beats ({burst_beats})")
        check_range("commands", commands, 1)
        check_range("outstanding", outstanding, 1)
        self._data_width = data_width
        self._burst_beats = burst_beats
        self._fifo_beats = fifo_beats
        self._commands = commands
        self._outstanding = outstanding
        super().__init__(
            {
                #: Bytes ``address`` to ``address + length - 1``; ``length`` is at least 1.
                "command": In(stream.Signature(command_layout(addr_width))),
                #: The bytes packed from lane 0 for any address: ceil(``length`` / bytes of a word) words a
                #: command; the rest of its last word is ignored.
                "i": In(stream.Signature(data.StructLayout({"data": data_width}))),
                "axi": Out(port),
                #: One token for each command, in order, after all its responses; 1 if one was not OKAY.
                "done": Out(stream.Signature(1)),
                "bytes_useful": Out(48),  #: Bytes taken from ``i`` so far, without ignored ones.
                "bytes_bus": Out(48),  #: Bytes of all beats sent so far, for any strobes.
                #: A command is unfinished, until its token; registered, so a cycle late on both ends.
                "busy": Out(1),
                "error": Out(1),  #: A response other than OKAY since reset.
            }
        )

    def elaborate(self, platform: Any) -> Elaboratable:
        """Aligner -> FIFO -> w; queue -> splitter, held until a burst is whole -> aw; b -> done."""
        m = Module()
        widths = {"data_width": self._data_width, "burst_beats": self._burst_beats}
        m.submodules.aligner = aligner = WriteAligner(**widths)
        m.submodules.spans = spans = Fifo(span_layout(**widths), depth=self._commands)
        m.submodules.beats = beats = Fifo(beat_layout(self._data_width), depth=self._fifo_beats)
        m.submodules.queue = queue = Fifo(self.command.payload.shape(), depth=self._commands)
        m.submodules.splitter = splitter = BurstSplitter(addr_width=self.axi.signature.addr_width, **widths)
        connect(m, spans.o, aligner.span)
        connect(m, aligner.o, beats.i)
        connect(m, queue.o, splitter.command)

        # Aligner and splitter take commands at different times, from two queues filled together.
        m.d.comb += [
            queue.i.payload.eq(self.command.payload),
            spans.i.payload.eq(span(self.command.payload, **widths)),
            queue.i.valid.eq(self.command.valid & spans.i.ready),
            spans.i.valid.eq(self.command.valid & queue.i.ready),
            self.command.ready.eq(queue.i.ready & spans.i.ready),
            aligner.i.payload.eq(self.i.payload.data),
            aligner.i.valid.eq(self.i.valid),
            self.i.ready.eq(aligner.i.ready),
        ]

        # Addresses of whole bursts.  A note for every response: whether it ends a command.  A plain register
        # instead of a skid buffer: an issued address is on the bus in the next cycle, so its data may be.
        m.submodules.notes = notes = Fifo(1, depth=self._outstanding)
        whole = Signal(range(self._fifo_beats + 1))  # whole bursts in the FIFO, not addressed
        some_whole = Signal()
        issue = Signal()
        stored = beats.i.valid & beats.i.ready & beats.i.payload.last
        free = ~self.axi.awvalid | self.axi.awready
        m.d.comb += [
            issue.eq(splitter.o.valid & some_whole & notes.i.ready & free),
            splitter.o.ready.eq(issue),
            notes.i.valid.eq(issue),
            notes.i.payload.eq(splitter.o.payload.last),
        ]
        self._count(m, whole, some_whole, stored, issue)
        with m.If(free):
            m.d.sync += self.axi.awvalid.eq(issue)
        with m.If(issue):
            m.d.sync += [
                self.axi.awaddr.eq(splitter.o.payload.address),
                self.axi.awlen.eq(splitter.o.payload.beats - 1),
            ]

        # Data of bursts whose address is or was on the bus: AXI forbids waiting for awready.
        open_bursts = Signal(range(self._fifo_beats + 1))
        some_open = Signal()
        sent = self.axi.wvalid & self.axi.wready
        m.d.comb += [
            self.axi.wvalid.eq(beats.o.valid & some_open),
            self.axi.wdata.eq(beats.o.payload.data),
            self.axi.wstrb.eq(beats.o.payload.strb),
            self.axi.wlast.eq(beats.o.payload.last),
            beats.o.ready.eq(sent),
        ]
        self._count(m, open_bursts, some_open, issue, sent & self.axi.wlast)
        with m.If(sent):
            m.d.sync += self.bytes_bus.eq(self.bytes_bus + self._data_width // 8)
        m.d.sync += self.bytes_useful.eq(self.bytes_useful + aligner.bytes_taken)

        # Responses, one note each.  A blocked token stalls responses, and in the end addresses.
        m.submodules.tokens = tokens = Fifo(1, depth=self._commands)
        connect(m, tokens.o, wiring.flipped(self.done))
        answered = self.axi.bvalid & self.axi.bready
        wrong = self.axi.bresp != axi.RESP_OKAY
        spoiled = Signal()  # an earlier burst of the command had an error
        m.d.comb += [
            self.axi.bready.eq(notes.o.valid & tokens.i.ready),
            notes.o.ready.eq(answered),
            tokens.i.valid.eq(answered & notes.o.payload),
            tokens.i.payload.eq(spoiled | wrong),
        ]
        with m.If(answered):
            m.d.sync += [
                spoiled.eq((spoiled | wrong) & ~notes.o.payload),
                self.error.eq(self.error | wrong),
            ]

        # An unfinished command is in the queue, the splitter, a note, or a token.
        unfinished = Signal(range(2 * self._commands + self._outstanding + 2))
        started = self.command.valid & self.command.ready
        finished = self.done.valid & self.done.ready
        m.d.sync += unfinished.eq(unfinished + started - finished)
        m.d.comb += self.busy.eq(unfinished != 0)
        return m

    def _count(self, m: Module, number: Signal, some: Signal, more: Any, fewer: Any) -> None:
        """Count up and down, and register whether the number is 0: a comparison would begin long paths."""
        with m.If(more & ~fewer):
            m.d.sync += [number.eq(number + 1), some.eq(1)]
        with m.If(fewer & ~more):
            m.d.sync += [number.eq(number - 1), some.eq(number != 1)]
