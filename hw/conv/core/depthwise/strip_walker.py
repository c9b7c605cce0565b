"""Reads plain depthwise 3 x 3 layers from the line buffer: three rows at once, each word once."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import SIDE_BITS, WORDS_BITS, ConvConfig
from hw.conv.core.depthwise.fill import RowPlace
from hw.conv.core.depthwise.row_gate import RowGate
from hw.conv.core.layouts import StripPoint, TapCommand
from hw.lib.delay import delay


class StripStep(data.StructLayout):
    """A word of each of three rows."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                #: ``valid``, ``last``: the step is valid; ``last`` completes a result.
                "valid": 1,
                "last": 1,
                "word": WORDS_BITS,  #: Word of the pixel.
                "addresses": data.ArrayLayout(range(config.bank_words), 4),  #: For each bank.
                "point": StripPoint(config),
            }
        )


class StripWalker(wiring.Component):
    """Issues the words of a strip, column by column.

    Behaviour
    ---------
    For each row of results it walks the columns of the map up to the last one needed, also beyond the map's
    edge, a word a cycle.  A result leaves with the last word of its last column.  Columns left of the map are
    not walked, but marked as outside.  A cycle is lost before each row.
    """

    #: Cycles from ``start`` until a row may begin; for each row of the map that is skipped, and in addition.
    START_LATENCY: ClassVar = 3
    PLACE_INTERVAL: ClassVar = 2
    PLACE_LATENCY: ClassVar = 3

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        super().__init__(
            {
                #: ``start``, ``job``, ``filled``, ``prepared``, ``room``, ``done``, ``waits``: as of
                #: `hw.conv.core.depthwise.tap_walker.TapWalker`.  The job is a strip: a 3 x 3 kernel,
                #: dilation 2^split times an odd number both ways, padding of at most ``2 * dilation``.
                "start": In(1),
                "job": In(TapCommand(config)),
                "filled": In(SIDE_BITS),
                "prepared": In(1),
                "room": In(1),
                "o": Out(StripStep(config)),
                "row": Out(SIDE_BITS),  #: The first row of the map that is still needed.
                "done": Out(1),
                "waits": Out(2),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Step three places down the map, and count columns."""
        m = Module()
        job, o = self.job, self.o
        m.submodules.gate = gate = RowGate(self._config)
        m.d.comb += [gate.job.eq(job), gate.filled.eq(self.filled), gate.start.eq(self.start)]
        m.d.comb += self.row.eq(gate.row)
        go = Signal()
        row_ends = Signal()
        active = Signal()
        at_row = Signal()
        places = [self._place(m, n, gate.begin) for n in range(3)]
        placed = Cat(place.settled for place in places).all()

        # Columns of the map: the first result ends in `first`, another one every `stride` columns.
        dilation = job.dilation_columns
        column = Signal(SIDE_BITS + 1)
        word = Signal.like(o.word)
        results = Signal(SIDE_BITS)
        row = Signal(SIDE_BITS)
        phase = Signal(signed(9))  # columns to the next result
        at_word = Signal()
        first = Signal(signed(9))
        m.d.sync += first.eq((dilation << 1) - job.pad_columns)
        result = Signal()
        row_last = Signal()
        # The last word and result are compared a cycle ahead.
        ends = Signal()
        one_word = job.fill.words == 1
        last_result = Signal()
        one_result = job.out_columns == 1
        m.d.sync += row_last.eq(row == job.out_rows - 1)
        m.d.comb += [
            gate.begin.eq(active & at_row & gate.ready & placed & self.prepared),
            go.eq(active & ~at_row & ~(at_word & ~self.room)),
            result.eq(phase == 0),
            row_ends.eq(go & ends & result & last_result),
            self.waits.eq((active & at_row) | ((active & at_word & ~self.room) << 1)),
        ]
        with m.If(gate.begin):
            m.d.sync += at_row.eq(0)
        offset = Signal(range(self._config.bank_words))
        with m.If(go):
            m.d.sync += [
                word.eq(Mux(ends, 0, word + 1)),
                ends.eq(Mux(ends, one_word, word == job.fill.words - 2)),
                offset.eq(offset + 1),
                at_word.eq(1),
            ]
            with m.If(ends):
                m.d.sync += [
                    column.eq(column + 1),
                    phase.eq(Mux(result, job.stride_columns - 1, phase - 1)),
                    results.eq(results + result),
                ]
            with m.If(ends & result):
                m.d.sync += last_result.eq(results == job.out_columns - 2)
        with m.If(row_ends):
            m.d.sync += [column.eq(0), offset.eq(0), results.eq(0), phase.eq(first)]
            m.d.sync += last_result.eq(one_result)
            m.d.sync += [row.eq(row + 1), active.eq(~row_last), at_row.eq(1)]
        ended = Signal()
        complete = Signal()
        m.d.sync += complete.eq(self.filled == job.fill.rows)
        m.d.comb += self.done.eq(ended & complete)
        with m.If(row_ends & row_last):
            m.d.sync += ended.eq(1)
        with m.If(self.done):
            m.d.sync += ended.eq(0)
        starting = delay(m, "starting", self.start, 2)  # `first` is known then
        with m.If(self.start):
            m.d.sync += [word.eq(0), offset.eq(0), column.eq(0), results.eq(0), row.eq(0), at_word.eq(1)]
            m.d.sync += [ended.eq(0), complete.eq(0), ends.eq(one_word), last_result.eq(one_result)]
        with m.If(starting):
            m.d.sync += [phase.eq(first), active.eq(1), at_row.eq(1)]
        self._point(m, column, word, go=go, result=result, begin=gate.begin)
        self._addresses(m, places, offset, gate.begin)
        return m

    def _point(
        self, m: Module, column: Signal, word: Signal, *, go: Signal, result: Signal, begin: Any
    ) -> None:
        """Drive the word, and the columns of the kernel that are in the map.

        They are those of this column, and one and two dilations before.
        """
        job, o = self.job, self.o
        dilation, columns = job.dilation_columns, job.fill.columns
        span = Signal(range(self._config.strip_words + 1))
        m.d.sync += span.eq(dilation * job.fill.words)
        m.d.sync += [
            o.valid.eq(go),
            o.last.eq(go & result),
            o.word.eq(word),
            o.point.columns.eq(
                Cat(
                    column >= (dilation << 1),
                    (column >= dilation) & (column < columns + dilation),
                    column < columns,
                )
            ),
            o.point.span.eq(span),
            o.point.begins.eq(begin),
        ]

    def _addresses(self, m: Module, places: list[_Place], offset: Signal, begin: Any) -> None:
        """Hold the places of this row of results, while ``places`` step to the next, and drive addresses."""
        o = self.o
        banks = [Signal(2, name=f"bank_{n}") for n in range(3)]
        bases = [Signal.like(offset, name=f"base_{n}") for n in range(3)]
        inside = Signal(3)
        with m.If(begin):
            m.d.sync += inside.eq(Cat(place.inside for place in places))
            for n, place in enumerate(places):
                m.d.sync += [banks[n].eq(place.bank), bases[n].eq(place.base)]
        m.d.sync += [o.point.banks[n].eq(bank) for n, bank in enumerate(banks)]
        m.d.sync += o.point.rows.eq(inside)
        for bank in range(4):
            # A row outside the map has no bank.
            upper, middle = (inside[n] & (banks[n] == bank) for n in range(2))
            base = Mux(upper, bases[0], Mux(middle, bases[1], bases[2]))
            m.d.sync += o.addresses[bank].eq(base + offset)

    def _place(self, m: Module, n: int, step: Any) -> _Place:
        """Track the bank and address of row n of the three of the next row of results.

        They advance by a row every second cycle, from row 0 on; rows above the map have none.
        """
        job = self.job
        m.submodules[f"place_{n}"] = place = RowPlace(self._config)
        target = Signal(signed(SIDE_BITS + 3), name=f"target_{n}")
        row = Signal(SIDE_BITS + 1, name=f"row_{n}")
        moving, behind, fresh = (Signal(name=f"{name}_{n}") for name in ("moving", "behind", "fresh"))
        inside, settled = Signal(name=f"inside_{n}"), Signal(name=f"settled_{n}")
        change = self.start | step
        m.d.comb += [place.start.eq(self.start), place.job.eq(job.fill), place.step.eq(moving)]
        m.d.sync += [
            behind.eq((target > row) & ~moving & ~behind & ~change),
            moving.eq(behind & ~change),
            fresh.eq(change),
            inside.eq((target >= 0) & (target < job.fill.rows)),
            settled.eq((target <= row) & ~moving & ~behind & ~fresh & ~change),
        ]
        with m.If(moving):
            m.d.sync += row.eq(row + 1)
        with m.If(step):
            m.d.sync += target.eq(target + job.stride_rows)
        with m.If(self.start):
            m.d.sync += [row.eq(0), target.eq(n * job.dilation_rows - job.pad_rows)]
        return _Place(bank=place.bank, base=place.base, inside=inside, settled=settled)


class _Place(NamedTuple):
    bank: Any
    base: Any
    inside: Signal
    settled: Signal
