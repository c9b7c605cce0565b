"""Gearbox: words of the memory port become parts as wide as the arrays."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError
from hw.lib.delay import payload_register
from hw.lib.dma.align_read import packed_layout
from hw.lib.loads import LOADS, copies, shifted_down
from hw.lib.rows.command import RowsCommand
from hw.lib.width import WidthConverter


class RowPart(data.StructLayout):
    """A part of a row: its ``elements``, and ``last`` for the row's last part.

    >>> RowPart(512).size
    513
    """

    def __init__(self, bits: int) -> None:
        super().__init__({"elements": bits, "last": 1})


class RowCutter(wiring.Component):
    """Cuts rows of any number of units out of packed words, in parts of a fixed size.

    ``command``: sizes of rows, and of the unit. ``part_bits``: bits of a part: whole units. ``data_width``:
    bits of a word: a power of two of at least a unit.

    Behaviour
    ---------
    A word or a part a cycle, whichever is narrower, across rows and commands, for rows of any size.  A
    command loses a cycle at its end if its last part lies in two words.  The rest of a command's last word is
    dropped. ``i.ready`` and ``rows.ready`` depend on ``o.ready``.  A part is on ``o`` 2 cycles after its last
    word was taken from ``i``, 3 when words are joined.

    Why
    ---
    Words narrower than a part are joined first, so that a part lies in at most two words: the current one and
    the next.  A step removes at most one word from this window; the last step of a command may drop both.

    Example
    -------
    >>> rows = RowsCommand(most_rows=1024, most_units=32, unit_bits=128)
    >>> cutter = RowCutter(rows, part_bits=512, data_width=256)
    >>> RowCutter.latency(512, 256), cutter.o.payload.shape().size
    (3, 513)
    """

    def __init__(self, command: RowsCommand, *, part_bits: int, data_width: int) -> None:
        command.check_width(data_width)
        if not isinstance(part_bits, int) or part_bits < 1 or part_bits % command.unit_bits:
            raise InputError("part_bits", part_bits, f"a multiple of {command.unit_bits}")
        self._unit_bits = command.unit_bits
        self._part_bits = part_bits
        self._data_width = data_width
        super().__init__(
            {
                "rows": In(stream.Signature(command)),  #: One for each command of the DMA.
                #: Words of these commands; each command begins with a new word.
                "i": In(stream.Signature(packed_layout(data_width))),
                #: Each row in parts; bits of the last part beyond the row are zero.
                "o": Out(stream.Signature(RowPart(part_bits))),
            }
        )

    @staticmethod
    def joined(part_bits: int, data_width: int) -> int:
        """Return the number of words joined, so that their bits hold a part."""
        return 1 << max(0, (-(-part_bits // data_width) - 1).bit_length())

    @classmethod
    def latency(cls, part_bits: int, data_width: int) -> int:
        """Return the cycles from a part's last word on ``i`` to the part on ``o``."""
        return 2 + (WidthConverter.LATENCY if cls.joined(part_bits, data_width) > 1 else 0)

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        unit_bits = self._unit_bits
        part_units = self._part_bits // unit_bits
        word_units = self._data_width // unit_bits
        joined = self.joined(self._part_bits, self._data_width)
        word: Any = self.i
        if joined > 1:
            word = self._join(m, joined)
            word_units *= joined

        head = Signal(word_units * unit_bits, reset_less=True)
        head_valid = Signal()
        # First unit of the next part in the head: copies for some bits each.
        slice_bits = max(1, LOADS // (part_units + word_units // 2))
        offsets = copies(Signal(range(word_units), name="offset"), -(-unit_bits // slice_bits))
        active = Signal()
        command = self.rows.payload.shape()
        rows_left = Signal(command["rows"].shape)  # after this one
        units = Signal(command["units"].shape)  # of a row
        units_left = Signal.like(units)  # of this row
        o = self.o

        # Of the current part, computed a part ahead: its units, its end from the head's first unit, whether
        # it lies in two words.  Whether it is its row's last, and whether its row is the last.
        take = Signal(range(part_units + 1))
        end = Signal(range(word_units + part_units))
        spans = Signal()
        ends_row = Signal()
        last_row = Signal()
        # of a row's first part
        first_take = Signal.like(take)
        first_ends = Signal()
        final = Signal()
        step = Signal()
        fill = Signal()
        used = Signal()
        following = Signal.like(offsets[0], name="following")
        m.d.comb += [
            final.eq(ends_row & last_row),
            following.eq(Mux(final, 0, end[: len(following)])),
            used.eq((end >= word_units) | final),
            step.eq(active & head_valid & (word.valid | ~spans) & (~o.valid | o.ready)),
            fill.eq(~head_valid | (step & used)),
            word.ready.eq(fill),
        ]
        with m.If(fill):
            m.d.sync += [
                head.eq(word.payload.data),
                head_valid.eq(word.valid & ~(step & final & spans)),
            ]
        with m.If(step):
            m.d.sync += [offset.eq(following) for offset in offsets]

        cut = payload_register(m, o.payload)
        with m.If(o.ready):
            m.d.sync += o.valid.eq(0)
        elements = self._elements(m, Cat(head, word.payload.data), offsets, take)

        def part(left: Any, at: Any, count: Any, ends: Any) -> list[Any]:
            after = at + count
            return [
                units_left.eq(left),
                take.eq(count),
                ends_row.eq(ends),
                end.eq(after),
                spans.eq(after > word_units),
            ]

        rest, rest_ends = units_left - part_units, units_left <= 2 * part_units
        with m.If(step):
            m.d.sync += [
                o.valid.eq(1),
                cut.last.eq(ends_row),
                cut.elements.eq(elements),
                *part(
                    Mux(ends_row, units, rest),
                    following,
                    Mux(ends_row, first_take, Mux(rest_ends, rest, part_units)[: len(take)]),
                    Mux(ends_row, first_ends, rest_ends),
                ),
                rows_left.eq(rows_left - ends_row),
                last_row.eq(Mux(ends_row, rows_left == 1, last_row)),
            ]
        m.d.comb += self.rows.ready.eq(~active | (step & final))
        given = self.rows.payload.units
        whole = given <= part_units
        count = Mux(whole, given, part_units)[: len(take)]
        with m.If(self.rows.ready):
            m.d.sync += [
                active.eq(self.rows.valid),
                rows_left.eq(self.rows.payload.rows - 1),
                last_row.eq(self.rows.payload.rows == 1),
                units.eq(given),
                first_take.eq(count),
                first_ends.eq(whole),
                *part(given, 0, count, whole),
            ]
        return m

    def _elements(self, m: Module, window: Any, offsets: list[Signal], take: Signal) -> Value:
        """Return the units of a part: ``take`` units of the window from an offset on, then zeros."""
        bits, count = self._unit_bits, self._part_bits // self._unit_bits
        shifted = shifted_down(m, window, bits, offsets, count)
        lanes = [shifted.word_select(n, bits) for n in range(count)]
        return Cat(Mux(take > n, unit, Const(0, bits)) for n, unit in enumerate(lanes))

    def _join(self, m: Module, count: int) -> Any:
        """Join ``count`` words; a command's last word is sent with any number of them."""
        lane = self._data_width
        m.submodules.converter = converter = WidthConverter(lane_width=lane, i_lanes=1, o_lanes=count)
        m.d.comb += [
            converter.i.payload.data.eq(self.i.payload.data),
            converter.i.payload.keep.eq(1),
            converter.i.payload.last.eq(self.i.payload.last),
            converter.i.valid.eq(self.i.valid),
            self.i.ready.eq(converter.i.ready),
        ]
        return converter.o
