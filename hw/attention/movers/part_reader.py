"""Whole parts of keys or values from a memory port that is as wide as a part."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.attention.config import AttentionConfig
from hw.attention.walk.job import ADDRESS_BITS, UNIT_SHIFT
from hw.attention.walk.layouts import RowsFetch
from hw.lib import axi
from hw.lib.dma.burst import BurstSplitter
from hw.lib.memory import ports, uninitialised
from hw.lib.skid import Skid


class PartReader(wiring.Component):
    """Reads rows, and returns each part a fixed time after it is taken.

    ``config``: shape of the engine, which has ``decode``: a beat of the port is a part, and rows are whole
    parts. ``ahead``: parts requested and not yet taken, up to `PARTS`.

    Behaviour
    ---------
    Latency 2 cycles from ``fetch`` to ``arvalid``, and from ``rvalid`` to ``available``.  A part a cycle,
    across commands.  ``rready`` is always high: as in `hw.lib.dma.read.ReadDMA`, an address is issued only
    with room for a longest burst.

    Why
    ---
    Rows of whole parts need neither an aligner nor a cutter.  Between port and arrays data pass registers and
    a block RAM, and not a single LUT.  The latency from ``take`` to the part is fixed, so the part needs no
    handshake.
    """

    #: Room in parts: the rows of a block RAM.
    PARTS: ClassVar = 512
    #: Cycles from ``fetch`` to ``arvalid``; from ``rvalid`` to ``available``; from ``take`` to ``part``: the
    #: address of the RAM, its output latch, and its output register.
    ADDRESS_LATENCY: ClassVar = 2
    DATA_LATENCY: ClassVar = 2
    LATENCY: ClassVar = 3
    _BURST_BEATS: ClassVar = 16

    def __init__(self, config: AttentionConfig, *, ahead: int = PARTS) -> None:
        self._width = config.part_bits
        self._ahead = ahead
        super().__init__(
            {
                #: The address is a multiple of a part's bytes, the length one of a part's units.
                "fetch": In(stream.Signature(RowsFetch(config))),
                "arrived": Out(1),  #: A part arrived: from the next cycle on it is ``available``.
                "available": Out(1),  #: A part is waiting.
                "take": In(1),  #: Takes the part; only while one is available.
                #: ``last``, ``keep``, with ``take``: the part is the last one of its pass; the parts of the
                #: pass are kept. Kept parts become available again with the last one, before any later parts.
                #: ``keep`` is constant in a pass, which then has at most
                #: `hw.attention.walk.job_setup.KEPT_PARTS` parts: as many have room behind them.
                "last": In(1),
                "keep": In(1),
                "part": Out(config.part_bits),  #: `LATENCY` cycles after ``take``, in that cycle.
                "axi": Out(axi.ReadSignature(data_width=config.part_bits, addr_width=ADDRESS_BITS)),
                "bytes_useful": Out(48),  #: Bytes read since reset.
            }
        )
        # Overflow: the credits prevent it, and the tests check this.
        self.lost = Signal()

    def elaborate(self, platform: Any) -> Module:
        """Splitter -> address register; data register -> block RAM -> its output register."""
        m = Module()
        bytes_bits = exact_log2(self._width // 8)
        m.submodules.splitter = splitter = BurstSplitter(
            data_width=self._width, addr_width=ADDRESS_BITS, burst_beats=self._BURST_BEATS
        )
        # Zeros: offset within a beat, and length of a partial beat, for the splitter.
        low, units = Const(0, bytes_bits), self.fetch.payload.length[bytes_bits - UNIT_SHIFT :]
        m.d.comb += [
            splitter.command.valid.eq(self.fetch.valid),
            splitter.command.payload.address.eq(Cat(low, self.fetch.payload.address[bytes_bits:])),
            splitter.command.payload.length.eq(Cat(low, units)),
            self.fetch.ready.eq(splitter.command.ready),
        ]

        address = data.StructLayout({"address": ADDRESS_BITS - bytes_bits, "len": 4})
        m.submodules.addresses = addresses = Skid(address)
        room = Signal(range(self._ahead + 1), init=self._ahead)
        roomy = room >= self._BURST_BEATS
        taken = Signal()
        leaves = Signal()
        issue = Signal()
        m.d.comb += [
            addresses.i.payload.address.eq(splitter.o.payload.address[bytes_bits:]),
            addresses.i.payload.len.eq(splitter.o.payload.beats - 1),
            addresses.i.valid.eq(splitter.o.valid & roomy),
            splitter.o.ready.eq(addresses.i.ready & roomy),
            issue.eq(splitter.o.valid & splitter.o.ready),
            self.axi.arvalid.eq(addresses.o.valid),
            self.axi.araddr.eq(Cat(low, addresses.o.payload.address)),
            self.axi.arlen.eq(addresses.o.payload.len),
            addresses.o.ready.eq(self.axi.arready),
        ]
        m.d.sync += [
            taken.eq(self.take),
            leaves.eq(self.take & ~self.keep),
            room.eq(room - Mux(issue, splitter.o.payload.beats, 0) + leaves),
        ]

        # Rows of the RAM: of the newest part, of the part taken last, and of the part before the pass.
        newest = Signal(range(self.PARTS), init=self.PARTS - 1)
        last_taken = Signal.like(newest)
        mark = Signal.like(newest)
        address = Signal.like(newest, reset_less=True)  # of the part that is read
        opens = Signal(init=1)  # the next part is the first of a pass that may be kept
        again = self.last & self.keep
        arrived_data = Signal(self._width, reset_less=True)
        following = (last_taken + 1)[: len(last_taken)]
        m.d.comb += self.axi.rready.eq(1)
        m.d.sync += [self.arrived.eq(self.axi.rvalid), arrived_data.eq(self.axi.rdata)]
        with m.If(self.axi.rvalid):
            m.d.sync += newest.eq(newest + 1)
        with m.If(self.take):
            m.d.sync += [
                address.eq(following),
                last_taken.eq(Mux(again, Mux(opens, last_taken, mark), following)),
                opens.eq(self.last | ~self.keep),
            ]
            with m.If(opens):
                m.d.sync += mark.eq(last_taken)
        # Logic instead of an enable: `take` depends on `available`, and both paths are long.
        more = again | (following != newest)
        m.d.sync += self.available.eq(self.arrived | (self.take & more) | (~self.take & self.available))
        # Overflow: the write pointer meets the read pointer while parts wait.
        m.d.comb += self.lost.eq(self.arrived & self.available & (newest == following))

        m.submodules.parts = parts = uninitialised(width=self._width, depth=self.PARTS, ram_style="block")
        write, read = ports(parts)
        read_out = Signal(self._width, reset_less=True)
        m.d.comb += [
            write.en.eq(self.arrived),
            write.addr.eq(newest),
            write.data.eq(arrived_data),
            read.en.eq(taken),
            read.addr.eq(address),
            self.part.eq(read_out),
        ]
        m.d.sync += read_out.eq(read.data)

        beats = Signal(len(self.bytes_useful) - bytes_bits)
        m.d.sync += beats.eq(beats + self.arrived)
        m.d.comb += self.bytes_useful.eq(Cat(low, beats))
        return m
