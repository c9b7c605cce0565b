"""The order of samples: rows and columns of the result, words of a pixel, taps of the kernel."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import COORDINATE_BITS, MAX_TAPS, SIDE_BITS, WORDS_BITS, ConvConfig
from hw.conv.core.depthwise.row_gate import RowGate
from hw.conv.core.layouts import SLOT_BITS, Offsets, TapCommand


class TapStep(data.StructLayout):
    """The samples of one cycle: T taps of one word."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                #: ``valid``, ``first``, ``last``: the step is valid; it is the first or the last of its sum.
                "valid": 1,
                "first": 1,
                "last": 1,
                "step": range(MAX_TAPS),  #: Taps by T.
                "word": WORDS_BITS,  #: Word of the pixel.
                #: Words of weights before those of this step, in order of use.
                "weight": range(config.tap_words),
                "digit": 2,  #: Digit of samples that leave.
                #: ``y``, ``x``: position of the upper left tap without offsets.
                "y": signed(COORDINATE_BITS),
                "x": signed(COORDINATE_BITS),
                #: ``free_row``, ``free_slot``: the first row that is still in the line buffer, and its slot.
                "free_row": SIDE_BITS,
                "free_slot": SLOT_BITS,
                "pixel_ends": 1,  #: The last step of a pixel.
            }
        )


class TapWalker(wiring.Component):
    """Issues the steps of a layer, one a cycle.

    Behaviour
    ---------
    For each row of results, for each column: for each word, for each step; where samples leave: for each
    digit, tap and word.  A step a cycle, across words and pixels.  Before each row of results a cycle is
    lost, and the stall until its rows of the map have arrived.
    """

    #: Cycles from a row's begin to its first step, and from a step to ``o``.
    ROW_LATENCY: ClassVar = 1
    LATENCY: ClassVar = 1

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse.
                "job": In(TapCommand(config)),  #: Constant from ``start`` to ``done``; not a strip.
                "filled": In(SIDE_BITS),  #: Rows in the line buffer.
                "prepared": In(1),  #: Tables and weights of the layer are ready, until ``done``.
                "room": In(1),  #: Another word of results may begin.
                "pixel": In(1),  #: The offsets of another pixel have arrived.
                "claim": Out(1),  #: They are taken.
                "o": Out(TapStep(config)),
                #: One-cycle pulse: the last step was issued, and all rows are in the line buffer.
                "done": Out(1),
                #: Bit 0: stalled for rows or offsets; bit 1: for room.
                "waits": Out(2),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Nest counters; the innermost depends on whether samples leave."""
        m = Module()
        job, o = self.job, self.o
        m.submodules.gate = gate = RowGate(self._config)
        m.d.comb += [gate.job.eq(job), gate.filled.eq(self.filled), gate.start.eq(self.start)]

        active = Signal()
        go = Signal()
        at_word = Signal()
        at_pixel = Signal()
        at_row = Signal()
        needs_offsets = Signal()
        m.d.sync += needs_offsets.eq(job.offsets != Offsets.NONE)
        stalled = at_row | (at_pixel & needs_offsets & ~self.pixel)
        m.d.comb += [
            gate.begin.eq(active & at_row & gate.ready & self.prepared),
            go.eq(active & ~stalled & ~(at_word & ~self.room)),
            self.claim.eq(go & at_pixel & needs_offsets),
            self.waits.eq((stalled & active) | ((at_word & ~self.room & active) << 1)),
        ]

        step = Signal.like(o.step)
        word = Signal.like(o.word)
        weight = Signal.like(o.weight)
        digit = Signal(2)
        column = Signal(SIDE_BITS)
        row = Signal(SIDE_BITS)
        y = Signal.like(o.y)
        x = Signal.like(o.x)

        def last(counter: Signal, limit: Value) -> Signal:
            """Compare a counter with its limit, which is known long before the first row begins."""
            bound = Signal(len(counter), name=f"{counter.name}_bound", reset_less=True)
            flag = Signal(name=f"{counter.name}_last")
            m.d.sync += bound.eq(limit - 1)
            m.d.comb += flag.eq(counter == bound)
            return flag

        step_last, word_last = last(step, job.steps), last(word, job.fill.words)
        digit_last, column_last = last(digit, job.digits), last(column, job.out_columns)
        row_last = last(row, job.out_rows)
        steps_end = Signal()
        pixel_ends = Signal()
        row_ends = Signal()
        m.d.comb += [
            # Samples: the word is innermost, then tap and digit.  Sums: the step, then the word.
            steps_end.eq(Mux(job.samples, step_last & word_last, step_last)),
            pixel_ends.eq(word_last & step_last & (digit_last | ~job.samples)),
            row_ends.eq(pixel_ends & column_last),
        ]
        with m.If(gate.begin):
            m.d.sync += at_row.eq(0)
        with m.If(go):
            with m.If(job.samples | step_last):
                m.d.sync += word.eq(Mux(word_last, 0, word + 1))
            with m.If(~job.samples | word_last):
                m.d.sync += step.eq(Mux(step_last, 0, step + 1))
            with m.If(steps_end & job.samples):
                m.d.sync += digit.eq(Mux(digit_last, 0, digit + 1))
            m.d.sync += [
                weight.eq(Mux(pixel_ends, 0, weight + 1)),
                at_word.eq(job.samples | step_last),
                at_pixel.eq(pixel_ends),
                at_row.eq(row_ends),
            ]
            with m.If(pixel_ends):
                m.d.sync += [column.eq(column + 1), x.eq(x + job.stride_columns)]
            with m.If(row_ends):
                m.d.sync += [column.eq(0), x.eq(-job.pad_columns), row.eq(row + 1), y.eq(y + job.stride_rows)]
                m.d.sync += active.eq(~row_last)
        ended = Signal()
        complete = Signal()
        m.d.sync += complete.eq(self.filled == job.fill.rows)
        with m.If(go & row_ends & row_last):
            m.d.sync += ended.eq(1)
        m.d.comb += self.done.eq(ended & complete)
        with m.If(self.done):
            m.d.sync += ended.eq(0)
        with m.If(self.start):
            m.d.sync += [at_word.eq(1), at_pixel.eq(1), at_row.eq(1), active.eq(1), ended.eq(0)]
            m.d.sync += [step.eq(0), word.eq(0), digit.eq(0), weight.eq(0), column.eq(0), row.eq(0)]
            m.d.sync += [y.eq(-job.pad_rows), x.eq(-job.pad_columns), complete.eq(0)]

        m.d.sync += [
            o.valid.eq(go),
            o.first.eq(job.samples | (step == 0)),
            o.last.eq(job.samples | step_last),
            o.step.eq(step),
            o.word.eq(word),
            o.weight.eq(weight),
            o.digit.eq(digit),
            o.y.eq(y),
            o.x.eq(x),
            o.free_row.eq(gate.row),
            o.free_slot.eq(gate.slot),
            o.pixel_ends.eq(pixel_ends),
        ]
        return m
