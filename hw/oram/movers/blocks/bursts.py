"""Bursts of a block of memory, or of several consecutive blocks."""

from typing import Any, ClassVar

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from hw.lib import axi
from hw.lib.delay import delay
from hw.lib.dma.burst import BurstSplitter
from hw.lib.fifo import Fifo
from hw.oram.config import BEAT_BYTES
from hw.oram.core.layouts import ADDRESS_BITS, BEAT_BITS


def bursts_at_most(beats: int) -> int:
    """Return the most bursts of a block of ``beats``, which begins at any beat."""
    return 1 + -(-(beats - 1) // axi.MAX_BURST_BEATS)


def group_layout(*, index_bits: int, group: int) -> data.StructLayout:
    """Return a group of blocks: the number of the first, and the number of ``more`` that follow it."""
    return data.StructLayout({"index": index_bits, "more": range(group)})


class BlockBursts(wiring.Component):
    """Cuts groups of blocks into bursts.

    ``index_bits``: bits of a block's number. ``blocks``: maximum number of groups in the queue. ``group``:
    maximum number of blocks of a group.

    Behaviour
    ---------
    A burst is on ``o`` `LATENCY` cycles after its group was on ``i``, or a cycle after the previous burst
    left.
    """

    #: Cycles from a group's first block to its first burst: product, address, queue, splitter.
    LATENCY: ClassVar = 4 + Fifo.LATENCY + 1

    def __init__(self, *, index_bits: int, beats: int, blocks: int, group: int = 1) -> None:
        self._beats = beats
        self._splitter = BurstSplitter(data_width=BEAT_BITS, addr_width=ADDRESS_BITS)
        place = data.StructLayout(
            {"beat": ADDRESS_BITS - exact_log2(BEAT_BYTES), "beats": range(group * beats + 1)}
        )
        self.waiting = Fifo(place, depth=blocks, ram_style="distributed")
        super().__init__(
            {
                #: Address of block 0, a multiple of a beat; constant while requests are in flight.
                "base": In(ADDRESS_BITS),
                "i": In(
                    stream.Signature(group_layout(index_bits=index_bits, group=group), always_ready=True)
                ),
                #: As in `BurstSplitter`; ``last`` marks a group's last burst.
                "o": Out(self._splitter.o.signature),
                "held": In(1),  #: No further group begins.
                "begun": Out(1),  #: A group begins: its first burst is on ``o`` in the next cycle.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Product in registers of a DSP, sum, queue, splitter."""
        m = Module()
        m.submodules.splitter, m.submodules.waiting = splitter, waiting = self._splitter, self.waiting
        place = waiting.i.payload
        index = delay(m, "index", self.i.payload.index, 1, reset=False)
        product = delay(m, "product", (index * self._beats)[: len(place.beat)], 2, reset=False)
        beat = delay(m, "beat", product + self.base[exact_log2(BEAT_BYTES) :], 1, reset=False)
        beats = delay(
            m, "beats", ((self.i.payload.more + 1) * self._beats)[: len(place.beats)], 4, reset=False
        )
        m.d.comb += [
            waiting.i.valid.eq(delay(m, "given", self.i.valid, 4)),
            place.beat.eq(beat),
            place.beats.eq(beats),
            splitter.command.valid.eq(waiting.o.valid & ~self.held),
            splitter.command.payload.address.eq(waiting.o.payload.beat << exact_log2(BEAT_BYTES)),
            splitter.command.payload.length.eq(waiting.o.payload.beats << exact_log2(BEAT_BYTES)),
            waiting.o.ready.eq(splitter.command.ready & ~self.held),
            self.begun.eq(waiting.o.valid & waiting.o.ready),
        ]
        connect(m, splitter.o, flipped(self.o))
        return m
