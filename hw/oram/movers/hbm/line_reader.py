"""Reads lines over all ports and returns them in the order of their requests."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.fifo import Fifo
from hw.lib.place import InlinePlacer, Placer
from hw.lib.skid import Skid
from hw.oram.movers.hbm.lines import (
    ADDRESS_BITS,
    LineRead,
    Lines,
    Words,
    check_reads,
    read_signature,
    words_of,
)
from hw.oram.movers.hbm.read_port import LineReadPort


class LineReader(wiring.Component):
    """Random reads of lines.

    ``reads``: kinds of requests. ``outstanding``: maximum number of lines of each kind requested and not yet
    taken, at all ports. ``depth``: the same at one port. ``requests``: of each kind in a port's queue; a full
    queue holds up the other ports. ``cell``: name of the port's cell, unique in the design. ``placer``:
    places the ports; by default as ordinary submodules.

    Behaviour
    ---------
    One request and one word of each kind a cycle. With empty queues ``arvalid`` follows a request by
    `ADDRESS_LATENCY` cycles, and a word follows the ``rvalid`` of its last beat by `DATA_LATENCY`, two more
    if the port's queue is in block RAM. Kinds share the port, and never wait for each other otherwise. A
    line's head is valid once it has arrived and earlier heads were taken, independent of the rest.
    """

    ADDRESS_LATENCY: ClassVar = Skid.LATENCY + LineReadPort.ADDRESS_LATENCY
    DATA_LATENCY: ClassVar = LineReadPort.DATA_LATENCY + Skid.LATENCY

    def __init__(
        self,
        lines: Lines,
        reads: tuple[LineRead, ...],
        *,
        outstanding: int,
        depth: int = 32,
        requests: int = 16,
        cell: str = "read_port",
        placer: Placer | None = None,
    ) -> None:
        check_reads(lines, reads)
        self._lines = lines
        self._reads = reads
        self._outstanding = outstanding
        self._depth, self._requests = depth, requests
        self._cell = cell
        self._placer = placer or InlinePlacer()
        #: Number of a line.
        lines_in = {f"{r.name}_request": In(stream.Signature(lines.line_bits)) for r in reads}
        #: Words of each line, in order of the requests of that kind.
        words = {w.name: Out(stream.Signature(8 * w.word_bytes)) for w in words_of(reads)}
        super().__init__(
            {
                #: Address of each port's first line, a multiple of 4096.
                "base": In(ADDRESS_BITS).array(lines.ports),
                **lines_in,
                **words,
                "axi": Out(read_signature(lines, reads)).array(lines.ports),
                "error": Out(1),  #: A beat arrived with a response other than OKAY since reset.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A queue of port numbers for each output stream; words are taken in its order."""
        m = Module()
        ports = []
        for p in range(self._lines.ports):
            port = self._placer.place(
                m,
                f"port_{p}",
                self._cell,
                lambda: LineReadPort(self._lines, self._reads, depth=self._depth, requests=self._requests),
            )
            wiring.connect(m, port.axi, wiring.flipped(self.axi[p]))
            m.d.comb += port.base.eq(self.base[p])
            ports.append(port)
        m.d.sync += self.error.eq(Cat(port.error for port in ports).any())
        notes = [self._collect(m, words, ports) for words in words_of(self._reads)]
        for index, read in enumerate(self._reads):
            own = [
                note for note, words in zip(notes, words_of(self._reads), strict=True) if words.read == index
            ]
            self._route(m, read, ports, own)
        return m

    def _route(self, m: Module, read: LineRead, ports: list[Any], notes: list[Any]) -> None:
        """Send a request to its port, and the port's number to the streams that await its words."""
        lines = self._lines
        m.submodules[f"{read.name}_line"] = line = Skid(lines.line_bits)
        wiring.connect(m, wiring.flipped(getattr(self, f"{read.name}_request")), line.i)
        number = line.o.payload[: lines.port_bits]
        offset = lines.first_beat(line.o.payload)
        noted = Cat(note.ready for note in notes).all()
        accepted = Signal(name=f"{read.name}_accepted")
        for p, port in enumerate(ports):
            request = getattr(port, f"{read.name}_request")
            here = number == p
            m.d.comb += [request.payload.eq(offset), request.valid.eq(line.o.valid & noted & here)]
            with m.If(here):
                m.d.comb += accepted.eq(request.valid & request.ready)
        m.d.comb += line.o.ready.eq(accepted)
        for note in notes:
            m.d.comb += [note.valid.eq(accepted), note.payload.eq(number)]

    def _collect(self, m: Module, words: Words, ports: list[Any]) -> Any:
        """Take words from the next port in order, and return the stream of port numbers."""
        lines = self._lines
        m.submodules[f"{words.name}_notes"] = notes = Fifo(
            range(max(2, lines.ports)), depth=self._outstanding, ram_style="distributed"
        )
        # Registered: the port's number selects among all bits of a word.
        m.submodules[f"{words.name}_turn"] = turn = Skid(range(max(2, lines.ports)))
        m.submodules[f"{words.name}_words"] = out = Skid(8 * words.word_bytes)
        wiring.connect(m, notes.o, turn.i)
        wiring.connect(m, out.o, wiring.flipped(getattr(self, words.name)))
        for p, port in enumerate(ports):
            source = getattr(port, words.name)
            with m.If(turn.o.payload == p):
                m.d.comb += [
                    out.i.payload.eq(source.payload),
                    out.i.valid.eq(turn.o.valid & source.valid),
                    source.ready.eq(turn.o.valid & out.i.ready),
                ]
        taken = out.i.valid & out.i.ready
        if words.count == 1:
            m.d.comb += turn.o.ready.eq(taken)
        else:
            place = Signal(range(words.count), name=f"{words.name}_place")
            last = place == words.count - 1
            with m.If(taken):
                m.d.sync += place.eq(Mux(last, 0, place + 1))
            m.d.comb += turn.o.ready.eq(taken & last)
        return notes.i
