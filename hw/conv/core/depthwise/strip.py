"""Plain depthwise 3 x 3: nine products a lane and word."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import ConvConfig
from hw.conv.core.depthwise.lane_ram import STRIP_TAPS
from hw.conv.core.layouts import StripPoint
from hw.lib.arithmetic.adder_tree import adder_tree, tree_levels
from hw.lib.delay import delay
from hw.lib.memory import ports, uninitialised


class Strip(wiring.Component):
    """A window of three columns that moves along three rows of the map.

    Behaviour
    ---------
    The words of a step are the right column of the window; the middle column is delayed by ``span`` steps,
    the left one by twice as many.  Pixels outside the map add nothing.  Each row of results begins at the
    first place of the delay lines, so that no row, and no layer, depends on the previous one.

    Stages: rows in their places; columns; difference to the zero point; product; two of sums.
    """

    #: Cycles from ``words`` to ``weights``.
    WEIGHTS_AT = 3

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        weights = data.ArrayLayout(config.weight_bits, STRIP_TAPS)
        super().__init__(
            {
                "words": In(8 * config.cell_lanes).array(4),  #: The lanes of the cell, from each bank.
                "valid": In(1),  #: They are the next step of a strip.
                "point": In(StripPoint(config)),
                "zero": In(signed(8)),
                #: Weights row by row, `WEIGHTS_AT` cycles after ``words``.
                "weights": In(weights).array(config.cell_lanes),
                #: Signed sums of nine products, `latency` cycles after ``words``.
                "o": Out(signed(9 + config.weight_bits + 4)).array(config.cell_lanes),
            }
        )

    @classmethod
    def latency(cls) -> int:
        """Return the cycles from ``words`` to ``o``."""
        return cls.WEIGHTS_AT + 1 + tree_levels(STRIP_TAPS)

    def elaborate(self, platform: Any) -> Module:
        """Build the stages."""
        m = Module()
        config, point = self._config, self.point
        lanes = config.cell_lanes
        # 1: rows.
        right = [Signal(8 * lanes, name=f"right_1_{r}", reset_less=True) for r in range(3)]
        m.d.sync += [word.eq(Array(self.words)[point.banks[r]]) for r, word in enumerate(right)]
        valid = delay(m, "valid_1", self.valid, 1)
        begins = delay(m, "begins_1", point.begins, 1)
        span = delay(m, "span_1", point.span, 1, reset=False)

        # 2: columns: two rings of ``span`` words; each place is read, then written.
        place = Signal(range(config.strip_words))
        with m.If(begins):
            m.d.sync += place.eq(0)
        with m.Elif(valid):
            m.d.sync += place.eq(Mux(place + 1 == span, 0, place + 1))
        columns = [right]
        for name in ("middle", "left"):
            ring = uninitialised(width=24 * lanes, depth=config.strip_words, ram_style="distributed")
            m.submodules[name] = ring
            write, read = ports(ring, domain="comb")
            m.d.comb += [
                write.en.eq(valid),
                write.addr.eq(place),
                write.data.eq(Cat(columns[-1])),
                read.addr.eq(place),
            ]
            columns.append([read.data.word_select(r, 8 * lanes) for r in range(3)])
        window = []
        for r in range(3):
            for c, column in enumerate(reversed(columns)):
                word = Signal(8 * lanes, name=f"window_2_{r}_{c}", reset_less=True)
                m.d.sync += word.eq(column[r])
                window.append(word)
        inside = Signal(STRIP_TAPS, reset_less=True)
        m.d.sync += inside.eq(Cat(point.rows[r] & point.columns[c] for r in range(3) for c in range(3)))
        inside = delay(m, "inside_2", inside, 1, reset=False)
        zero = delay(m, "zero_2", self.zero, 2, reset=False)

        # 3, 4, and the tree: products of the differences.
        for lane in range(lanes):
            products = []
            for n, word in enumerate(window):
                difference = Signal(signed(9), name=f"difference_3_{lane}_{n}", reset_less=True)
                product = Signal(
                    signed(9 + config.weight_bits), name=f"product_4_{lane}_{n}", reset_less=True
                )
                m.d.sync += [
                    difference.eq(Mux(inside[n], word.word_select(lane, 8).as_signed() - zero, 0)),
                    product.eq(difference * self.weights[lane][n].as_signed()),
                ]
                products.append(product)
            total = adder_tree(m, f"sum_{lane}", products, len(self.o[lane]))
            m.d.comb += self.o[lane].eq(total)
        return m
