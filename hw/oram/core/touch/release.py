"""Gate 2: touches have their turn at times that follow from public times alone."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect

from hw.lib.fifo import Fifo
from hw.lib.skid import Skid
from hw.oram.config import OramConfig
from hw.oram.core.layouts import BEAT_BITS, touch_layout
from hw.oram.core.touch.credits import Credits
from hw.oram.core.touch.timer import Timer


class Release(wiring.Component):
    """Lets touches pass into the stage, which nothing holds up from there on.

    ``deadline``: D, cycles from a touch's issue to its turn at least, at least 5.

    Behaviour
    ---------
    q(j) is the first cycle, at least D after i(j) and ``item_cycles`` after q(j - 1), in which: its page,
    if it has one, is there; fewer than ``write_pages`` have had their turn and not left; if the touch is its
    operation's last, fewer than ``response_records`` responses are not written.  All counts are as of the
    cycle before.
    """

    #: Cycles of the deadline that are not the timer's: from i(j) to its pulse, and to the count.
    _AROUND: ClassVar = 2

    def __init__(self, config: OramConfig, *, deadline: int) -> None:
        self._config = config
        super().__init__(
            {
                #: In the cycle after i(j).
                "touch": In(stream.Signature(touch_layout(config), always_ready=True)),
                "page_there": In(1),  #: Pulse: one more page lies whole in front of ``page``.
                #: Beats of the pages; those of a page that is there are offered without a gap from the second
                #: cycle after ``page_there`` on.
                "page": In(stream.Signature(BEAT_BITS)),
                #: ``page_left``, ``response_written``: pulses: one more page is on its way to the host with
                #: its last beat, one more response is written.
                "page_left": In(1),
                "response_written": In(1),
                #: ``keystream_there``, ``record_there``, ``fresh_there``: pulses: one more keystream of a
                #: page is ready, one more whole record is there, one more header of a fresh record.  When
                #: they come is secret.
                "keystream_there": In(1),
                "record_there": In(1),
                "fresh_there": In(1),
                "halt": In(1),  #: Nothing passes any more.
                #: In the cycle after the turn, q(j).
                "turn": Out(stream.Signature(touch_layout(config), always_ready=True)),
                #: The page of a touch that has one: beat b in cycle q(j) + 1 + b * (4 / aes_lanes).
                "beat": Out(stream.Signature(BEAT_BITS, always_ready=True)),
                #: The next touch would turn, but for the host: its page is not there, or pages or responses
                #: do not leave.
                "waiting": Out(1),
                #: A keystream, record or header was not there in time: from this cycle on nothing may pass
                #: (``halt``).
                "late": Out(1),
            }
        )
        touches = config.inflight * config.items
        self.touches = Fifo(touch_layout(config), depth=touches)  # bounded by the operations issued
        self.timer = Timer(cycles=deadline - self._AROUND, spacing=config.item_cycles)
        self.due = Credits(touches, full=False)
        self.pages = Credits(config.read_pages, full=False)
        self.writes = Credits(config.write_pages)
        self.responses = Credits(config.response_records)
        self.keystreams = Credits(config.read_pages, full=False)
        self.records = Credits(touches, full=False)
        self.fresh = Credits(config.inflight, full=False)
        # A beat that was not offered in time: never, and a proof checks it.
        self.starved = Signal()

    def elaborate(self, platform: Any) -> Module:
        """Counts of what is public decide; counts of what is secret only say whether it is too late."""
        m = Module()
        config = self._config
        m.submodules.touches, m.submodules.timer, m.submodules.due = self.touches, self.timer, self.due
        m.submodules.pages, m.submodules.keystreams = self.pages, self.keystreams
        m.submodules.records, m.submodules.fresh = self.records, self.fresh
        m.submodules.writes, m.submodules.responses = self.writes, self.responses
        m.submodules.head = head = Skid(touch_layout(config))
        connect(m, self.touches.o, head.i)
        touch = head.o.payload
        paged, ending = touch.page_valid, touch.last
        wait, spaced = Signal(range(config.item_cycles)), Signal(init=1)
        due, ready, turn = Signal(), Signal(), Signal()
        timely, public = Signal(), Signal()
        m.d.comb += [
            self.touches.i.valid.eq(self.touch.valid),
            self.touches.i.payload.eq(self.touch.payload),
            self.timer.i.eq(self.touch.valid),
            timely.eq(self.due.some & spaced & ~self.halt),
            public.eq((self.pages.some | ~paged) & self.writes.some & (self.responses.some | ~ending)),
            due.eq(timely & public),
            self.waiting.eq(timely & ~public),
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

        # Headers of all labels of an operation together are one.
        label = Signal(range(config.label_count))
        with m.If(self.fresh_there):
            m.d.sync += label.eq(label + 1)
        for counted, give, take in (
            (self.due, self.timer.o, 1),
            (self.pages, self.page_there, paged),
            (self.writes, self.page_left, paged),
            (self.responses, self.response_written, ending),
            (self.keystreams, self.keystream_there, paged),
            (self.records, self.record_there, touch.record_valid),
            (self.fresh, self.fresh_there & (label == config.label_count - 1), ending & touch.keep),
        ):
            m.d.comb += [counted.give.eq(give), counted.take.eq(turn & take)]

        gone = Signal(touch_layout(config), reset_less=True)
        m.d.sync += [self.turn.valid.eq(turn), gone.eq(touch)]
        m.d.comb += self.turn.payload.eq(gone)

        # The page, a beat as often as the AES pipelines take one.
        beats, pace = config.page_beats, config.page_beat_cycles
        running, left, pause = Signal(), Signal(range(beats)), Signal(range(pace))
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
