"""Cuts written lines into the beats with a written byte."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arbiter import lowest
from hw.lib.delay import payload_register
from hw.oram.movers.hbm.lines import Lines


def line_write_layout(lines: Lines) -> data.StructLayout:
    """Return a written line: its number, its bytes, and their strobes."""
    return data.StructLayout(
        {"line": lines.line_bits, "data": 8 * lines.line_bytes, "strobe": lines.line_bytes}
    )


class LineCutter(wiring.Component):
    """Cuts lines into beats.

    Behaviour
    ---------
    ``o`` and ``i.ready`` are flip-flops. A line takes a cycle for each beat with a written byte, and one
    more.
    """

    #: Cycles from a line to its first beat.
    LATENCY: ClassVar = 2

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        super().__init__(
            {
                #: Each line has at least one written byte.
                "i": In(stream.Signature(line_write_layout(lines))),
                "o": Out(stream.Signature(lines.beat_write)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Hold a line and a bitmap of its remaining beats; the lowest enters the output register."""
        m = Module()
        size, beats = self._lines.port_bytes, self._lines.beats
        held = Signal(line_write_layout(self._lines), reset_less=True)
        left = Signal(beats)
        chosen = Signal(beats)
        rest = Signal(beats)
        free = Signal()
        ready = Signal(init=1)
        m.d.comb += [
            self.i.ready.eq(ready),
            chosen.eq(lowest(left)),
            rest.eq(left & ~chosen),
            free.eq(~self.o.valid | self.o.ready),
        ]
        out = payload_register(m, self.o.payload)
        with m.If(free):
            m.d.sync += [self.o.valid.eq(left.any()), left.eq(rest), out.line.eq(held.line)]
            m.d.sync += ready.eq(~rest.any())
            for n in range(beats):
                with m.If(chosen[n]):
                    m.d.sync += [
                        out.beat.eq(n),
                        out.data.eq(held.data.word_select(n, 8 * size)),
                        out.strobe.eq(held.strobe.word_select(n, size)),
                    ]
        # Equal to ``ready``, whose wire is too long to drive every bit as well.
        with m.If(~left.any()):
            m.d.sync += held.eq(self.i.payload)
        with m.If(self.i.valid & ready):
            strobes = [self.i.payload.strobe.word_select(n, size).any() for n in range(beats)]
            m.d.sync += [left.eq(Cat(strobes)), ready.eq(0)]
        return m
