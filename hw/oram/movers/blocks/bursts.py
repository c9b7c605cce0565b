"""From the number of a block to the bursts it lies in."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from hw.lib import axi
from hw.lib.burst import BurstSplitter
from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.oram.config import BEAT_BYTES
from hw.oram.core.layouts import ADDRESS_BITS, BEAT_BITS


def bursts_at_most(beats: int) -> int:
    """Give how many bursts a block of ``beats`` lies in at most: it begins at any beat."""
    return 1 + -(-(beats - 1) // axi.MAX_BURST_BEATS)


class BlockBursts(wiring.Component):
    """Gives the bursts of blocks.

    Parameters
    ----------
    index_bits
        Bits of the number of a block.
    beats
        Beats of a block.
    blocks
        Blocks that may wait.

    Members
    -------
    base : In(64)
        Address of block 0, a multiple of a beat; constant while blocks are asked for.
    i : In(stream of index_bits, always ready)
    o : Out(stream of {"address": 64, "beats": 1 to 16, "last": 1})
        As of `BurstSplitter`; ``last`` marks a block's last burst.
    held : In(1)
        No further block is begun.
    begun : Out(1)
        A block is begun: its first burst is on ``o`` in the next cycle.

    Behaviour
    ---------
    A burst is on ``o`` `LATENCY` cycles after its block was on ``i``, or a cycle after the burst before left.
    """

    #: Cycles from the number of a block to its first burst: product, address, queue, splitter.
    LATENCY: ClassVar = 4 + Fifo.LATENCY + 1

    def __init__(self, *, index_bits: int, beats: int, blocks: int) -> None:
        self._beats = beats
        self._splitter = BurstSplitter(data_width=BEAT_BITS, addr_width=ADDRESS_BITS)
        self.waiting = Fifo(ADDRESS_BITS - exact_log2(BEAT_BYTES), depth=blocks, ram_style="distributed")
        super().__init__(
            {
                "base": In(ADDRESS_BITS),
                "i": In(stream.Signature(index_bits, always_ready=True)),
                "o": Out(self._splitter.o.signature),
                "held": In(1),
                "begun": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Product in registers of a DSP, sum, queue, splitter."""
        m = Module()
        m.submodules.splitter, m.submodules.waiting = splitter, waiting = self._splitter, self.waiting
        bits = len(waiting.i.payload)
        index = delay(m, "index", self.i.payload, 1, reset=False)
        product = delay(m, "product", (index * self._beats)[:bits], 2, reset=False)
        place = Signal(bits, reset_less=True)
        m.d.sync += place.eq(product + self.base[exact_log2(BEAT_BYTES) :])
        m.d.comb += [
            waiting.i.valid.eq(delay(m, "given", self.i.valid, 4)),
            waiting.i.payload.eq(place),
            splitter.command.valid.eq(waiting.o.valid & ~self.held),
            splitter.command.payload.address.eq(waiting.o.payload << exact_log2(BEAT_BYTES)),
            splitter.command.payload.length.eq(self._beats * BEAT_BYTES),
            waiting.o.ready.eq(splitter.command.ready & ~self.held),
            self.begun.eq(waiting.o.valid & waiting.o.ready),
        ]
        connect(m, splitter.o, flipped(self.o))
        return m
