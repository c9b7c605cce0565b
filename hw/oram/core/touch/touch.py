"""Times of touches: from operations to memory reads and to the stage."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.oram.config import OramConfig
from hw.oram.core.layouts import BEAT_BITS, operation_layout, record_layout, touch_layout
from hw.oram.core.touch.accept import Accept
from hw.oram.core.touch.admit import Admit
from hw.oram.core.touch.alone import Alone
from hw.oram.core.touch.credits import Credits
from hw.oram.core.touch.issue import Issue
from hw.oram.core.touch.timer import Timer
from hw.oram.core.touch.times import TouchTimes

#: Pulses that the admission control counts.
_RELEASE_PULSES = (
    "page_arrived",
    "page_left",
    "response_written",
    "keystream_arrived",
    "record_arrived",
    "fresh_arrived",
)


class Touch(wiring.Component):
    """Acceptance of commands, issue and admission of touches, and release of pages.

    Behaviour
    ---------
    A page is in flight from i(j) to r(j): the later of ``settle_cycles`` after q(j) and the cycle after its
    ``page_written``.

    Why
    ---
    The bus shows a(n), i(j), q(j), and events at constant delays after each. They depend on times of the host
    and on the pages of touches, which are public.
    """

    #: Cycles of the settling time outside of the timer: from q(j) to its pulse, and to the count.
    _AROUND: ClassVar = 2

    def __init__(self, config: OramConfig, times: TouchTimes) -> None:
        self._config = config
        self.accept = Accept(config)
        self.alone = Alone(config, rest=times.rest_cycles)
        self.issue = Issue(config, deadline=times.position_cycles, idle_deadline=times.idle_position_cycles)
        self.release = Admit(
            config,
            deadline=times.touch_cycles,
            idle_deadline=times.idle_touch_cycles,
            forward_cycles=times.forward_cycles,
        )
        self.settled = Credits(config.scoreboard_pages, full=False)
        self.written = Credits(config.scoreboard_pages, full=False)
        super().__init__(
            {
                #: ``command_arrived``, ``command_i``, ``command_o``: as ``arrived``, ``i``, ``o`` of
                #: `Accept`.
                "command_arrived": In(1),
                "command_i": In(stream.Signature(BEAT_BITS)),
                "command_o": Out(stream.Signature(BEAT_BITS)),
                #: ``operation``, ``page``, ``record``, ``fresh``: as in `Issue`.
                "operation": In(stream.Signature(operation_layout(config))),
                "page": Out(stream.Signature(config.record_index_bits, always_ready=True)),
                "record": Out(stream.Signature(record_layout(config))),
                "fresh": Out(stream.Signature(record_layout(config))),
                #: ``page_i``, ``turn``, ``beat``, ``place``: as ``page``, ``turn``, ``beat``, ``place`` of
                #: `Admit`.
                "page_i": In(stream.Signature(BEAT_BITS)),
                "turn": Out(stream.Signature(touch_layout(config), always_ready=True)),
                "beat": Out(stream.Signature(BEAT_BITS, always_ready=True)),
                "place": Out(range(config.scoreboard_pages)),
                #: Pulse: the write of the oldest admitted page was answered.
                "page_written": In(1),
                **{name: In(1) for name in _RELEASE_PULSES},  #: As in `Admit`.
                "stop": In(1),  #: A fault in another part.
                #: After ``stop`` or a missed deadline: nothing is accepted, issued or admitted.
                "halted": Out(1),
                "late": Out(data.StructLayout({"operation": 1, "touch": 1})),
                #: The use of the cycle: ``busy``, else the first of the causes of a wait.
                "activity": Out(data.StructLayout({"busy": 1, "page": 1, "host": 1, "credit": 1})),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Wire the parts; a page is released when it is settled and written."""
        m = Module()
        config = self._config
        m.submodules.accept, m.submodules.issue, m.submodules.release = accept, issue, release = (
            self.accept,
            self.issue,
            self.release,
        )
        m.submodules.alone = alone = self.alone
        m.submodules.settled, m.submodules.written = settled, written = self.settled, self.written
        m.submodules.settling = settling = Timer(
            cycles=config.record_sizes.settle_cycles - self._AROUND, spacing=config.item_cycles
        )
        connect(m, flipped(self.command_i), accept.i)
        connect(m, accept.o, flipped(self.command_o))
        connect(m, flipped(self.operation), issue.operation)
        connect(m, issue.page, flipped(self.page))
        connect(m, issue.record, flipped(self.record))
        connect(m, issue.fresh, flipped(self.fresh))
        connect(m, issue.touch, release.touch)
        connect(m, flipped(self.page_i), release.page)
        connect(m, release.turn, flipped(self.turn))
        connect(m, release.beat, flipped(self.beat))
        for name in _RELEASE_PULSES:
            m.d.comb += getattr(release, name).eq(getattr(self, name))

        issued, turned = issue.touch, release.turn
        ended = settled.some & written.some
        m.d.comb += [
            accept.arrived.eq(self.command_arrived),
            accept.issued.eq(issued.valid & issued.payload.first),
            issue.accepted.eq(accept.accepted),
            alone.accepted.eq(accept.accepted),
            alone.turned.eq(issue.turned),
            issue.alone.eq(alone.alone),
            release.alone.eq(issue.touch_alone),
            issue.turned.eq(turned.valid & turned.payload.last),
            issue.released.eq(ended),
            settling.i.eq(turned.valid & turned.payload.page_valid),
            settled.give.eq(settling.o),
            settled.take.eq(ended),
            written.give.eq(self.page_written),
            written.take.eq(ended),
            self.activity.busy.eq(issue.activity.busy),
            self.activity.page.eq(release.near),
            self.place.eq(release.place),
            self.activity.host.eq(release.waiting),
            self.activity.credit.eq(issue.activity.credit),
            self.late.operation.eq(issue.late),
            self.late.touch.eq(release.late),
        ]
        stopped = Signal()
        m.d.comb += self.halted.eq(self.stop | issue.late | release.late | stopped)
        m.d.sync += stopped.eq(self.halted)
        for part in (accept, issue, release):
            m.d.comb += part.halt.eq(self.halted)
        return m
