"""Finds the samples of a layer that lie outside the line buffer."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import COORDINATE_BITS, MAX_TAPS, SIDE_BITS, TAP_LAYER_WORDS, WORDS_BITS, ConvConfig
from hw.conv.core.depthwise.place import TapLocator
from hw.conv.core.depthwise.tap_table import TapTable
from hw.conv.core.layouts import TapCommand, offset_entry
from hw.lib.delay import delay

#: Steps that may wait for their requests.
WAITING_STEPS = 32


def place_bits(config: ConvConfig) -> int:
    """Count the bits of a place, such that words held and steps queued all have different ones."""
    return (config.gather_words + 2 * WAITING_STEPS * TAP_LAYER_WORDS).bit_length()


class MissedTap(data.StructLayout):
    """Neighbours that a sample needs from memory."""

    def __init__(self) -> None:
        super().__init__(
            {
                #: ``rows``, ``columns``: bit n: neighbours n rows below or n columns right of the upper left
                #: one are needed; no rows: none is.
                "rows": 2,
                "columns": 2,
                #: ``row``, ``column``: of the upper left neighbour, modulo 2^12.
                "row": SIDE_BITS,
                "column": SIDE_BITS,
            }
        )


class MissedStep(data.StructLayout):
    """A step with samples from memory, or the last step of a pixel."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                #: The neighbours that each of T taps needs.
                "taps": data.ArrayLayout(MissedTap(), config.taps),
                "place": place_bits(config),  #: Place of their words; a counter that wraps.
                "words": WORDS_BITS,  #: Words of a pixel.
                #: ``ends``, ``last``: the last entry of the pixel; of the layer, which gathers.
                "ends": 1,
                "last": 1,
            }
        )


