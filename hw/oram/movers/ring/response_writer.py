"""Writes responses into a ring in host memory."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib import axi
from hw.lib.fifo import Fifo
from hw.oram.config import BEAT_BYTES, OramConfig
from hw.oram.core.layouts import ADDRESS_BITS, BEAT_BITS
from hw.oram.movers.blocks.group_writer import GroupWriter
from hw.oram.movers.ring.command_reader import SLOT_BITS


class ResponseWriter(wiring.Component):
    """Writes responses in order, each into the slot of its sequence number, and several at once.

    Behaviour
    ---------
    A response waits from its last beat on, in cycle t.  All that wait go at once in cycle t when the slot of
    the one that came then is the last of ``config.ring_group``, or of the ring, or when by then no further
    command is there; else in cycle f + `WAIT`, f being that of the oldest, with those that come in this cycle
    too.  ``awvalid`` is up `ADDRESS_LATENCY`
    cycles after they go, as of `GroupWriter`.  The first pulse of ``written`` is `WRITTEN_LATENCY` cycles
    after the last answer, or in the cycle after the last pulse for those before.

    The host empties slots before they come around: the ring has at least as many as commands are given and
    not answered.

    Why
    ---
    A bridge has few writes under way, each of which takes long (`hw.board.memory_timing.HostTiming`), and
    pages need them.  With groups, responses take a sixteenth each.  A map that answers every 8 cycles fills
    the largest group in `WAIT`, which is less than the write takes.  One that has a single operation answers
    at once.
    """

    #: Cycles that a response waits for others at most.
    WAIT: ClassVar = 128
    ADDRESS_LATENCY: ClassVar = 1 + GroupWriter.ADDRESS_LATENCY
    WRITTEN_LATENCY: ClassVar = GroupWriter.WRITTEN_LATENCY + 2

    def __init__(self, config: OramConfig) -> None:
        blocks = config.response_records
        self._beats = config.command_bytes // BEAT_BYTES
        self._group = config.ring_group
        self._commands = config.command_records + config.accepted + config.inflight + blocks
        self.writer = GroupWriter(
            index_bits=SLOT_BITS, beats=self._beats, blocks=blocks, outstanding=blocks, group=self._group
        )
        self.sizes = Fifo(range(self._group), depth=blocks, ram_style="distributed")
        self.due = Signal(range(blocks + 1))  # written, and not said
        super().__init__(
            {
                "base": In(ADDRESS_BITS),  #: Address of the ring's first slot, a multiple of a beat.
                "mask": In(SLOT_BITS),  #: Slots of the ring, a power of two, less 1.
                "there": In(1),  #: Pulse: a command is there, whose response will come.
                "beat": In(stream.Signature(BEAT_BITS, always_ready=True)),  #: The responses.
                "halt": In(1),  #: No further responses are begun.
                #: Pulse: a response is written; as many, one a cycle, as were written at once.
                "written": Out(1),
                "axi": Out(axi.WriteSignature(data_width=BEAT_BITS, addr_width=ADDRESS_BITS)),
                "error": Out(1),  #: As of `GroupWriter`.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Count what waits, and for how long; of each group how many it has, until it is answered."""
        m = Module()
        m.submodules.writer, m.submodules.sizes = writer, sizes = self.writer, self.sizes
        connect(m, flipped(self.beat), writer.beat)
        connect(m, writer.axi, flipped(self.axi))
        group, final = self._group, self._beats - 1
        place, whole = Signal(range(self._beats)), Signal()
        m.d.sync += whole.eq(self.beat.valid & (place == final))
        with m.If(self.beat.valid):
            m.d.sync += place.eq(Mux(place == final, 0, place + 1))

        slot, oldest = Signal(SLOT_BITS), Signal(SLOT_BITS)  # of the next response, of the first that waits
        waiting, more = Signal(range(group)), Signal(range(group))
        wait = Signal(range(self.WAIT))
        unanswered, alone = Signal(range(self._commands + 1)), Signal()  # commands; just one
        following = Signal.like(unanswered)
        ends, go = Signal(), Signal()
        m.d.comb += [
            ends.eq((slot | ~self.mask)[: len(waiting)] == group - 1),
            following.eq(unanswered + self.there - whole),
            go.eq((whole & (ends | alone)) | ((waiting != 0) & (wait == 0))),
            more.eq(Mux(whole, waiting, waiting - 1)),
        ]
        m.d.sync += [unanswered.eq(following), alone.eq(following == 1)]
        with m.If(waiting == 0):
            m.d.sync += wait.eq(self.WAIT - 1)
        with m.Else():
            m.d.sync += wait.eq(wait - 1)
        with m.If(whole):
            m.d.sync += [slot.eq(slot + 1), waiting.eq(waiting + 1)]
        with m.If(go):
            m.d.sync += [oldest.eq(slot + whole), waiting.eq(0)]
        m.d.comb += [
            writer.base.eq(self.base),
            writer.i.valid.eq(go),
            writer.i.payload.index.eq(oldest & self.mask),
            writer.i.payload.more.eq(more),
            writer.held.eq(self.halt),
            sizes.i.valid.eq(go),
            sizes.i.payload.eq(more),
            sizes.o.ready.eq(writer.written),
            self.error.eq(writer.error),
        ]
        said = self.due != 0
        answered = Mux(writer.written, sizes.o.payload + 1, 0)
        m.d.sync += [self.due.eq(self.due + answered - said), self.written.eq(said)]
        return m
