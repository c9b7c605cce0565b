"""Writes responses into a ring in host memory."""

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
    """Writes responses in order, each into the slot of its sequence number, several at once.

    Behaviour
    ---------
    A response with its last beat in cycle t waits for others. All waiting responses are sent in cycle t if
    its slot is the last of ``config.ring_group`` or of the ring, or if no further command has arrived. Else
    they are sent in cycle f + `WAIT`, with f that of the oldest one. ``awvalid`` follows by `ADDRESS_LATENCY`
    cycles, as in `GroupWriter`. The first pulse of ``written`` follows the last answer by `WRITTEN_LATENCY`
    cycles, or the previous pulse by one cycle, whichever is later.

    The host empties slots before their reuse: the ring has a slot for every command that is sent and not
    answered.

    Why
    ---
    A bridge has few writes in flight, each of long latency (`hw.board.memory_timing.HostTiming`), and pages
    need them. In groups, responses take a sixteenth of the writes. A map that answers every 8 cycles fills
    the largest group within `WAIT`, less than a write's latency. A single operation is answered at once.
    """

    #: Maximum cycles that a response waits for others.
    WAIT: ClassVar = 128
    ADDRESS_LATENCY: ClassVar = 1 + GroupWriter.ADDRESS_LATENCY
    WRITTEN_LATENCY: ClassVar = GroupWriter.WRITTEN_LATENCY + 2

    def __init__(self, config: OramConfig) -> None:
        blocks = config.response_records
        self._beats = config.command_bytes // BEAT_BYTES
        self._group = config.ring_group
        self._commands = config.command_records + config.accepted + config.issued + blocks
        self.writer = GroupWriter(
            index_bits=SLOT_BITS, beats=self._beats, blocks=blocks, outstanding=blocks, group=self._group
        )
        self.sizes = Fifo(range(self._group), depth=blocks, ram_style="distributed")
        self.due = Signal(range(blocks + 1))  # written, and not reported
        super().__init__(
            {
                "base": In(ADDRESS_BITS),  #: Address of the ring's first slot, a multiple of a beat.
                "mask": In(SLOT_BITS),  #: Slots of the ring, a power of two, minus 1.
                "arrived": In(1),  #: Pulse: a command has arrived; its response will follow.
                "beat": In(stream.Signature(BEAT_BITS, always_ready=True)),  #: The responses.
                "halt": In(1),  #: No further response is sent.
                #: Pulse: a response is written; one a cycle for each response of a group.
                "written": Out(1),
                "axi": Out(axi.WriteSignature(data_width=BEAT_BITS, addr_width=ADDRESS_BITS)),
                "error": Out(1),  #: As in `GroupWriter`.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Count waiting responses and their time, and the responses of each unanswered group."""
        m = Module()
        m.submodules.writer, m.submodules.sizes = writer, sizes = self.writer, self.sizes
        connect(m, flipped(self.beat), writer.beat)
        connect(m, writer.axi, flipped(self.axi))
        group, final = self._group, self._beats - 1
        place = Signal(range(self._beats))
        whole = Signal()
        m.d.sync += whole.eq(self.beat.valid & (place == final))
        with m.If(self.beat.valid):
            m.d.sync += place.eq(Mux(place == final, 0, place + 1))

        # of the next response, of the first waiting one
        slot = Signal(SLOT_BITS)
        oldest = Signal(SLOT_BITS)
        waiting = Signal(range(group))
        more = Signal(range(group))
        wait = Signal(range(self.WAIT))
        # commands; exactly one
        unanswered = Signal(range(self._commands + 1))
        alone = Signal()
        following = Signal.like(unanswered)
        ends = Signal()
        go = Signal()
        m.d.comb += [
            ends.eq((slot | ~self.mask)[: len(waiting)] == group - 1),
            following.eq(unanswered + self.arrived - whole),
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
        reports = self.due != 0
        answered = Mux(writer.written, sizes.o.payload + 1, 0)
        m.d.sync += [self.due.eq(self.due + answered - reports), self.written.eq(reports)]
        return m
