"""Read alignment: bus beats that begin at any byte become words packed from lane 0."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import payload_register
from hw.lib.dma.burst import span_layout
from hw.lib.loads import copies, shifted_down


def packed_layout(data_width: int) -> data.StructLayout:
    """Return the payload of a read DMA's output: ``data``, ``keep`` (a bit for each byte), ``last``."""
    return data.StructLayout({"data": data_width, "keep": data_width // 8, "last": 1})


class ReadAligner(wiring.Component):
    """Shifts the bytes of each command down to lane 0.

    ``burst_beats``: as of the splitter; part of the span's layout.

    Behaviour
    ---------
    One bus beat every cycle for any alignment, across commands too.  A word is on ``o`` in the cycle after
    its last beat was on ``i``.  ``i.ready`` and ``span.ready`` depend on ``o.ready``.

    Why
    ---
    A word of an unaligned command needs two beats.  A register that keeps the previous beat loses a cycle at
    each change of command: the first beat makes no word, or the last word takes no beat.  Here the window is
    the current beat and the next.  Every step removes one beat, so the bus never waits.

    Example
    -------
    >>> aligner = ReadAligner(data_width=128)
    >>> aligner.o.payload.shape()
    StructLayout({'data': 128, 'keep': 16, 'last': 1})
    """

    def __init__(self, *, data_width: int = 256, burst_beats: int = 16) -> None:
        self._data_width = data_width
        span = span_layout(data_width=data_width, burst_beats=burst_beats)
        super().__init__(
            {
                #: One a command, in order.  Beats are taken while a span is held.
                "span": In(stream.Signature(span)),
                "i": In(stream.Signature(data_width)),  #: Bus beats.
                #: Packed words, each whole but the last of a command; bytes with ``keep`` low are undefined.
                "o": Out(stream.Signature(packed_layout(data_width))),
                #: Useful bytes that enter ``o`` at the end of this cycle.
                "bytes_moved": Out(range(data_width // 8 + 1)),
            }
        )

    def elaborate(self, platform: Any) -> Elaboratable:
        """A window of two beats (``head`` and ``i``), a byte shifter, and the output register."""
        m = Module()
        beat_bytes = self._data_width // 8

        active = Signal()
        current = Signal(self.span.payload.shape())
        left = current.after  # beats of the command after the window's first
        final = Signal()  # left is 0
        head = Signal(self._data_width, reset_less=True)
        # Copies for some bits each.
        heads = copies(Signal(name="head_valid"), 8)
        head_valid = heads[0]
        offsets = copies(Signal.like(current.offset, name="offset", reset_less=True), 8)
        aligned = Signal()  # the offset is 0

        # The window's first beat is the head or, when there is none, the input itself.
        alone = aligned | final  # no byte of the next beat is needed
        spent = current.extra & final  # the previous word took all of this beat already
        complete = Mux(head_valid, alone | self.i.valid, alone & self.i.valid)
        free = ~self.o.valid | self.o.ready
        step = Signal()
        emit = Signal()
        m.d.comb += [
            step.eq(active & complete & (spent | free)),
            emit.eq(step & ~spent),
            self.i.ready.eq(step | ~head_valid),
        ]
        with m.If(self.i.ready):
            m.d.sync += [
                head.eq(self.i.payload),
                *(valid.eq(self.i.valid & (head_valid | ~step)) for valid in heads),
            ]

        second = self.i.payload
        first = Signal(self._data_width)
        for n, valid in enumerate(heads):
            bits = slice(n * beat_bytes, (n + 1) * beat_bytes)
            m.d.comb += first[bits].eq(Mux(valid, head[bits], second[bits]))
        word = shifted_down(m, Cat(first, second), 8, offsets, beat_bytes)
        last = left == current.extra
        with m.If(emit):
            m.d.comb += self.bytes_moved.eq(Mux(last, current.tail + 1, beat_bytes))
        with m.If(free):
            m.d.sync += self.o.valid.eq(emit)
        payload = payload_register(m, self.o.payload)
        with m.If(emit):
            m.d.sync += [
                payload.data.eq(word),
                payload.keep.eq(Cat(~last | (lane <= current.tail) for lane in range(beat_bytes))),
                payload.last.eq(last),
            ]

        m.d.comb += self.span.ready.eq(~active | (step & final))
        with m.If(self.span.ready):
            m.d.sync += [
                active.eq(self.span.valid),
                current.eq(self.span.payload),
                *(offset.eq(self.span.payload.offset) for offset in offsets),
                aligned.eq(self.span.payload.offset == 0),
                final.eq(self.span.payload.after == 0),
            ]
        with m.Elif(step):
            m.d.sync += [left.eq(left - 1), final.eq(left == 1)]
        return m
