"""From final sums to results: the cell that the core places for every two rows, behind all their streams."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.attention.core.result.combine import Combine
from hw.attention.core.result.finals import Final
from hw.attention.core.result.normalize import Normalizer, NormalizeStep
from hw.attention.core.result.output import OutputBuffer, OutputRead
from hw.attention.core.result.reciprocal import Divide, Reciprocal
from hw.lib.delay import delay


class ResultControl(data.StructLayout):
    """What all rows do with their final sums in a cycle, each member for its stage.

    The stages' times are those of `hw.attention.core.row.cell.Timing`.

    Members
    -------
    combine : 1
        With several streams only: all have the sums of a query tile ready, in the bank that ``sum_bank`` of
        their `RowControl` gives in the same cycle.
    divide : Divide
        Start of the reciprocal, see `Reciprocal`.
    normalize : NormalizeStep
        See `Normalizer`; ``final`` of the streams' `RowControl` reads the lanes in the same cycle.
    drain : OutputRead
        See `OutputBuffer`.
    """

    def __init__(self, config: AttentionConfig, beat_width: int) -> None:
        super().__init__(
            {
                "combine": 1,
                "divide": Divide(config),
                "normalize": NormalizeStep(config),
                "drain": OutputRead(config, beat_width),
            }
        )


class ResultRows(wiring.Component):
    """Results of one or two query rows.

    Parameters
    ----------
    config
        Shape of the engine.
    rows
        1 or 2: see `hw.attention.core.row.cell.row_cells`.
    beat_width
        Bits of an output beat.

    Members
    -------
    control : In(ResultControl)
        The same for all rows.
    i : In(Final) array of streams, of rows
        What each stream's `hw.attention.core.row.cell.AttentionRows` gives.
    o : Out(beat_width) array of rows
        See `OutputBuffer`; a cycle later, since ``control`` goes through a register.
    """

    def __init__(self, config: AttentionConfig, *, rows: int, beat_width: int) -> None:
        self._config = config
        self._rows = rows
        self._beat_width = beat_width
        super().__init__(
            {
                "control": In(ResultControl(config, beat_width)),
                "i": In(Final(config)).array(config.streams, rows),
                "o": Out(beat_width).array(rows),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Join the units."""
        m = Module()
        config = self._config
        control = delay(m, "control", self.control, 1)  # as late as the rows' own
        steps = delay(m, "normalize", control.normalize, Combine.lane_latency(config))
        for row in range(self._rows):
            m.submodules[f"combine_{row}"] = combine = Combine(config)
            m.submodules[f"reciprocal_{row}"] = reciprocal = Reciprocal(config)
            m.submodules[f"normalizer_{row}"] = normalizer = Normalizer(config)
            m.submodules[f"output_{row}"] = output = OutputBuffer(config, beat_width=self._beat_width)
            m.d.comb += [combine.i[n].eq(self.i[n][row]) for n in range(config.streams)]
            m.d.comb += [
                combine.start.eq(control.combine),
                combine.first.eq(control.normalize.valid & (control.normalize.step == 0)),
                reciprocal.i.eq(combine.total),
                reciprocal.start.eq(control.divide),
                normalizer.i.eq(combine.lanes),
                normalizer.control.eq(steps),
                normalizer.zeros.eq(reciprocal.zeros),
                normalizer.reciprocal.eq(reciprocal.o),
                output.i.eq(normalizer.o),
                output.read.eq(control.drain),
                self.o[row].eq(output.o),
            ]
        return m
