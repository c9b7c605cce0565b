"""Writes groups of blocks, each on request."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib import axi
from hw.lib.fifo import Fifo
from hw.oram.core.layouts import ADDRESS_BITS, BEAT_BITS
from hw.oram.movers.blocks.bursts import BlockBursts, bursts_at_most, group_layout


class GroupWriter(wiring.Component):
    """Writes groups of consecutive blocks, many at once.

    ``index_bits``: bits of a block's number. ``blocks``: maximum number of blocks between their announcement
    or first beat and their last beat on the bus. ``outstanding``: maximum number of announced and unanswered
    blocks. ``group``: maximum number of blocks of a group.

    Behaviour
    ---------
    The first ``awvalid`` of a group is high `ADDRESS_LATENCY` cycles after its announcement unless held, or
    in the cycle after the previous burst was taken. Further bursts follow. The ``wvalid`` of a burst is high
    no earlier than its ``awvalid``, one beat a cycle, and never waits for ``awready``. Pulses ``left`` and
    ``written`` follow the handshakes by a cycle; ``bready`` is always high.
    """

    #: Cycles from a group to ``awvalid``, from its last handshake on w to ``left``, and from its last on b to
    #: ``written``.
    ADDRESS_LATENCY: ClassVar = BlockBursts.LATENCY + 1
    LEFT_LATENCY: ClassVar = 1
    WRITTEN_LATENCY: ClassVar = 1

    def __init__(self, *, index_bits: int, beats: int, blocks: int, outstanding: int, group: int = 1) -> None:
        self._bursts = BlockBursts(index_bits=index_bits, beats=beats, blocks=blocks, group=group)
        self.stored = Fifo(BEAT_BITS, depth=beats * blocks, ram_style="block")
        burst = data.StructLayout({"after": range(axi.MAX_BURST_BEATS), "last": 1})
        most = bursts_at_most(beats)  # a group has at most the bursts of its separate blocks
        self.opened = Fifo(burst, depth=blocks * most, ram_style="distributed")
        self.notes = Fifo(1, depth=outstanding * most, ram_style="distributed")
        super().__init__(
            {
                "base": In(ADDRESS_BITS),  #: Address of block 0.
                #: Announces a group.
                "i": In(
                    stream.Signature(group_layout(index_bits=index_bits, group=group), always_ready=True)
                ),
                "held": In(1),  #: No further group begins.
                "begun": Out(1),  #: A group begins: its first ``awvalid`` is high 2 cycles later.
                #: Beats of the blocks in order. When a group begins, all its beats have been sent, except for
                #: the last three cycles'.
                "beat": In(stream.Signature(BEAT_BITS, always_ready=True)),
                #: ``left``, ``written``: pulses: a group's last beat is sent; its last response has arrived.
                "left": Out(1),
                "written": Out(1),
                "axi": Out(axi.WriteSignature(data_width=BEAT_BITS, addr_width=ADDRESS_BITS)),
                "error": Out(1),  #: A response other than OKAY arrived since reset.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Beats -> FIFO -> w; bursts of groups -> aw; b -> queue of groups."""
        m = Module()
        m.submodules.bursts = bursts = self._bursts
        m.submodules.stored, m.submodules.opened = stored, opened = self.stored, self.opened
        m.submodules.notes = notes = self.notes
        connect(m, flipped(self.i), bursts.i)
        m.d.comb += [
            bursts.base.eq(self.base),
            bursts.held.eq(self.held),
            self.begun.eq(bursts.begun),
            stored.i.valid.eq(self.beat.valid),
            stored.i.payload.eq(self.beat.payload),
        ]

        # A plain register, not a skid buffer: an issued address is on the bus in the next cycle, and its data
        # may follow.
        issue = Signal()
        free = Signal()
        burst = bursts.o.payload
        m.d.comb += [
            free.eq(~self.axi.awvalid | self.axi.awready),
            issue.eq(bursts.o.valid & free),
            bursts.o.ready.eq(free),
            opened.i.valid.eq(issue),
            opened.i.payload.after.eq(burst.beats - 1),
            opened.i.payload.last.eq(burst.last),
            notes.i.valid.eq(issue),
            notes.i.payload.eq(burst.last),
        ]
        with m.If(free):
            m.d.sync += self.axi.awvalid.eq(issue)
        with m.If(issue):
            m.d.sync += [self.axi.awaddr.eq(burst.address), self.axi.awlen.eq(burst.beats - 1)]

        sent = Signal()
        answered = Signal()
        count = Signal(range(axi.MAX_BURST_BEATS))
        m.d.comb += [
            sent.eq(self.axi.wvalid & self.axi.wready),
            self.axi.wvalid.eq(stored.o.valid & opened.o.valid),
            self.axi.wdata.eq(stored.o.payload),
            self.axi.wstrb.eq(-1),
            self.axi.wlast.eq(count == opened.o.payload.after),
            stored.o.ready.eq(self.axi.wready & opened.o.valid),
            opened.o.ready.eq(sent & self.axi.wlast),
            self.axi.bready.eq(1),
            answered.eq(self.axi.bvalid),
            notes.o.ready.eq(answered),
        ]
        with m.If(sent):
            m.d.sync += count.eq(count + 1)
            with m.If(self.axi.wlast):
                m.d.sync += count.eq(0)
        m.d.sync += [
            self.left.eq(sent & self.axi.wlast & opened.o.payload.last),
            self.written.eq(answered & notes.o.payload),
        ]
        with m.If(answered & (self.axi.bresp != axi.RESP_OKAY)):
            m.d.sync += self.error.eq(1)
        return m
