"""The read aligner's part for commands of whole beats: no shifter."""

from typing import Any

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import payload_register
from hw.lib.dma.align_read import packed_layout
from hw.lib.dma.burst import span_layout


class WholeBeats(wiring.Component):
    """Passes the beats of each command, and marks the last one.

    ``burst_beats``: as of the splitter; part of the span's layout.

    Behaviour
    ---------
    As `hw.lib.dma.align_read.ReadAligner`, for commands whose address and length are whole beats.

    >>> beats = WholeBeats(data_width=128)
    >>> beats.o.payload.shape() == packed_layout(128)
    True
    """

    def __init__(self, *, data_width: int = 256, burst_beats: int = 16) -> None:
        self._data_width = data_width
        span = span_layout(data_width=data_width, burst_beats=burst_beats)
        super().__init__(
            {
                "span": In(stream.Signature(span)),  #: One a command, in order.
                "i": In(stream.Signature(data_width)),  #: Bus beats.
                "o": Out(stream.Signature(packed_layout(data_width))),  #: The same; ``keep`` is all ones.
                "bytes_moved": Out(range(data_width // 8 + 1)),  #: That enter ``o`` at the end of this cycle.
            }
        )

    def elaborate(self, platform: Any) -> Elaboratable:
        """A counter of beats, and the output register."""
        m = Module()
        beat_bytes = self._data_width // 8
        active = Signal()
        left = Signal(self.span.payload.after.shape())  # beats of the command after this one
        final = Signal()  # left is 0
        step = Signal()
        free = ~self.o.valid | self.o.ready
        payload = payload_register(m, self.o.payload)
        m.d.comb += [
            step.eq(active & self.i.valid & free),
            self.i.ready.eq(active & free),
            self.span.ready.eq(~active | (step & final)),
        ]
        with m.If(free):
            m.d.sync += self.o.valid.eq(step)
        with m.If(step):
            m.d.comb += self.bytes_moved.eq(beat_bytes)
            m.d.sync += [
                payload.data.eq(self.i.payload),
                payload.keep.eq(2**beat_bytes - 1),
                payload.last.eq(final),
            ]
        with m.If(self.span.ready):
            after = self.span.payload.after
            m.d.sync += [active.eq(self.span.valid), left.eq(after), final.eq(after == 0)]
        with m.Elif(step):
            m.d.sync += [left.eq(left - 1), final.eq(left == 1)]
        return m
