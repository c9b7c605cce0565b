"""Value unit: partial sums of probability times value, from zero for every key tile."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import MAXIMUM_BITS, RESCALE_BITS, AttentionConfig
from hw.lib.arithmetic.packed import FACTOR_BITS, WORD_BITS, pack, split
from hw.lib.memory import uninitialised

#: Lanes whose accumulators share registers of the step: each bit of these has some 150 loads.
_STEP_LANES = 2
#: Lanes of a RAM of finished sums, and bits of these that share a register of the merge's step; likewise.
_RAM_LANES, _MERGE_BITS = 8, 17


class ValueStep(data.StructLayout):
    """A probability meets a part of its value.

    Members
    -------
    part
        Which part: its lanes are ``part * D`` and on of the value.
    first, ends : 1
        The key is the first, the last of its tile.
    last : 1
        The part is the last of the last key of its tile.
    """

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__({"part": range(config.folds), "first": 1, "ends": 1, "last": 1})


def factor_layout(config: AttentionConfig) -> data.ArrayLayout:
    """Give the layout of a part of a value as the multipliers take it: one lane each, or two packed."""
    if config.packs_values:
        return data.ArrayLayout(signed(FACTOR_BITS), config.lanes // 2)
    return data.ArrayLayout(signed(8), config.lanes)


def factors(config: AttentionConfig, value: Any) -> Value:
    """Give a part of a value, D x int8, as `factor_layout` has it."""
    if not config.packs_values:
        return value.as_value()
    return Cat(*(pack(value[d + 1], value[d]) for d in range(0, config.lanes, 2)))


class ValueUnit(wiring.Component):
    """One row's probabilities against one part of a value a cycle.

    Parameters
    ----------
    config
        Shape of the engine.

    Members
    -------
    probability : In(B + 1)
        The same for all parts of a value; 0 when there is none.
    value : In(factor_layout)
        Part of the value of the same key.
    step : In(ValueStep)
        ``ends`` and ``last`` are low when there is none.
    rise : In(6)
        Rise of the maximum with the tile, taken with its partial sums.
    reached : In(signed(13))
        The maximum with the tile, likewise; with several streams only.
    merge_step : In
        Which of the finished tile's ``merge_lanes`` lanes are on ``partial`` in the next cycle.
    partial : Out(merge_lanes x signed)
        Partial sums ``sum_j p_j v_j[d]`` of the finished tile, lanes ``merge_step * merge_lanes`` and on.
    partial_sum : Out
        Sum of the finished tile's probabilities.
    finished_rise : Out(6), finished_reached : Out(signed(13))
        ``rise`` and ``reached`` as they were for the finished tile.

    Behaviour
    ---------
    `LATENCY` cycles after ``last`` the finished tile changes; sums of the next tile never wait for it.

    Why
    ---
    Sums of a tile's last key go to a small RAM with room for two tiles, which the merge reads while the
    accumulators go on.  One adder a lane serves all parts, as only one of them comes in a cycle.  What says
    which part and which lanes goes through many equal registers: one would have thousands of loads.
    """

    #: Cycles from the last part of a tile to its sums on ``partial``.
    LATENCY = 3

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                "probability": In(config.probability_width),
                "value": In(factor_layout(config)),
                "step": In(ValueStep(config)),
                "rise": In(RESCALE_BITS),
                "reached": In(signed(MAXIMUM_BITS)),
                "merge_step": In(range(config.merge_steps)),
                "partial": Out(data.ArrayLayout(signed(config.partial_bits), config.merge_lanes)),
                "partial_sum": Out(config.partial_sum_bits),
                "finished_rise": Out(RESCALE_BITS),
                "finished_reached": Out(signed(MAXIMUM_BITS)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config = self._config
        step = Signal(ValueStep(config))
        finish = Signal()
        probability = Signal(config.probability_width, reset_less=True)
        total = Signal(config.partial_sum_bits, reset_less=True)
        # Equal registers, which are not to become one.
        steps = [
            Signal(ValueStep(config), name=f"step_{d}", attrs={"keep": 1})
            for d in range(0, config.lanes, _STEP_LANES)
        ]
        m.d.sync += [step.eq(self.step), finish.eq(step.last), probability.eq(self.probability)]
        m.d.sync += [own.eq(self.step) for own in steps]
        with m.If(step.part == 0):
            m.d.sync += total.eq(Mux(step.first, 0, total) + probability)
        with m.If(finish):
            m.d.sync += [self.partial_sum.eq(total), self.finished_rise.eq(self.rise)]
            if config.streams > 1:
                m.d.sync += self.finished_reached.eq(self.reached)

        # Where no key is, the product is 0: the accumulator needs no enable for it.
        sums = []
        for d, product in enumerate(self._products(m)):
            own = steps[d // _STEP_LANES]
            banks = [self._register(f"accumulator_{part}_{d}") for part in range(config.folds)]
            before: Value = banks[0]
            for part in range(1, config.folds):
                before = Mux(own.part == part, banks[part], before)
            result = Signal(config.partial_bits, name=f"sum_{d}")
            m.d.comb += result.eq(Mux(own.first, 0, before) + product)
            for part, bank in enumerate(banks):
                # An expression, not a condition: simulators then write these many registers only once.
                m.d.sync += bank.eq(result if config.folds == 1 else Mux(own.part == part, result, bank))
            sums.append(result)
        self._finish(m, steps, sums)
        return m

    def _finish(self, m: Module, steps: list[Signal], sums: list[Signal]) -> None:
        """Keep the sums of the last keys of two tiles; give the lanes of a step of the earlier one."""
        config = self._config
        data: list[Value] = []
        for first in range(0, config.lanes, _RAM_LANES):
            own, name = steps[first // _STEP_LANES], f"{first}"
            # Of the tile that comes in; `coming` changes at `LATENCY`.
            half, coming = (Signal(name=f"{what}_{name}", attrs={"keep": 1}) for what in ("half", "coming"))
            m.d.sync += coming.eq(half)
            with m.If(own.last):
                m.d.sync += half.eq(~half)
            lanes = sums[first : first + _RAM_LANES]
            m.submodules[f"finished_{name}"] = finished = uninitialised(
                width=config.partial_bits * len(lanes), depth=2 * config.folds, ram_style="distributed"
            )
            put, get = finished.write_port(), finished.read_port(domain="comb")
            part = Signal(range(config.folds), name=f"part_{name}")
            with m.Switch(self._merge_step(m, f"address_{name}")):
                for n in range(config.folds):
                    with m.Case(*range(n * config.part_steps, (n + 1) * config.part_steps)):
                        m.d.comb += part.eq(n)
            m.d.comb += [
                put.en.eq(own.ends),
                put.addr.eq(Cat(half, own.part)),
                put.data.eq(Cat(*lanes)),
                get.addr.eq(Cat(~coming, part)),
            ]
            data.append(get.data)
        finished_sums, bits = Cat(*data), config.partial_bits * config.merge_lanes
        partial = self.partial.as_value()
        for low in range(0, bits, _MERGE_BITS):
            high = min(bits, low + _MERGE_BITS)
            with m.Switch(self._merge_step(m, f"lanes_{low}")):
                for n in range(config.part_steps):
                    with m.Case(*range(n, config.merge_steps, config.part_steps)):
                        m.d.comb += partial[low:high].eq(finished_sums[n * bits + low : n * bits + high])

    def _merge_step(self, m: Module, name: str) -> Signal:
        """Give a register of the merge's step for some of its loads."""
        step = Signal(range(self._config.merge_steps), name=name, reset_less=True, attrs={"keep": 1})
        m.d.sync += step.eq(self.merge_step)
        return step

    def _products(self, m: Module) -> list[Value]:
        """Multiply; give a product a lane in the next cycle.

        A product that is not packed has the width of the sum, so that nothing is sign-extended again:
        additions are modulo.
        """
        width = WORD_BITS if self._config.packs_values else self._config.partial_bits
        products: list[Value] = []
        for n in range(len(self.value)):
            product = Signal(width, name=f"product_{n}", reset_less=True)
            m.d.sync += product.eq(self.probability * self.value[n])
            if self._config.packs_values:
                high, low = split(product)
                products += [low, high]
            else:
                products.append(product)
        return products

    def _register(self, name: str) -> Signal:
        return Signal(self._config.partial_bits, name=name, reset_less=True)
