"""Writes blocks, each when all its beats are there."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib import axi
from hw.oram.core.layouts import ADDRESS_BITS, BEAT_BITS
from hw.oram.core.touch.credits import Credits
from hw.oram.movers.blocks.group_writer import GroupWriter


class BlockWriter(wiring.Component):
    """Writes whole blocks, many at once.

    ``index_bits``: bits of the number of a block. ``blocks``: blocks that may be announced and not have left,
    at most: whoever announces keeps to it. ``outstanding``: blocks that may be announced and not be answered,
    at most.

    Behaviour
    ---------
    ``awvalid`` of a block's first burst is up `ADDRESS_LATENCY` cycles after its last beat was on ``beat``,
    or in the cycle after the burst before was taken; further bursts follow.  ``wvalid`` comes with or after
    its burst's ``awvalid``, a beat a cycle, and never waits for ``awready``.  ``left`` and ``written`` are in
    the cycle after the handshakes; ``bready`` is always high.

    Why
    ---
    An address that is issued before its data are there would hold up everybody behind it.
    """

    #: Cycles from a block's last beat to ``awvalid``; from its last handshake on w to ``left``; from its last
    #: on b to ``written``.
    ADDRESS_LATENCY: ClassVar = 3
    LEFT_LATENCY: ClassVar = GroupWriter.LEFT_LATENCY
    WRITTEN_LATENCY: ClassVar = GroupWriter.WRITTEN_LATENCY

    def __init__(self, *, index_bits: int, beats: int, blocks: int, outstanding: int) -> None:
        self._beats = beats
        self.writer = GroupWriter(index_bits=index_bits, beats=beats, blocks=blocks, outstanding=outstanding)
        self.whole = Credits(blocks, full=False)
        super().__init__(
            {
                "base": In(ADDRESS_BITS),  #: Address of block 0.
                #: Announces a block; at the latest 8 cycles before its last beat.
                "i": In(stream.Signature(index_bits, always_ready=True)),
                #: Beats of the blocks in the order they are announced.
                "beat": In(stream.Signature(BEAT_BITS, always_ready=True)),
                "halt": In(1),  #: No further block is begun.
                "left": Out(1),  #: Pulse: a block's last beat is on its way to memory.
                "written": Out(1),  #: Pulse: a block's last response has come.
                "axi": Out(axi.WriteSignature(data_width=BEAT_BITS, addr_width=ADDRESS_BITS)),
                "error": Out(1),  #: A response other than OKAY came since reset.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Each block is a group, announced ahead, and held until its beats are there."""
        m = Module()
        m.submodules.writer, m.submodules.whole = writer, whole = self.writer, self.whole
        connect(m, flipped(self.beat), writer.beat)
        connect(m, writer.axi, flipped(self.axi))
        position = Signal(range(self._beats))
        ends = position == self._beats - 1
        with m.If(self.beat.valid):
            m.d.sync += position.eq(position + 1)
            with m.If(ends):
                m.d.sync += position.eq(0)
        m.d.comb += [
            writer.base.eq(self.base),
            writer.i.valid.eq(self.i.valid),
            writer.i.payload.index.eq(self.i.payload),
            whole.give.eq(self.beat.valid & ends),
            whole.take.eq(writer.begun),
            writer.held.eq(~whole.some | self.halt),
            self.left.eq(writer.left),
            self.written.eq(writer.written),
            self.error.eq(writer.error),
        ]
        return m
