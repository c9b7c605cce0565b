"""Combination of the key streams: the largest maximum, and the sums of all streams rescaled to it."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import MAXIMUM_BITS, RESCALE_BITS, AttentionConfig
from hw.attention.core.result.finals import Final
from hw.lib.arithmetic.adder_tree import RADIX, adder_tree, tree_levels
from hw.lib.arithmetic.fixed import floor_shift, saturate
from hw.lib.arithmetic.requantize import doubled, rounded
from hw.lib.delay import delay


class Combine(wiring.Component):
    """Joins a row's sums of all streams.

    Behaviour
    ---------
    Lanes a cycle.  With one stream it is wiring, without latency.
    """

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(Final(config)).array(config.streams),
                "start": In(1),  #: Joins the sums and maxima on ``i``.
                "first": In(1),  #: The lanes of the next cycle are the first of a query tile.
                #: ``sum_s round(l_s, M - M_s)``, from `sum_latency` cycles after ``start`` until as many
                #: after the next ``start``.
                "total": Out(config.sum_bits),
                #: ``sum_s round(O_s, M - M_s)`` of the lanes `lane_latency` cycles ago, with the maxima
                #: joined last when ``first`` was high.
                "lanes": Out(data.ArrayLayout(signed(config.output_bits), config.merge_lanes)),
            }
        )

    @staticmethod
    def shift_latency(config: AttentionConfig) -> int:
        """Return the cycles from ``start`` until ``first`` may be high: capture, maximum, differences."""
        return 2 + tree_levels(config.streams) if config.streams > 1 else 0

    @staticmethod
    def sum_latency(config: AttentionConfig) -> int:
        """Return the cycles from ``start`` to the sum: shifts, rescaling, sum."""
        return Combine.shift_latency(config) + Combine.lane_latency(config)

    @staticmethod
    def lane_latency(config: AttentionConfig) -> int:
        """Return the cycles from lanes to their sum."""
        return 1 + tree_levels(config.streams) if config.streams > 1 else 0

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config = self._config
        if config.streams == 1:
            m.d.comb += [self.total.eq(self.i[0].total), self.lanes.eq(self.i[0].lanes)]
            return m

        # Sums and maxima, stage by stage behind `start`.
        levels = tree_levels(config.streams)
        starts = [self.start]
        for n in range(Combine.sum_latency(config)):
            starts.append(delay(m, f"start_{n}", starts[-1], 1))
        totals, maxima, shifts = [], [], []
        for n in range(config.streams):
            total = Signal(config.sum_bits, name=f"total_{n}", reset_less=True)
            maximum = Signal(signed(MAXIMUM_BITS), name=f"maximum_{n}", reset_less=True)
            with m.If(self.start):
                m.d.sync += [total.eq(self.i[n].total), maximum.eq(self.i[n].maximum)]
            totals.append(total)
            maxima.append(maximum)
        largest: list[Signal] = maxima
        for level in range(levels):
            largest = [
                self._largest(m, f"largest_{level}_{n}", largest[n : n + RADIX], starts[1 + level])
                for n in range(0, len(largest), RADIX)
            ]
        for n in range(config.streams):
            shift = Signal(RESCALE_BITS, name=f"shift_{n}", reset_less=True)
            with m.If(starts[1 + levels]):
                m.d.sync += shift.eq(saturate(largest[0] - maxima[n], RESCALE_BITS))
            shifts.append(shift)
        rescaled = [
            self._rescaled(m, f"total_{n}", totals[n], shifts[n], starts[2 + levels])
            for n in range(config.streams)
        ]
        enables = starts[3 + levels : 3 + 2 * levels]
        m.d.comb += self.total.eq(adder_tree(m, "total_sum", rescaled, config.sum_bits, enables=enables))

        # Lanes; the next query tile's maxima may arrive meanwhile.
        held = [Signal(RESCALE_BITS, name=f"held_{n}", reset_less=True) for n in range(config.streams)]
        with m.If(self.first):
            m.d.sync += [register.eq(shift) for register, shift in zip(held, shifts, strict=True)]
        for lane in range(config.merge_lanes):
            parts = [
                self._rescaled(m, f"lane_{lane}_{n}", self.i[n].lanes[lane], held[n], None)
                for n in range(config.streams)
            ]
            total = adder_tree(m, f"lane_{lane}_sum", parts, config.output_bits)
            m.d.comb += self.lanes[lane].eq(total)
        return m

    def _largest(self, m: Module, name: str, values: list[Signal], enable: Value) -> Signal:
        """Return the largest value, a cycle later."""
        best: Value = values[0]
        for n, value in enumerate(values[1:]):
            better = Signal(signed(MAXIMUM_BITS), name=f"{name}_of_{n + 2}")
            m.d.comb += better.eq(Mux(value > best, value, best))
            best = better
        register = Signal(signed(MAXIMUM_BITS), name=name, reset_less=True)
        with m.If(enable):
            m.d.sync += register.eq(best)
        return register

    def _rescaled(self, m: Module, name: str, value: Value, shift: Signal, enable: Value | None) -> Value:
        """Return ``round(value, shift)`` in the next cycle."""
        halves = Signal(doubled(value).shape(), name=f"{name}_halves", reset_less=True)
        with m.If(1 if enable is None else enable):
            m.d.sync += halves.eq(floor_shift(doubled(value), shift))
        return rounded(halves)