class GatherScan(wiring.Component):
    """Checks offsets on their way into the store.

    Behaviour
    ---------
    An entry a cycle.  A tap is missed if a neighbour with a weight lies in the map and outside the window of
    rows of `TapCommand`.  Whether it happens to be in the line buffer does not matter.

    Stages: look-up; three of `TapLocator`; comparison with map and window; result.
    """

    LATENCY = 6

    @classmethod
    def turn_latency(cls, taps: int) -> int:
        """Return the cycles for which a layer of ``taps`` stalls: for the pipeline to drain, then one for
        each tap.
        """
        return cls.LATENCY + 2 + taps

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse: a layer begins.
                "job": In(TapCommand(config)),  #: From ``start`` until the layer's last entry has left.
                #: Entries are accepted; low for as many cycles after ``start`` as there are taps.
                "ready": Out(1),
                "put": In(1),  #: An entry enters.
                "i": In(offset_entry(config)),
                #: ``ends``, ``last``: it is the last entry of its pixel; of its layer.
                "ends": In(1),
                "last": In(1),
                "busy": Out(1),  #: An entry is in flight.
                #: ``taken``, ``o``: the entry leaves, `LATENCY` cycles later.
                "taken": Out(1),
                "o": Out(offset_entry(config)),
                "misses": Out(config.taps),  #: Taps of it that are sampled from memory.
                #: Place of their words, if there are such taps: as many places as a pixel has words.
                "place": Out(place_bits(config)),
                #: ``missed``, ``step``: the entry has such taps, or ends its pixel; in the same cycle.
                "missed": Out(1),
                "step": Out(MissedStep(config)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Follow the pixels of the result; then check tap by tap."""
        m = Module()
        config, job = self._config, self.job
        m.submodules.table = table = TapTable(config)
        line = signed(SIDE_BITS + 3)
        step = Signal(range(MAX_TAPS))
        column = Signal(SIDE_BITS)
        y = Signal(signed(COORDINATE_BITS))
        x = Signal(signed(COORDINATE_BITS))
        # rows of the window: first, and end
        low = Signal(line)
        high = Signal(line)
        m.d.comb += [
            table.start.eq(self.start),
            table.job.eq(job),
            table.step.eq(step),
            self.ready.eq(table.ready),
        ]
        with m.If(self.put):
            m.d.sync += step.eq(Mux(self.ends, 0, step + 1))
        with m.If(self.put & self.ends):
            m.d.sync += [column.eq(column + 1), x.eq(x + job.stride_columns)]
            with m.If(column == job.out_columns - 1):
                m.d.sync += [column.eq(0), x.eq(-job.pad_columns), y.eq(y + job.stride_rows)]
                m.d.sync += [low.eq(low + job.stride_rows), high.eq(high + job.stride_rows)]
        with m.If(self.start):
            m.d.sync += [step.eq(0), column.eq(0), y.eq(-job.pad_rows), x.eq(-job.pad_columns)]
            m.d.sync += [low.eq(job.first_free), high.eq(job.first_need)]

        # The window for each row of neighbours, with the coordinates of stage 4.
        window = []
        for name, value in (("low", low), ("high", high)):
            upper = delay(m, f"{name}_3", value, 3, reset=False)
            pair = [Signal(line, name=f"{name}_4_{n}", reset_less=True) for n in range(2)]
            m.d.sync += [pair[n].eq(upper - n) for n in range(2)]
            window.append(pair)
        misses = [
            self._tap(m, t, delay(m, f"offset_{t}", self.i[t], 1, reset=False), table.taps[t], y, x, window)
            for t in range(config.taps)
        ]

        put = self.put
        flights = []
        for n in range(self.LATENCY):
            put = delay(m, f"put_{n}", put, 1)
            flights.append(put)
        ends, last = (
            delay(m, name, flag, self.LATENCY, reset=False)
            for name, flag in (("ends", self.ends), ("last", self.last & job.gather))
        )
        place = Signal(place_bits(config))
        with m.If(self.taken & self.misses.any()):
            m.d.sync += place.eq(place + job.fill.words)
        m.d.comb += [
            self.busy.eq(Cat(flights).any()),
            self.taken.eq(put),
            self.o.eq(delay(m, "entry", self.i, self.LATENCY, reset=False)),
            self.misses.eq(Cat(misses)),
            self.place.eq(place),
            self.missed.eq(put & (self.misses.any() | ends)),
            self.step.place.eq(place),
            self.step.words.eq(job.fill.words),
            self.step.ends.eq(ends),
            self.step.last.eq(last),
        ]
        return m

    def _tap(self, m: Module, t: int, offset: Any, tap: Any, y: Signal, x: Signal, window: Any) -> Signal:
        """Return whether a tap is missed, and drive the neighbours that it needs."""
        m.submodules[f"place_{t}"] = place = TapLocator(self._config)
        m.d.comb += [
            place.job.eq(self.job),
            place.y.eq(delay(m, f"y_{t}", y, 1, reset=False)),
            place.x.eq(delay(m, f"x_{t}", x, 1, reset=False)),
            place.tap.eq(tap),
            place.offset.eq(offset),
            place.free.eq(1),
        ]
        # 5: a second row or column counts only with a fraction.
        outside, counts = (Signal(2, name=f"{name}_5_{t}", reset_less=True) for name in ("outside", "counts"))
        low, high = window
        m.d.sync += [
            outside.eq(Cat((place.row < low[n]) | (place.row >= high[n]) for n in range(2))),
            counts.eq(Cat(place.ly.any(), place.lx.any())),
        ]
        rows = place.rows_inside & Cat(1, counts[0])
        columns = place.columns_inside & Cat(1, counts[1])
        # 6: neighbours that are needed.
        missed = Signal(name=f"missed_6_{t}", reset_less=True)
        needed = self.step.taps[t]
        needed_rows = Signal(2, name=f"rows_6_{t}", reset_less=True)
        m.d.sync += [
            missed.eq(
                delay(m, f"on_{t}", tap.on, 4, reset=False)
                & self.job.gather
                & columns.any()
                & (rows & outside).any()
            ),
            needed_rows.eq(rows),
        ]
        m.d.comb += [
            needed.rows.eq(Mux(missed, needed_rows, 0)),
            needed.columns.eq(delay(m, f"columns_{t}", columns, 1, reset=False)),
            needed.row.eq(delay(m, f"row_{t}", place.row[:SIDE_BITS], 2, reset=False)),
            needed.column.eq(delay(m, f"column_{t}", place.column[:SIDE_BITS], 2, reset=False)),
        ]
        return missed
