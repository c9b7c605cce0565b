"""Final outputs times the reciprocal of their sum: int16 results."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import FRACTION_BITS, OUTPUT_BITS, SUM_BITS, AttentionConfig
from hw.attention.merge import FinalLanes
from hw.attention.reciprocal import RECIPROCAL_BITS, ZEROS_BITS
from hw.lib.fixed import floor_shift, saturate
from hw.lib.memory import uninitialised

#: Bits of x, the output brought to the scale of an 18-bit sum.
ALIGNED_BITS = 27
#: A sum with this many leading zeros has 18 bits: x is O itself.
_EVEN_ZEROS = SUM_BITS - 18
#: ``34 - g`` is at least 19: these places always go.
_FIXED_SHIFT = 18


class NormalizeStep(data.StructLayout):
    """One step of a normalization.

    Members
    -------
    valid : 1
    step
        Lanes ``step * merge_lanes`` and on; steps come in order, from 0.
    bank : 1
        Which half of the output buffer the results are for.
    fraction : 4
        g, fraction bits of the results.
    """

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__({"valid": 1, "step": config.step_bits, "bank": 1, "fraction": FRACTION_BITS})


class NormalLanes(data.StructLayout):
    """Results of some lanes: ``valid``, ``bank``, ``step`` and ``merge_lanes`` int16."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "valid": 1,
                "bank": 1,
                "step": config.step_bits,
                "lanes": data.ArrayLayout(signed(16), config.merge_lanes),
            }
        )


class Normalizer(wiring.Component):
    """Divides a row's final outputs by its sum.

    Parameters
    ----------
    config
        Shape of the engine.

    Members
    -------
    i : In(FinalLanes)
        Final outputs, kept until overwritten.
    control : In(NormalizeStep)
    zeros : In(6)
        Leading zeros of l, sampled with step 0.
    reciprocal : In(17)
        From `RECIPROCAL_SLACK` cycles after step 0 on, until as many after the last step.
    o : Out(NormalLanes)
        Results, `LATENCY` cycles after their step.

    Behaviour
    ---------
    Stages: read, align, round, multiply, shift, clamp: ``x = round(O, b - 18)`` (or a left shift),
    ``o = sat16((x r + 2^(33-g)) >> (34-g))``.  Lanes whose l is zero give zeros.
    """

    #: Cycles from a step to its results.
    LATENCY = 6
    #: Cycles from a step to the multiplication.
    RECIPROCAL_SLACK = 3

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(FinalLanes(config)),
                "control": In(NormalizeStep(config)),
                "zeros": In(ZEROS_BITS),
                "reciprocal": In(RECIPROCAL_BITS),
                "o": Out(NormalLanes(config)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config = self._config
        m.submodules.finals = finals = uninitialised(
            width=OUTPUT_BITS * config.merge_lanes, depth=config.merge_steps, ram_style="distributed"
        )
        put, get = finals.write_port(), finals.read_port()
        zeros = Signal(ZEROS_BITS, reset_less=True)
        with m.If(self.control.valid & (self.control.step == 0)):
            m.d.sync += zeros.eq(self.zeros)
        m.d.comb += [
            put.en.eq(self.i.valid),
            put.addr.eq(self.i.step),
            put.data.eq(self.i.lanes.as_value()),
            get.en.eq(self.control.valid),
            get.addr.eq(self.control.step),
        ]

        controls = [self.control]
        for n in range(Normalizer.LATENCY):
            following = Signal(NormalizeStep(config), name=f"control_{n + 1}")
            m.d.sync += following.eq(controls[-1])
            controls.append(following)
        shifting, result = controls[Normalizer.RECIPROCAL_SLACK + 1], controls[-1]
        m.d.comb += [
            self.o.valid.eq(result.valid),
            self.o.bank.eq(result.bank),
            self.o.step.eq(result.step),
        ]

        for lane in range(config.merge_lanes):
            output = get.data.word_select(lane, OUTPUT_BITS).as_signed()
            halves = Signal(signed(ALIGNED_BITS + 1), name=f"halves_{lane}", reset_less=True)
            aligned = Signal(signed(ALIGNED_BITS), name=f"aligned_{lane}", reset_less=True)
            product = Signal(signed(ALIGNED_BITS + RECIPROCAL_BITS), name=f"product_{lane}", reset_less=True)
            scaled = Signal(signed(len(product) - _FIXED_SHIFT), name=f"scaled_{lane}", reset_less=True)
            m.d.sync += [
                halves.eq(_halves(output, zeros)),
                aligned.eq((halves >> 1) + halves[0]),
                product.eq(aligned * self.reciprocal),
                # 15 - g places more; one bit below the result is left, and rounds in the next cycle.
                scaled.eq(floor_shift(product >> _FIXED_SHIFT, ~shifting.fraction)),
                self.o.lanes[lane].eq(saturate((scaled >> 1) + scaled[0], signed(16))),
            ]
        return m


def _halves(output: Value, zeros: Signal) -> Value:
    """Give x before rounding, and the bit below: ``output`` shifted as if to give its sum 18 bits."""
    doubled = Cat(0, output).as_signed()
    # 15 - zeros to the right, or zeros - 15 to the left; a zero sum (33 zeros) gives nothing.
    right = floor_shift(doubled, ~zeros[:4])
    left = doubled[: ALIGNED_BITS + 1].as_signed() << (zeros - _EVEN_ZEROS)[:5]
    return Mux(zeros == SUM_BITS, 0, Mux(zeros <= _EVEN_ZEROS, right, left))
