"""One HBM port that reads lines: it takes requests of several kinds in rotation, and sorts data by kind."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.lib import axi
from hw.lib.arbiter import Arbiter
from hw.lib.dma.burst import BurstSplitter
from hw.lib.fifo import SHALLOW_DEPTH, Fifo
from hw.lib.memory import RamStyle, ports, uninitialised
from hw.lib.skid import Skid
from hw.oram.movers.hbm.lines import (
    ADDRESS_BITS,
    LineRead,
    Lines,
    Words,
    read_signature,
    words_of,
)

#: Rows of an UltraRAM.
_RAM_ROWS = 4096


class LineReadPort(wiring.Component):
    """Reads lines through one port, as many ahead as it has room for.

    ``reads``: kinds of requests. ``depth``: maximum number of lines of each kind requested and not yet taken.
    ``requests``: of each kind in the queue.

    Behaviour
    ---------
    Kinds take turns, request by request. A request is issued when all of its words have room, so ``rready``
    is always high. The AXI identifier is the kind's number: beats of different kinds may interleave.
    """

    #: Cycles from a request to ``arvalid``, and from ``rvalid`` of a word's last beat to the word.
    ADDRESS_LATENCY: ClassVar = Fifo.LATENCY + Arbiter.LATENCY + 1 + Skid.LATENCY
    DATA_LATENCY: ClassVar = 1 + Fifo.LATENCY

    def __init__(self, lines: Lines, reads: tuple[LineRead, ...], *, depth: int, requests: int) -> None:
        self._lines = lines
        self._reads = reads
        self._depth, self._requests = depth, requests
        #: Byte offset of the line's first beat from the base.
        lines_in = {f"{r.name}_request": In(stream.Signature(lines.offset_bits)) for r in reads}
        #: Words of each line, in order of the requests of that kind.
        words = {w.name: Out(stream.Signature(8 * w.word_bytes)) for w in words_of(reads)}
        port = read_signature(lines, reads)
        self._id_bits = port.id_width
        super().__init__(
            {
                "base": In(ADDRESS_BITS),  #: Address of the port's first line, a multiple of 4096.
                **lines_in,
                **words,
                "axi": Out(port),
                "error": Out(1),  #: A beat arrived with a response other than OKAY since reset.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Queue of each kind's requests -> arbiter -> splitter -> address; beats -> words -> queue of each
        stream.
        """
        m = Module()
        arrived = Signal()
        beat = Signal(8 * self._lines.port_bytes, reset_less=True)
        kind = Signal(self._id_bits, reset_less=True)
        m.d.sync += [arrived.eq(self.axi.rvalid), beat.eq(self.axi.rdata), kind.eq(self.axi.rid)]
        m.d.comb += self.axi.rready.eq(1)
        with m.If(self.axi.rvalid & (self.axi.rresp != axi.RESP_OKAY)):
            m.d.sync += self.error.eq(1)

        m.submodules.arbiter = arbiter = Arbiter(self._lines.offset_bits, inputs=len(self._reads))
        for index, read in enumerate(self._reads):
            request = getattr(self, f"{read.name}_request")
            queue = Fifo(self._lines.offset_bits, depth=self._requests, ram_style="distributed")
            m.submodules[f"{read.name}_requests"] = queue
            wiring.connect(m, wiring.flipped(request), queue.i)
            place = Signal(range(max(2, self._beats(read))), name=f"{read.name}_place")
            mine = arrived & (kind == index)
            last = place == self._beats(read) - 1
            with m.If(mine):
                m.d.sync += place.eq(Mux(last, 0, place + 1))
            taken = Signal(name=f"{read.name}_taken")
            number: Value = place  # of the beat in its line
            if self._swaps(read):
                taken_odd = queue.o.payload[exact_log2(self._lines.port_bytes)]
                number = place ^ self._odd(m, read, mine, place, last, taken, taken_odd)
            streams = [words for words in words_of(self._reads) if words.read == index]
            roomy = Cat(self._words(m, words, mine, number, beat, taken) for words in streams).all()
            m.d.comb += [
                arbiter.i[index].payload.eq(queue.o.payload),
                arbiter.i[index].valid.eq(queue.o.valid & roomy),
                taken.eq(arbiter.i[index].valid & arbiter.i[index].ready),
                queue.o.ready.eq(taken),
            ]
        self._addresses(m, arbiter)
        return m

    def _beats(self, read: LineRead) -> int:
        return -(-read.length // self._lines.port_bytes)

    def _swaps(self, read: LineRead) -> bool:
        """Return whether beats of odd lines come in another order than in the line."""
        return self._lines.swapped and self._beats(read) > 1

    def _odd(
        self, m: Module, read: LineRead, mine: Any, place: Any, last: Any, taken: Any, taken_odd: Any
    ) -> Signal:
        """Return whether the line whose beats come is odd: a memory has a bit of each line under way."""
        depth = max(2, 1 << (self._depth - 1).bit_length())
        m.submodules[f"{read.name}_odds"] = odds = uninitialised(
            width=1, depth=depth, ram_style="distributed"
        )
        odd = Signal(name=f"{read.name}_odd")
        newest, oldest = ports(odds, domain="comb")
        m.d.comb += [newest.en.eq(taken), newest.data.eq(taken_odd)]
        first = place == 0
        with m.If(taken):
            m.d.sync += newest.addr.eq(newest.addr + 1)
        with m.If(mine & first):
            m.d.sync += oldest.addr.eq(oldest.addr + 1)
        # That of the next line. Its bit is written long before its first beat comes, and a line has two.
        with m.If(Mux(mine, last, first)):
            m.d.sync += odd.eq(oldest.data)
        return odd

    def _words(self, m: Module, words: Words, mine: Any, number: Any, beat: Any, taken: Any) -> Any:
        """Queue beats as words, and return whether a whole line's words have room."""
        depth = self._depth * words.count
        beats = words.beats(self._lines.port_bytes)
        line_beats, wanted_beats = self._beats(self._reads[words.read]), beats * words.count
        wanted = mine if wanted_beats >= line_beats else mine & (number < wanted_beats)
        out = getattr(self, words.name)
        if beats > 1 and self._lines.swapped:
            self._pairs(m, words, wanted, number, beat)
        else:
            self._joined(m, words, mine, wanted, number, beat)
        room = Signal(range(depth + 1), init=depth, name=f"{words.name}_room")
        popped = out.valid & out.ready
        m.d.sync += room.eq(room - Mux(taken, words.count, 0) + popped)
        return room >= words.count

    def _pairs(self, m: Module, words: Words, wanted: Any, number: Any, beat: Any) -> None:
        """Queue both beats of a word apart, whichever comes first.

        Long queues are in UltraRAM, which is deep enough for long lines.
        """
        out = getattr(self, words.name)
        depth = self._depth * words.count
        if depth <= _RAM_ROWS:  # a power of two costs no RAM, and saves comparisons of rows
            depth = 1 << (depth - 1).bit_length()
        style: RamStyle = "distributed" if depth <= SHALLOW_DEPTH else "ultra"
        queues = [Fifo(len(beat), depth=depth, ram_style=style) for _ in range(2)]
        for n, queue in enumerate(queues):
            m.submodules[f"{words.name}_{n}"] = queue
            m.d.comb += [
                queue.i.payload.eq(beat),
                queue.i.valid.eq(wanted & (number[0] == n)),
                queue.o.ready.eq(out.valid & out.ready),
            ]
        m.d.comb += [
            out.payload.eq(Cat(queue.o.payload for queue in queues)),
            out.valid.eq(Cat(queue.o.valid for queue in queues).all()),
        ]

    def _joined(self, m: Module, words: Words, mine: Any, wanted: Any, number: Any, beat: Any) -> None:
        """Join beats to words, and queue these."""
        m.submodules[words.name] = queue = Fifo(8 * words.word_bytes, depth=self._depth * words.count)
        wiring.connect(m, queue.o, wiring.flipped(getattr(self, words.name)))
        beats, width = words.beats(self._lines.port_bytes), len(beat)
        word: Any = beat
        if beats > 1:
            held = Signal((beats - 1) * width, name=f"{words.name}_held", reset_less=True)
            word = Cat(held, beat)
            with m.If(mine):
                m.d.sync += held.eq(word[width:])
        whole = number[: exact_log2(beats)] == beats - 1
        m.d.comb += [queue.i.payload.eq(word), queue.i.valid.eq(wanted & whole)]

    def _addresses(self, m: Module, arbiter: Arbiter) -> None:
        """Split a line's read into bursts; a line may cross the border of a 4 KiB block."""
        width = len(self.axi.rdata)
        m.submodules.splitter = splitter = BurstSplitter(
            data_width=width, addr_width=ADDRESS_BITS, burst_beats=min(16, 4096 * 8 // width)
        )
        address = data.StructLayout({"address": ADDRESS_BITS, "len": 8, "id": self._id_bits})
        m.submodules.addresses = addresses = Skid(address)
        command, burst = splitter.command.payload, splitter.o.payload
        aligned = exact_log2(self._lines.port_bytes)
        source = Signal(self._id_bits)
        first = Signal(self._lines.beat_bits)
        m.d.comb += first.eq(arbiter.o.payload[aligned:])
        for index, read in enumerate(self._reads):
            with m.If(arbiter.source == index):
                m.d.comb += command.length.eq(self._beats(read) * self._lines.port_bytes)
                if self._swaps(read):
                    m.d.comb += first[0].eq(0)  # of an odd line the first beat comes second
        m.d.comb += [
            command.address.eq(Cat(Const(0, aligned), self.base[aligned:] + first)),
            splitter.command.valid.eq(arbiter.o.valid),
            arbiter.o.ready.eq(splitter.command.ready),
            addresses.i.valid.eq(splitter.o.valid),
            splitter.o.ready.eq(addresses.i.ready),
            addresses.i.payload.address.eq(burst.address),
            addresses.i.payload.len.eq(burst.beats - 1),
            addresses.i.payload.id.eq(source),
            self.axi.arvalid.eq(addresses.o.valid),
            self.axi.araddr.eq(addresses.o.payload.address),
            self.axi.arlen.eq(addresses.o.payload.len),
            self.axi.arid.eq(addresses.o.payload.id),
            addresses.o.ready.eq(self.axi.arready),
        ]
        with m.If(splitter.command.ready):
            m.d.sync += source.eq(arbiter.source)
