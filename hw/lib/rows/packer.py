"""Packer: result rows that each begin in a new beat become contiguous words for the write DMA."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError
from hw.lib.delay import payload_register
from hw.lib.loads import LOADS, copies, shifted_down
from hw.lib.rows.command import RowsCommand


class RowPacker(wiring.Component):
    """Packs rows of any number of units; each row begins in a new beat.

    ``command``: sizes of rows, and of the unit. ``data_width``: bits of a word: a power of two of at least a
    unit. ``beat_width``: bits of a beat: a power of two from a unit to a word; a word by default.

    Behaviour
    ---------
    A beat a cycle.  A command whose units need one word more than its beats takes one cycle more.  A word is
    on ``o`` a cycle after the beat that fills it.  ``i.ready`` and ``rows.ready`` depend on ``o.ready``.

    Example
    -------
    >>> rows = RowsCommand(most_rows=1024, most_units=32, unit_bits=128)
    >>> packer = RowPacker(rows, data_width=512, beat_width=256)
    >>> packer.i.payload.shape(), packer.o.payload.shape()
    (unsigned(256), unsigned(512))
    """

    #: Cycles from the beat that completes a word to ``o``.
    LATENCY: ClassVar = 1

    def __init__(self, command: RowsCommand, *, data_width: int, beat_width: int | None = None) -> None:
        beat_width = data_width if beat_width is None else beat_width
        command.check_width(data_width)
        command.check_width(beat_width)
        if beat_width > data_width:
            raise InputError("beat_width", beat_width, f"at most data_width, {data_width}")
        self._unit_bits = command.unit_bits
        self._data_width = data_width
        self._beat_width = beat_width
        super().__init__(
            {
                "rows": In(stream.Signature(command)),  #: One for each command of the DMA.
                #: Beats: as many as a row's units need, from the lowest bits.
                "i": In(stream.Signature(beat_width)),
                #: Words: as many as a command's units need; the rest of the last one is undefined.
                "o": Out(stream.Signature(data_width)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Append each beat to the waiting units, and send whole words."""
        m = Module()
        width, unit_bits, o = self._data_width, self._unit_bits, self.o
        word_units, beat_units = width // unit_bits, self._beat_width // unit_bits
        rest = Signal(width, reset_less=True)
        # Its units, and whether they are a command's last: copies for some bits of every unit.
        slice_bits = max(1, LOADS // (2 * word_units))
        slices = -(-unit_bits // slice_bits)
        counts = copies(Signal(range(word_units), name="count"), slices)
        flushes = copies(Signal(name="flush"), slices)
        count, flush = counts[0], flushes[0]
        active = Signal()
        command = self.rows.payload.shape()
        rows_left = Signal(command["rows"].shape)  # after this one
        units = Signal(command["units"].shape)  # of a row
        units_left = Signal.like(units)  # of this row

        # Of the next beat: whether it is its row's last, whether its row is the last, and its units.
        ends_row = Signal()
        last_row = Signal()
        given = Signal(range(beat_units + 1))
        free = Signal()
        step = Signal()
        final = Signal()
        whole = Signal()
        total = Signal(range(2 * word_units))
        m.d.comb += [
            free.eq(~o.valid | o.ready),
            step.eq(active & ~flush & free & self.i.valid),
            self.i.ready.eq(active & ~flush & free),
            final.eq(ends_row & last_row),
            total.eq(count + given),
            whole.eq(total >= word_units),
        ]
        with m.If(free):
            m.d.sync += o.valid.eq((step & (whole | final)) | flush)
        with m.If(free & flush):
            m.d.sync += [register.eq(0) for register in (*flushes, *counts)]
        word, parts = payload_register(m, o.payload), []
        for n in range(slices):
            bits = slice(n * slice_bits, min(unit_bits, (n + 1) * slice_bits))
            waiting, beat, packed = (
                [lanes.word_select(unit, unit_bits)[bits] for unit in range(count)]
                for lanes, count in ((rest, word_units), (self.i.payload, beat_units), (word, word_units))
            )
            nothing = [Const(0, len(waiting[0]))] * word_units
            beat += nothing[beat_units:]
            # A shift up by the count is a shift down in reverse order.
            window = Cat(*nothing, *reversed(beat), *nothing)
            lane_bits = len(waiting[0])
            shifted = shifted_down(m, window, lane_bits, [counts[n]], 2 * word_units)
            lanes = [shifted.word_select(unit, lane_bits) for unit in range(2 * word_units)]
            kept = [Mux(counts[n] > unit, waiting[unit], 0) for unit in range(word_units)]
            parts.append([a | b for a, b in zip([*kept, *nothing], reversed(lanes), strict=True)])
            with m.If(free & flushes[n]):
                m.d.sync += Cat(packed).eq(Cat(waiting))
        window = [Cat(unit) for unit in zip(*parts, strict=True)]
        low, high = Cat(window[:word_units]), Cat(window[word_units:])

        def beat_of(units: Any) -> list[Any]:
            last = units <= beat_units
            return [units_left.eq(units), ends_row.eq(last), given.eq(Mux(last, units, beat_units))]

        following = Signal.like(units)
        m.d.comb += following.eq(Mux(ends_row, units, units_left - beat_units))
        with m.If(step):
            more = total - Mux(whole, word_units, 0)
            m.d.sync += [
                word.eq(low),
                rest.eq(Mux(whole, high, low)),
                *(count.eq(Mux(final & ~whole, 0, more)) for count in counts),
                *(flush.eq(final & whole & (more != 0)) for flush in flushes),
                *beat_of(following),
                rows_left.eq(rows_left - ends_row),
                last_row.eq(Mux(ends_row, rows_left == 1, last_row)),
            ]
        m.d.comb += self.rows.ready.eq(~active | (step & final))
        with m.If(self.rows.ready):
            m.d.sync += [
                active.eq(self.rows.valid),
                rows_left.eq(self.rows.payload.rows - 1),
                units.eq(self.rows.payload.units),
                last_row.eq(self.rows.payload.rows == 1),
                *beat_of(self.rows.payload.units),
            ]
        return m
