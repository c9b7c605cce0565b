"""Write alignment: words packed from lane 0 become bus beats at any byte, with strobes and burst ends."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.lib.delay import payload_register
from hw.lib.dma.burst import span_layout
from hw.lib.loads import copies, shifted_down


def beat_layout(data_width: int) -> data.StructLayout:
    """Return the payload of a write beat: ``data``, ``strb`` (one bit a byte), ``last`` of its burst."""
    return data.StructLayout({"data": data_width, "strb": data_width // 8, "last": 1})


class WriteAligner(wiring.Component):
    """Shifts the bytes of each command up to the lanes of its address.

    ``burst_beats``: beats of the aligned blocks that end bursts, as of the splitter.

    Behaviour
    ---------
    One bus beat every cycle for any alignment, across commands too.  A command with one beat more than words
    pauses ``i`` for one cycle.  A beat is on ``o`` in the cycle after its word was on ``i``.  ``i.ready`` and
    ``span.ready`` depend on ``o.ready``.

    Example
    -------
    >>> aligner = WriteAligner(data_width=128)
    >>> aligner.o.payload.shape()
    StructLayout({'data': 128, 'strb': 16, 'last': 1})
    """

    def __init__(self, *, data_width: int = 256, burst_beats: int = 16) -> None:
        self._data_width = data_width
        self._burst_beats = burst_beats
        span = span_layout(data_width=data_width, burst_beats=burst_beats)
        super().__init__(
            {
                "span": In(stream.Signature(span)),  #: One a command, in order.
                #: Packed words, as many as a command's bytes fill; the rest of its last word is ignored.
                "i": In(stream.Signature(data_width)),
                #: Bus beats; bytes with ``strb`` low are undefined.
                "o": Out(stream.Signature(beat_layout(data_width))),
                #: Useful bytes that leave ``i`` at the end of this cycle.
                "bytes_taken": Out(range(data_width // 8 + 1)),
            }
        )

    def elaborate(self, platform: Any) -> Elaboratable:
        """Previous word and this one, a byte shifter, and the output register."""
        m = Module()
        beat_bytes = self._data_width // 8
        lanes = exact_log2(beat_bytes)

        active = Signal()
        first = Signal()
        current = Signal(self.span.payload.shape())
        # A shift up by the offset is a shift down from the word before; copies for some bits each.
        downs = copies(Signal.like(current.offset, name="down", reset_less=True), 8)
        left = current.after  # beats of the command after this one
        final = Signal()  # left is 0
        previous = Signal(self._data_width, reset_less=True)

        flush = current.extra & final  # this beat has bytes of the previous word only
        free = ~self.o.valid | self.o.ready
        step = Signal()
        m.d.comb += [
            step.eq(active & free & (flush | self.i.valid)),
            self.i.ready.eq(active & free & ~flush),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += previous.eq(self.i.payload)
            m.d.comb += self.bytes_taken.eq(Mux(left == current.extra, current.tail + 1, beat_bytes))

        word = shifted_down(m, Cat(previous[8:], self.i.payload), 8, downs, beat_bytes)
        end = (current.offset + current.tail)[:lanes]  # lane of the command's last byte in its last beat
        strobes = [
            (~first | (lane >= current.offset)) & (~final | (lane <= end)) for lane in range(beat_bytes)
        ]
        block_ends = (current.position + 1)[exact_log2(self._burst_beats)]
        with m.If(free):
            m.d.sync += self.o.valid.eq(step)
        payload = payload_register(m, self.o.payload)
        with m.If(step):
            m.d.sync += [
                payload.data.eq(word),
                payload.strb.eq(Cat(strobes)),
                payload.last.eq(final | block_ends),
            ]

        m.d.comb += self.span.ready.eq(~active | (step & final))
        with m.If(self.span.ready):
            m.d.sync += [
                active.eq(self.span.valid),
                current.eq(self.span.payload),
                *(down.eq(~self.span.payload.offset) for down in downs),
                first.eq(1),
                final.eq(self.span.payload.after == 0),
            ]
        with m.Elif(step):
            m.d.sync += [
                left.eq(left - 1),
                final.eq(left == 1),
                current.position.eq(current.position + 1),
                first.eq(0),
            ]
        return m
