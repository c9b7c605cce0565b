"""Beats that erase the slice of a table behind one HBM port."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.axi import MAX_BURST_BEATS
from hw.oram.movers.hbm.lines import Lines


def erase_layout(lines: Lines) -> data.StructLayout:
    """Return a beat of the erasure."""
    return data.StructLayout(
        {
            "beat": lines.beat_bits,  #: Number of the beat behind the port.
            "head": 1,  #: It is the first of its line; in HBM the second one if these are swapped.
            #: ``first``, ``last``, ``length``: of its burst; beats of the burst without the first.
            "first": 1,
            "last": 1,
            "length": range(MAX_BURST_BEATS),
        }
    )


class Eraser(wiring.Component):
    """Counts through the beats of a slice, in bursts, and counts the answers.

    Behaviour
    ---------
    It begins when ``erase`` is high and ``idle``, once until ``erase`` falls. A burst ends at a multiple of
    its length, so none crosses 4 KiB.
    """

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        super().__init__(
            {
                "erase": In(1),  #: Falls after ``erased`` only.
                "idle": In(1),  #: No earlier write of the port is unanswered.
                "active": Out(1),  #: From the first beat until ``erase`` falls.
                "o": Out(stream.Signature(erase_layout(lines))),
                "answer": In(1),  #: Pulse: a burst is answered.
                "erased": Out(1),  #: Every burst is answered.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """The flags of a beat are registers, computed at its predecessor."""
        m = Module()
        beats, line_beats = self._lines.slice_beats, self._lines.beats
        swapped = Const(self._lines.swapped, 1)
        bursts = -(-beats // MAX_BURST_BEATS)
        tail = (beats - 1) % MAX_BURST_BEATS
        out = self.o.payload
        in_burst = out.beat[: MAX_BURST_BEATS.bit_length() - 1]
        burst = out.beat[len(in_burst) :]
        place = Signal(range(max(2, line_beats)))
        at_first = place == 0
        at_last = place == line_beats - 1
        odd = Signal()  # the line's beats are swapped
        final = Signal()
        unanswered = Signal(range(bursts + 1))
        begin = Signal()
        m.d.comb += begin.eq(self.erase & self.idle & ~self.active)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [
                self.o.valid.eq(~final),
                out.beat.eq(out.beat + 1),
                place.eq(Mux(at_last, 0, place + 1)),
                odd.eq(odd ^ (swapped & at_last)),
                # Behind a last beat comes an even line's head; behind a first one, an odd line's.
                out.head.eq(Mux(swapped, odd & (at_first | at_last), at_last)),
                final.eq(out.beat == beats - 2),
                out.first.eq(in_burst.all()),
                out.last.eq((in_burst == MAX_BURST_BEATS - 2) | (out.beat == beats - 2)),
            ]
            with m.If(in_burst.all()):
                m.d.sync += out.length.eq(Mux(burst == bursts - 2, tail, MAX_BURST_BEATS - 1))
        with m.If(self.answer & self.active):
            m.d.sync += unanswered.eq(unanswered - 1)
        with m.If(begin):
            m.d.sync += [
                self.active.eq(1),
                self.o.valid.eq(1),
                out.beat.eq(0),
                place.eq(0),
                odd.eq(0),
                out.head.eq(1),
                final.eq(beats == 1),
                out.first.eq(1),
                out.last.eq(beats == 1),
                out.length.eq(tail if bursts == 1 else MAX_BURST_BEATS - 1),
                unanswered.eq(bursts),
            ]
        m.d.sync += self.erased.eq(self.active & (unanswered == 0))
        with m.If(~self.erase):
            m.d.sync += [self.active.eq(0), self.erased.eq(0)]
        return m
