"""Probability times value: the second array, which starts from zero for every tile of keys."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import PROBABILITY_BITS, RESCALE_BITS, AttentionConfig


class ValueUnit(wiring.Component):
    """One row's probabilities against one value a cycle.

    Parameters
    ----------
    config
        Shape of the engine.

    Members
    -------
    probability : In(17)
        0 when there is none.
    value : In(D x int8)
        Value of the same key.
    first, last : In(1)
        The key is the first, the last of its tile; both low when there is none.
    rise : In(6)
        Rise of the maximum with the tile, taken with its partial sums.
    step : In
        Which of the finished tile's ``merge_lanes`` lanes are on ``partial``.
    partial : Out(merge_lanes x signed)
        Partial sums ``sum_j p_j v_j[d]`` of the finished tile, lanes ``step * merge_lanes`` and on;
        combinational from ``step``.
    partial_sum : Out
        Sum of the finished tile's probabilities.
    finished_rise : Out(6)
        ``rise`` as it was for the finished tile.

    Behaviour
    ---------
    `LATENCY` cycles after ``last`` the finished tile changes; sums of the next tile never wait for it.

    Why
    ---
    A finished tile is copied to registers of its own, which the merge reads while the accumulators go on.
    """

    #: Cycles from the last key of a tile to its sums on ``partial``.
    LATENCY = 3

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                "probability": In(PROBABILITY_BITS),
                "value": In(data.ArrayLayout(signed(8), config.head_dim)),
                "first": In(1),
                "last": In(1),
                "rise": In(RESCALE_BITS),
                "step": In(config.step_bits),
                "partial": Out(data.ArrayLayout(signed(config.partial_bits), config.merge_lanes)),
                "partial_sum": Out(config.partial_sum_bits),
                "finished_rise": Out(RESCALE_BITS),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config = self._config
        first = Signal()
        last = Signal(2)
        probability = Signal(PROBABILITY_BITS, reset_less=True)
        total = Signal(config.partial_sum_bits, reset_less=True)
        m.d.sync += [
            first.eq(self.first),
            last.eq(Cat(self.last, last)),
            probability.eq(self.probability),
            total.eq(Mux(first, 0, total) + probability),
        ]
        with m.If(last[1]):
            m.d.sync += [self.partial_sum.eq(total), self.finished_rise.eq(self.rise)]

        finished = []
        for d in range(config.head_dim):
            # Where no key is, the product is 0: the accumulator needs no enable and maps to a DSP as it is.
            # All have the width of the sum, so that nothing is sign-extended again: additions are modulo.
            product = Signal(config.partial_bits, name=f"product_{d}", reset_less=True)
            accumulator = Signal(config.partial_bits, name=f"accumulator_{d}", reset_less=True)
            copy = Signal(config.partial_bits, name=f"finished_{d}", reset_less=True)
            m.d.sync += [
                product.eq(self.probability * self.value[d]),
                accumulator.eq(Mux(first, 0, accumulator) + product),
            ]
            with m.If(last[1]):
                m.d.sync += copy.eq(accumulator)
            finished.append(copy)
        with m.Switch(self.step):
            for step in range(config.merge_steps):
                with m.Case(step):
                    lanes = finished[step * config.merge_lanes : (step + 1) * config.merge_lanes]
                    m.d.comb += self.partial.as_value().eq(Cat(*lanes))
        return m
