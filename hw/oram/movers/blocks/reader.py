"""Reads blocks by their numbers."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib import axi
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid
from hw.oram.core.layouts import ADDRESS_BITS, BEAT_BITS
from hw.oram.movers.blocks.bursts import BlockBursts


class BlockReader(wiring.Component):
    """Reads whole blocks, many at once.

    ``index_bits``: bits of a block's number. ``blocks``: maximum number of blocks requested and not yet
    taken; the user keeps to it.

    Behaviour
    ---------
    ``arvalid`` of a block's first burst is high `ADDRESS_LATENCY` cycles after ``i``, or in the cycle after
    the previous burst was taken; further bursts follow. ``arrived`` follows the last beat's handshake by a
    cycle; ``rready`` is always high.
    """

    #: Cycles from a block's number to ``arvalid``, and from its last beat on the bus to ``arrived``.
    ADDRESS_LATENCY: ClassVar = BlockBursts.LATENCY + Skid.LATENCY
    ARRIVED_LATENCY: ClassVar = 1

    def __init__(self, *, index_bits: int, beats: int, blocks: int) -> None:
        self._beats = beats
        self._bursts = BlockBursts(index_bits=index_bits, beats=beats, blocks=blocks)
        self.stored = Fifo(BEAT_BITS, depth=beats * blocks, ram_style="block")
        super().__init__(
            {
                "base": In(ADDRESS_BITS),  #: Address of block 0.
                "i": In(stream.Signature(index_bits, always_ready=True)),
                "o": Out(stream.Signature(BEAT_BITS)),  #: Beats of the blocks in order.
                #: Pulse: one more whole block is at ``o``. From two cycles later on its beats follow without
                #: gaps, if it has two.
                "arrived": Out(1),
                "axi": Out(axi.ReadSignature(data_width=BEAT_BITS, addr_width=ADDRESS_BITS)),
                "error": Out(1),  #: A beat arrived with a response other than OKAY since reset.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Bursts -> address register; data register -> FIFO with room for all requests."""
        m = Module()
        m.submodules.bursts, m.submodules.stored = bursts, stored = self._bursts, self.stored
        m.submodules.addresses = addresses = Skid(bursts.o.payload.shape())
        connect(m, bursts.o, addresses.i)
        connect(m, stored.o, flipped(self.o))
        arrived = Signal()
        last = Signal()
        beat = Signal(BEAT_BITS, reset_less=True)
        position = Signal(range(self._beats))
        m.d.comb += [
            bursts.base.eq(self.base),
            bursts.i.valid.eq(self.i.valid),
            bursts.i.payload.index.eq(self.i.payload),
            self.axi.arvalid.eq(addresses.o.valid),
            self.axi.araddr.eq(addresses.o.payload.address),
            self.axi.arlen.eq(addresses.o.payload.beats - 1),
            addresses.o.ready.eq(self.axi.arready),
            self.axi.rready.eq(1),
            stored.i.valid.eq(arrived),
            stored.i.payload.eq(beat),
            self.arrived.eq(arrived & last),
        ]
        m.d.sync += [
            arrived.eq(self.axi.rvalid),
            beat.eq(self.axi.rdata),
            last.eq(position == self._beats - 1),
        ]
        with m.If(self.axi.rvalid):
            m.d.sync += position.eq(position + 1)
            with m.If(position == self._beats - 1):
                m.d.sync += position.eq(0)
            with m.If(self.axi.rresp != axi.RESP_OKAY):
                m.d.sync += self.error.eq(1)
        return m
