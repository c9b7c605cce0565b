"""From a tap and its offset to the upper left of its four neighbours."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import COORDINATE_BITS, SIDE_BITS, ConvConfig
from hw.conv.core.depthwise.tap_table import Tap
from hw.conv.core.layouts import Offset, TapCommand
from hw.lib.delay import delay


class TapLocator(wiring.Component):
    """Computes the position of a sample, and whether its neighbours are in the map.

    Behaviour
    ---------
    A tap a cycle: product of a square offset; offset; coordinate; comparison of the whole part with the map.
    """

    LATENCY = 3

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        coordinate = signed(COORDINATE_BITS)
        super().__init__(
            {
                "job": In(TapCommand(config)),  #: Constant while taps are in flight.
                #: ``y``, ``x``: position of the upper left tap without offsets.
                "y": In(coordinate),
                "x": In(coordinate),
                #: ``tap``, ``offset``: of the same cycle.
                "tap": In(Tap()),
                "offset": In(Offset()),
                #: ``square``, ``free``: kind of the offset, see `hw.conv.core.layouts.Offsets`; neither:
                #: none.
                "square": In(1),
                "free": In(1),
                #: ``row``, ``column``: of the upper left neighbour, `LATENCY` cycles later.
                "row": Out(coordinate),
                "column": Out(coordinate),
                #: ``ly``, ``lx``: fraction of the coordinates, in the same cycle.
                "ly": Out(config.fraction_bits),
                "lx": Out(config.fraction_bits),
                #: ``rows_inside``, ``columns_inside``: a cycle later.  Bit 0: ``row``, or ``column``, is in
                #: the map.  Bit 1: so is the next one.
                "rows_inside": Out(2),
                "columns_inside": Out(2),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build both axes."""
        m = Module()
        size, tap, offset = self.job.fill, self.tap, self.offset
        place = self._axis(m, "y", self.y + tap.y, offset.dy, tap.i, size.rows, self.rows_inside)
        m.d.comb += Cat(self.ly, self.row).eq(place)
        place = self._axis(m, "x", self.x + tap.x, offset.dx, tap.j, size.columns, self.columns_inside)
        m.d.comb += Cat(self.lx, self.column).eq(place)
        return m

    def _axis(
        self, m: Module, name: str, start: Any, given: Any, centre: Any, limit: Any, inside: Any
    ) -> Signal:
        """Return the coordinate; every name ends in the stage of its register."""
        fraction = self._config.fraction_bits
        # 1, 2: the offset.  Square: a small product.
        product = Signal(signed(20), name=f"product_1_{name}", reset_less=True)
        base = Signal(signed(COORDINATE_BITS), name=f"base_1_{name}", reset_less=True)
        chosen = Signal(signed(20), name=f"offset_2_{name}", reset_less=True)
        given = delay(m, f"given_1_{name}", given, 1, reset=False)
        square, free = (
            delay(m, f"{kind}_1_{name}", flag, 1)
            for kind, flag in (("square", self.square), ("free", self.free))
        )
        m.d.sync += [
            # Square: the one offset of a pixel is its entry's dy.
            product.eq(self.offset.dy * centre),
            base.eq(start),
            chosen.eq(Mux(square, product, Mux(free, given, 0))),
        ]
        # 3: the coordinate.
        place = Signal(signed(COORDINATE_BITS + fraction), name=f"place_3_{name}", reset_less=True)
        m.d.sync += place.eq((delay(m, f"base_2_{name}", base, 1, reset=False) << fraction) + chosen)
        # 4: comparison with the edges of the map.
        whole = place >> fraction
        last = Signal(SIDE_BITS, name=f"last_{name}")
        flags = Signal(2, name=f"inside_4_{name}", reset_less=True)
        m.d.sync += [
            last.eq(limit - 1),
            flags.eq(Cat((whole >= 0) & (whole <= last), (whole >= -1) & (whole < last))),
        ]
        m.d.comb += inside.eq(flags)
        return place
