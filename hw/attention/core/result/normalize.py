"""Normalization: a row's output times the reciprocal of its sum."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import RESULT_BANKS, AttentionConfig
from hw.attention.core.result.reciprocal import MOST_ZEROS, RECIPROCAL_BITS, zeros_bits
from hw.attention.core.scale import OutputScale
from hw.lib.arithmetic.bfloat16 import BFloat16
from hw.lib.arithmetic.fixed import floor_shift
from hw.lib.arithmetic.requantize import doubled, requantize, rounded

#: Bits of z, the output at the scale of an 18-bit sum.
ALIGNED_BITS = 27
#: Bits of z times the reciprocal.
PRODUCT_BITS = ALIGNED_BITS + RECIPROCAL_BITS
#: Bits that every integer result drops at least.
_LEAST_SHIFT = 19


class NormalizeStep(data.StructLayout):
    """One step of a normalization."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "valid": 1,
                #: Lanes from ``step * merge_lanes`` on; steps rise from 0 and end with the lanes in use.
                "step": range(config.merge_steps),
                "bank": range(RESULT_BANKS),  #: Bank of the output buffer.
                "scale": OutputScale(config),
            }
        )


class NormalLanes(data.StructLayout):
    """Results of some lanes: ``valid``, ``bank``, ``step`` and ``merge_lanes`` of them, as bits."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "valid": 1,
                "bank": range(RESULT_BANKS),
                "step": range(config.merge_steps),
                "lanes": data.ArrayLayout(config.result_bits, config.merge_lanes),
            }
        )


class Normalizer(wiring.Component):
    """Divides a row's final outputs by its sum.

    Behaviour
    ---------
    Stages: align, round, multiply; then shift and clamp for integers, or those of `BFloat16`.  Lanes whose l
    is zero are zero.
    """

    #: Cycles from a step to the multiplication.
    RECIPROCAL_SLACK = 3

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                #: Final outputs of the step a cycle ago.
                "i": In(data.ArrayLayout(signed(config.output_bits), config.merge_lanes)),
                "control": In(NormalizeStep(config)),
                "zeros": In(zeros_bits(config)),  #: Leading zeros of l, sampled with step 0.
                #: From `RECIPROCAL_SLACK` cycles after step 0 until as many after the last step.
                "reciprocal": In(RECIPROCAL_BITS),
                "o": Out(NormalLanes(config)),  #: Results, `latency` cycles after their step.
                "cut": Out(config.merge_lanes),  #: The lanes of ``o`` that were clamped.
            }
        )

    @staticmethod
    def latency(config: AttentionConfig) -> int:
        """Return the cycles from a step to its results."""
        product = Normalizer.RECIPROCAL_SLACK + 1
        return product + (BFloat16.LATENCY if config.output == "bfloat16" else 2)

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config = self._config
        zeros = Signal(zeros_bits(config), reset_less=True)
        with m.If(self.control.valid & (self.control.step == 0)):
            m.d.sync += zeros.eq(self.zeros)

        controls = [self.control]
        for n in range(Normalizer.latency(config)):
            following = Signal(NormalizeStep(config), name=f"control_{n + 1}")
            m.d.sync += following.eq(controls[-1])
            controls.append(following)
        multiplied, result = controls[Normalizer.RECIPROCAL_SLACK + 1], controls[-1]
        m.d.comb += [
            self.o.valid.eq(result.valid),
            self.o.bank.eq(result.bank),
            self.o.step.eq(result.step),
        ]

        for lane in range(config.merge_lanes):
            halves = Signal(signed(ALIGNED_BITS + 1), name=f"halves_{lane}", reset_less=True)
            aligned = Signal(signed(ALIGNED_BITS), name=f"aligned_{lane}", reset_less=True)
            m.d.sync += [halves.eq(self._halves(self.i[lane], zeros)), aligned.eq(rounded(halves))]
            m.d.comb += self.o.lanes[lane].eq(self._result(m, lane, aligned, multiplied.scale))
        return m

    def _halves(self, output: Value, zeros: Signal) -> Value:
        """Return z before rounding, with one bit below: ``output``, shifted as its sum is to 18 bits."""
        even = self._config.sum_bits - 18
        twice = doubled(output)
        # Right by even - zeros, or left by zeros - even; a zero sum makes 0.
        shifted = floor_shift(twice, (even - zeros)[: even.bit_length()])
        if even < MOST_ZEROS:
            more = (zeros - even)[: (MOST_ZEROS - even).bit_length()]
            left = twice[: ALIGNED_BITS + 1].as_signed() << more
            shifted = Mux(zeros <= even, shifted, left)
        return Mux(zeros == self._config.sum_bits, 0, shifted)

    def _result(self, m: Module, lane: int, aligned: Signal, scale: Any) -> Value:
        """Multiply by the reciprocal; convert the product to the results' scale and format."""
        config = self._config
        if config.output == "bfloat16":
            product = Signal(signed(PRODUCT_BITS), name=f"product_{lane}", reset_less=True)
            m.d.sync += product.eq(aligned * self.reciprocal)
            m.submodules[f"bfloat16_{lane}"] = convert = BFloat16(PRODUCT_BITS)
            m.d.comb += [convert.i.eq(product), convert.shift.eq(scale.shift)]
            return convert.o
        # int16 drops 34 - g bits, int8 s_o.
        shift = ~scale.fraction if config.output == "int16" else (scale.shift - _LEAST_SHIFT)[:5]
        cut = Signal(name=f"cut_{lane}", reset_less=True)
        m.d.comb += self.cut[lane].eq(cut)
        return requantize(
            m,
            aligned,
            self.reciprocal,
            shift,
            signed(config.result_bits),
            names=(f"product_{lane}", f"scaled_{lane}", f"result_{lane}"),
            least_shift=_LEAST_SHIFT,
            cut=cut,
        )
