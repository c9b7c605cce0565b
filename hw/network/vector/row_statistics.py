"""Sum and sum of squares of each pixel, gathered tile by tile."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.adder_tree import adder_tree, tree_levels
from hw.lib.delay import delay
from hw.lib.memory import ports, uninitialised
from hw.network.normalization import SQUARES_BITS, SUM_BITS
from hw.network.vector.wide_lanes import GRANULE_SQUARES_BITS, GRANULE_SUM_BITS


class RowSums(data.StructLayout):
    """The sums of a pixel."""

    def __init__(self) -> None:
        super().__init__({"sum": signed(SUM_BITS), "squares": SQUARES_BITS})


class RowStatistics(wiring.Component):
    """Adds up the words of each pixel.

    ``rows``: pixels. ``parts``: granules of a word.

    Behaviour
    ---------
    A word a cycle.  A pixel has at least two words in each tile, one after the other.  The pixels come in the
    same order in each tile.  In the last tile the sums leave, one for each pixel, `latency` cycles after the
    pixel's last word.

    Why
    ---
    A pixel's sums are read a cycle before its first word and written a cycle after its last one.  So two
    pixels of two words each are enough to find what was written.  A single one stays in the registers.
    """

    def __init__(self, rows: int, parts: int) -> None:
        self._rows = rows
        self._parts = parts
        super().__init__(
            {
                "step": In(1),
                "first": In(1),  #: First word of its pixel in this tile.
                "last": In(1),
                "begins": In(1),  #: The first tile.
                "ends": In(1),  #: The last tile.
                "single": In(1),  #: There is one pixel only.
                "row": In(range(rows)),
                #: ``sums``, ``squares``: of granules, with the step.
                "sums": In(data.ArrayLayout(signed(GRANULE_SUM_BITS), parts)),
                "squares": In(data.ArrayLayout(GRANULE_SQUARES_BITS, parts)),
                "o_valid": Out(1),
                "o_row": Out(range(rows)),
                "o": Out(RowSums()),
            }
        )

    @staticmethod
    def latency(parts: int) -> int:
        """Return the cycles from a step to its pixel's sums."""
        return _stages(parts) + 1

    def elaborate(self, platform: Any) -> Module:
        """Sums of a word -> sums of the pixel -> RAM."""
        m = Module()
        stages, parts = _stages(self._parts), range(self._parts)
        rest = stages - tree_levels(self._parts)
        total = delay(
            m,
            "total",
            adder_tree(m, "sums", [self.sums[n] for n in parts], GRANULE_SUM_BITS + 2),
            rest,
            reset=False,
        )
        squares = delay(
            m,
            "total_squares",
            adder_tree(
                m, "squares", [self.squares[n] for n in parts], GRANULE_SQUARES_BITS + 2
            ).as_unsigned(),
            rest,
            reset=False,
        )
        names = ("first", "last", "begins", "ends")
        flags = Cat(self.step, *(getattr(self, name) for name in names))
        early = Signal(len(flags) + len(self.row))
        m.d.comb += early.eq(Cat(flags, self.row))
        late = delay(m, "flags", early, stages)
        step, first, last, begins, ends = (late[n] for n in range(len(flags)))
        row = late[len(flags) :]
        # The RAM's address is a cycle ahead of the words.
        ahead = delay(m, "row_ahead", self.row, stages - 1, reset=False)
        m.submodules.ram = ram = uninitialised(width=RowSums().size, depth=self._rows, ram_style="block")
        write, read = ports(ram)
        found = data.View(RowSums(), read.data)
        sums = {"sum": total, "squares": squares}
        held = {name: Signal(RowSums().members[name], name=f"pixel_{name}", reset_less=True) for name in sums}
        m.d.comb += [read.en.eq(1), read.addr.eq(ahead)]
        for name, word in sums.items():
            before = Signal(held[name].shape(), name=f"before_{name}")
            m.d.comb += before.eq(
                Mux(first, Mux(begins, 0, Mux(self.single, held[name], found[name])), held[name])
            )
            with m.If(step):
                m.d.sync += held[name].eq(before + word)
        complete = Signal()
        leaves = Signal()
        written = Signal(range(self._rows), reset_less=True)
        m.d.sync += [complete.eq(step & last & ~ends), leaves.eq(step & last & ends), written.eq(row)]
        m.d.comb += [
            write.en.eq(complete),
            write.addr.eq(written),
            write.data.eq(Cat(held["sum"], held["squares"])),
            self.o_valid.eq(leaves),
            self.o_row.eq(written),
            self.o.sum.eq(held["sum"]),
            self.o.squares.eq(held["squares"]),
        ]
        return m


def _stages(parts: int) -> int:
    """Return the cycles from a step to its word's sums."""
    return max(1, tree_levels(parts))
