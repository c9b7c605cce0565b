"""From a tap and its offset to the addresses of four neighbours."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import COORDINATE_BITS, SIDE_BITS, WORDS_BITS, ConvConfig
from hw.conv.core.depthwise.place import TapLocator
from hw.conv.core.depthwise.tap_table import Tap
from hw.conv.core.layouts import SLOT_BITS, Offset, SamplePoint, TapCommand
from hw.lib.delay import delay


class TapPlace(data.StructLayout):
    """The position of a tap without its offset; fields as of `TapStep` and `Tap`."""

    def __init__(self) -> None:
        super().__init__(
            {
                "y": signed(COORDINATE_BITS),
                "x": signed(COORDINATE_BITS),
                "tap": Tap(),
                "word": WORDS_BITS,
                "free_row": SIDE_BITS,
                "free_slot": SLOT_BITS,
            }
        )


class Coordinates(wiring.Component):
    """Computes a sample's addresses in the four banks, and the weights of its neighbours.

    Behaviour
    ---------
    A sample a cycle.  The four neighbours lie in four banks: of two rows one is even and one odd, and so are
    the columns.  The address of a neighbour outside the map, or outside the rows in the line buffer, is
    undefined.

    Stages: three of `TapLocator`; distance from the first row in the line buffer; slot; rows and columns of
    the banks; three for their products with strides; sum.
    """

    LATENCY = 10

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        super().__init__(
            {
                "job": In(TapCommand(config)),  #: Constant while steps are in flight.
                "i": In(TapPlace()),
                "offset": In(Offset()),  #: Of the same cycle as ``i``.
                #: ``square``, ``free``: kind of the offset, see `hw.conv.core.layouts.Offsets`; neither:
                #: none.
                "square": In(1),
                "free": In(1),
                #: For bank ``2 * odd row + odd column``, `LATENCY` cycles after ``i``.
                "addresses": Out(range(config.bank_words)).array(4),
                "point": Out(SamplePoint(config)),  #: In the same cycle as ``addresses``.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the stages; every name ends in the stage of its register."""
        m = Module()
        config, job = self._config, self.job
        m.submodules.place = place = TapLocator(config)
        m.d.comb += [
            place.job.eq(job),
            place.y.eq(self.i.y),
            place.x.eq(self.i.x),
            place.tap.eq(self.i.tap),
            place.offset.eq(self.offset),
            place.square.eq(self.square),
            place.free.eq(self.free),
        ]
        free_row = delay(m, "free_row", self.i.free_row, 3, reset=False)
        free_slot = delay(m, "free_slot", self.i.free_slot, 4, reset=False)

        # 4: distance from the first row in the line buffer.
        distance = Signal(signed(SLOT_BITS + 1), reset_less=True)
        column = Signal(SIDE_BITS + 1, reset_less=True)
        odd_row = Signal(reset_less=True)
        m.d.sync += [distance.eq(place.row - free_row), column.eq(place.column), odd_row.eq(place.row[0])]

        # 5: slots of the rows, before they wrap.
        slots = [Signal(signed(SLOT_BITS + 2), name=f"slot_5_{n}", reset_less=True) for n in range(2)]
        m.d.sync += [slot.eq(free_slot + distance + n) for n, slot in enumerate(slots)]
        odd_row_5 = delay(m, "odd_row_5", odd_row, 1)
        column_5 = delay(m, "column_5", column, 1, reset=False)

        # 6: row and column of each neighbour in its bank.
        wrapped = []
        for slot in slots:
            value = Signal(SLOT_BITS, name=f"{slot.name}_wrapped")
            m.d.comb += value.eq(Mux(slot >= job.fill.slots, slot - job.fill.slots, slot))
            wrapped.append(value >> 1)
        bank_rows = [Signal(SLOT_BITS - 1, name=f"bank_row_6_{n}", reset_less=True) for n in range(2)]
        bank_columns = [Signal(SIDE_BITS, name=f"bank_column_6_{n}", reset_less=True) for n in range(2)]
        m.d.sync += [
            bank_rows[0].eq(Mux(odd_row_5, wrapped[1], wrapped[0])),
            bank_rows[1].eq(Mux(odd_row_5, wrapped[0], wrapped[1])),
            bank_columns[0].eq((column_5 + 1) >> 1),
            bank_columns[1].eq(column_5 >> 1),
        ]

        # 7 ... 9: products, in the registers of a multiplier.
        def product_9(name: str, value: Signal, stride: Any) -> Any:
            result = Signal(range(config.bank_words), name=f"{name}_8", reset_less=True)
            m.d.sync += result.eq(delay(m, f"{name}_7", value, 1, reset=False) * stride)
            return delay(m, f"{name}_9", result, 1, reset=False)

        row_products = [product_9(f"row_{n}", v, job.fill.row_words) for n, v in enumerate(bank_rows)]
        column_products = [product_9(f"column_{n}", v, job.fill.words) for n, v in enumerate(bank_columns)]
        word = delay(m, "word", self.i.word, 9, reset=False)

        # 10: addresses.
        for bank in range(4):
            m.d.sync += self.addresses[bank].eq(row_products[bank >> 1] + column_products[bank & 1] + word)
        point = self.point
        row_inside = delay(m, "row_inside_9", place.rows_inside, 5)
        column_inside = delay(m, "column_inside_9", place.columns_inside, 5)
        m.d.sync += [
            point.on.eq(delay(m, "on", self.i.tap.on, 9)),
            point.odd_row.eq(delay(m, "odd_row_9", odd_row, 5)),
            point.odd_column.eq(delay(m, "odd_column_9", column[0], 5)),
            point.inside.eq(Cat(row_inside[r] & column_inside[c] for r in range(2) for c in range(2))),
            point.ly.eq(delay(m, "ly_9", place.ly, 6, reset=False)),
            point.lx.eq(delay(m, "lx_9", place.lx, 6, reset=False)),
        ]
        if config.mask:
            m.d.sync += point.mask.eq(delay(m, "mask", self.offset.mask, 9, reset=False))
        return m
