"""Admission control: a touch enters the stage at a time that depends on public times alone."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect

from hw.errors import check_range
from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid
from hw.oram.config import OramConfig
from hw.oram.core.layouts import BEAT_BITS, NEAREST, touch_layout
from hw.oram.core.touch.credits import Credits
from hw.oram.core.touch.timer import Timer


class Admit(wiring.Component):
    """Admits touches to the stage, which never stalls.

    ``deadline``: D, least cycles from a touch's issue to its admission, at least 6. ``idle_deadline``: the
    same of an operation that is alone, at most D. ``forward_cycles``: F, least cycles from a page's admission
    to its next.

    Behaviour
    ---------
    q(j) is the first cycle, at least D after i(j), ``item_cycles`` after q(j - 1), and F after the page's
    earlier admission, in which its page has arrived and fewer than ``write_pages`` pages are admitted and not
    sent. For an operation's last touch, also fewer than ``response_records`` responses are unwritten. All
    counts are those of the previous cycle.
    """

    #: Cycles of the deadline outside of the timer: from i(j) to its pulse, and to the count.
    _AROUND: ClassVar = 2

    def __init__(self, config: OramConfig, *, deadline: int, idle_deadline: int, forward_cycles: int) -> None:
        check_range("idle_deadline", idle_deadline, 5, deadline)
        check_range("forward_cycles", forward_cycles, 3, (NEAREST + 1) * config.item_cycles)
        self._config = config
        self._forward_cycles = forward_cycles
        super().__init__(
            {
                #: In the cycle after i(j).
                "touch": In(stream.Signature(touch_layout(config), always_ready=True)),
                "alone": In(1),  #: With ``touch``: its operation is alone. All earlier ones were admitted.
                "page_arrived": In(1),  #: Pulse: one more whole page is at ``page``.
                #: Beats of the pages. A page that has arrived is offered without gaps from two cycles after
                #: ``page_arrived`` on.
                "page": In(stream.Signature(BEAT_BITS)),
                #: ``page_left``, ``response_written``: pulses: the last beat of a page was sent to the host,
                #: a response was written.
                "page_left": In(1),
                "response_written": In(1),
                #: ``keystream_arrived``, ``record_arrived``, ``fresh_arrived``: pulses: a page's keystream, a
                #: whole record, a fresh record's header is ready. Their times are secret.
                "keystream_arrived": In(1),
                "record_arrived": In(1),
                "fresh_arrived": In(1),
                "halt": In(1),  #: Stops all admission.
                #: In the cycle after the admission, q(j).
                "turn": Out(stream.Signature(touch_layout(config), always_ready=True)),
                #: The page of the touch, if any: beat b in cycle q(j) + 1 + b * (4 / aes_lanes).
                "beat": Out(stream.Signature(BEAT_BITS, always_ready=True)),
                #: ``near``: the next admission waits for an earlier one of its page. ``waiting``: the host
                #: delays it: its page has not arrived, or pages or responses are not written.
                "near": Out(1),
                "waiting": Out(1),
                #: Place of the next touch, also in the cycle of its admission.
                "place": Out(range(config.scoreboard_pages)),
                #: A keystream, record or header missed its deadline: from this cycle on nothing may be
                #: admitted (``halt``).
                "late": Out(1),
            }
        )
        touches = config.issued * config.items
        self.touches = Fifo(touch_layout(config), depth=touches)  # bounded by the operations issued
        self.timer = Timer(cycles=deadline - self._AROUND, spacing=config.item_cycles)
        self.idle_timer = Timer(cycles=idle_deadline - self._AROUND, most=config.items)
        self.due = Credits(touches, full=False)
        self.pages = Credits(config.read_pages, full=False)
        self.writes = Credits(config.write_pages)
        self.responses = Credits(config.response_records)
        self.keystreams = Credits(config.read_pages, full=False)
        self.records = Credits(touches, full=False)
        self.fresh = Credits(config.issued, full=False)
        # The page stream had a gap: a proof checks that it never has.
        self.starved = Signal()

    def elaborate(self, platform: Any) -> Module:
        """Public counts decide the time; secret counts only detect lateness."""
        m = Module()
        config = self._config
        m.submodules.touches, m.submodules.timer, m.submodules.due = self.touches, self.timer, self.due
        m.submodules.idle_timer = self.idle_timer
        m.submodules.pages, m.submodules.keystreams = self.pages, self.keystreams
        m.submodules.records, m.submodules.fresh = self.records, self.fresh
        m.submodules.writes, m.submodules.responses = self.writes, self.responses
        m.submodules.head = head = Skid(touch_layout(config))
        connect(m, self.touches.o, head.i)
        touch = head.o.payload
        paged, ending = touch.page_valid, touch.last
        wait = Signal(range(config.item_cycles))
        spaced = Signal(init=1)
        due = Signal()
        ready = Signal()
        turn = Signal()
        timely = Signal()
        public = Signal()
        clear = Signal()
        m.d.comb += [
            self.touches.i.valid.eq(self.touch.valid),
            self.touches.i.payload.eq(self.touch.payload),
            self.timer.i.eq(self.touch.valid & ~self.alone),
            self.idle_timer.i.eq(self.touch.valid & self.alone),
            timely.eq(self.due.some & spaced & ~self.halt),
            self.near.eq(timely & ~clear),
            self.place.eq(touch.place),
            public.eq((self.pages.some | ~paged) & self.writes.some & (self.responses.some | ~ending)),
            due.eq(timely & clear & public),
            self.waiting.eq(timely & clear & ~public),
            ready.eq(
                (self.keystreams.some | ~paged)
                & (self.records.some | ~touch.record_valid)
                & (self.fresh.some | ~(ending & touch.keep))
            ),
            turn.eq(due & ready),
            head.o.ready.eq(turn),
        ]
        with m.If(due & ~ready):
            m.d.sync += self.late.eq(1)
        with m.If(turn):
            m.d.sync += [wait.eq(config.item_cycles - 1), spaced.eq(0)]
        with m.Elif(~spaced):
            m.d.sync += [wait.eq(wait - 1), spaced.eq(wait == 1)]

        # Pages admitted less than F cycles ago: the oldest of ``near`` pages is not among them.
        recent = Signal(range(NEAREST + 2))
        old = delay(m, "recent_page", turn & paged, self._forward_cycles - 2)
        m.d.sync += [
            recent.eq(recent + (turn & paged) - old),
            clear.eq(~touch.near.any() | (touch.near > recent)),
        ]

        # Headers of all labels of an operation count as one.
        label = Signal(range(config.label_count))
        with m.If(self.fresh_arrived):
            m.d.sync += label.eq(label + 1)
        for counted, give, take in (
            (self.due, self.timer.o | self.idle_timer.o, 1),  # never both: later touches are due later
            (self.pages, self.page_arrived, paged),
            (self.writes, self.page_left, paged),
            (self.responses, self.response_written, ending),
            (self.keystreams, self.keystream_arrived, paged),
            (self.records, self.record_arrived, touch.record_valid),
            (self.fresh, self.fresh_arrived & (label == config.label_count - 1), ending & touch.keep),
        ):
            m.d.comb += [counted.give.eq(give), counted.take.eq(turn & take)]

        admitted = Signal(touch_layout(config), reset_less=True)
        m.d.sync += [self.turn.valid.eq(turn), admitted.eq(touch)]
        m.d.comb += self.turn.payload.eq(admitted)

        # One beat of the page every ``page_beat_cycles``, the rate of the AES pipelines.
        beats, pace = config.page_beats, config.page_beat_cycles
        running = Signal()
        left = Signal(range(beats))
        pause = Signal(range(pace))
        m.d.comb += [
            self.page.ready.eq(running & (pause == 0)),
            self.beat.valid.eq(self.page.ready),
            self.beat.payload.eq(self.page.payload),
            self.starved.eq(self.page.ready & ~self.page.valid),
        ]
        with m.If(running):
            m.d.sync += pause.eq(pause - 1)
            with m.If(pause == 0):
                m.d.sync += [left.eq(left - 1), running.eq(left != 0)]
        with m.If(turn & paged):
            m.d.sync += [running.eq(1), left.eq(beats - 1), pause.eq(0)]
        return m
