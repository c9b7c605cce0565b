"""Writes blocks, each when all its beats have arrived."""

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

    ``index_bits``: bits of a block's number. ``blocks``: maximum number of announced blocks whose last beat
    is not sent; the user keeps to it. ``outstanding``: maximum number of announced and unanswered blocks.

    Behaviour
    ---------
    The first ``awvalid`` of a block is high `ADDRESS_LATENCY` cycles after its last beat was on ``beat``, or
    in the cycle after the previous burst was taken. Further bursts follow. The ``wvalid`` of a burst is high
    no earlier than its ``awvalid``, one beat a cycle, and never waits for ``awready``. Pulses ``left`` and
    ``written`` follow the handshakes by a cycle; ``bready`` is always high.

    Why
    ---
    An address issued before its data arrived would block the bus for all.
    """

    #: Cycles from a block's last beat to ``awvalid``, from its last handshake on w to ``left``, and from its
    #: last on b to ``written``.
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
                #: Announces a block, at least 8 cycles before its last beat.
                "i": In(stream.Signature(index_bits, always_ready=True)),
                #: Beats of the blocks in the order of their announcement.
                "beat": In(stream.Signature(BEAT_BITS, always_ready=True)),
                "halt": In(1),  #: No further block begins.
                "left": Out(1),  #: Pulse: a block's last beat is sent.
                "written": Out(1),  #: Pulse: a block's last response has arrived.
                "axi": Out(axi.WriteSignature(data_width=BEAT_BITS, addr_width=ADDRESS_BITS)),
                "error": Out(1),  #: A response other than OKAY arrived since reset.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Each block is a group, announced ahead, and held until its beats have arrived."""
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
