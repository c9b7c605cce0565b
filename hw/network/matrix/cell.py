"""Two columns of the matrix array: weights at rest, dot products, sums in a memory, results."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.adder_tree import tree_levels
from hw.lib.arithmetic.chosen import chosen
from hw.lib.arithmetic.dsp import packed_product
from hw.lib.arithmetic.float_scale import (
    EXPONENT_AT,
    FACTOR_AT,
    FLOAT_SCALE_LATENCY,
    SUM_BITS,
    ZERO_AT,
    float_scale,
)
from hw.lib.arithmetic.packed import INT8_SUMS
from hw.lib.arithmetic.packed_sum import packed_sums, with_carry
from hw.lib.memory import ports, uninitialised
from hw.network.matrix.config import BEAT_BITS, BEAT_INPUTS, CELL_COLUMNS, RESULT_BITS, MatrixConfig
from hw.network.matrix.layouts import (
    PARAMETER_BEATS,
    ScaleBeat,
    SumControl,
    WeightBeat,
    ZeroBeat,
    packet_beats,
)


class Chains:
    """The inputs of a cell on chains of multipliers, each of which adds to the word of the one before.

    Lane n of a chain works n cycles after lane 0.  Words have room for the products of seven lanes.  The
    first inputs lie in the last lane; shorter chains have no first lane.
    """

    def __init__(self, inputs: int) -> None:
        self.chains = -(-inputs // INT8_SUMS)
        self.lanes = -(-inputs // self.chains)
        self._inputs = inputs

    def lane(self, i: int) -> int:
        """Return the lane of an input."""
        return self.lanes - 1 - i // self.chains

    def of_chain(self, chain: int) -> list[int]:
        """Return the inputs of a chain, that of its first lane first."""
        return [*reversed(range(chain, self._inputs, self.chains))]


class MatrixCell(wiring.Component):
    """Two columns of the array.

    Behaviour
    ---------
    A pixel a cycle, the same one again after `INTERVAL` cycles at the earliest.  In cycle 0 a pixel's first
    inputs arrive, those of lane 0 (`Chains`); those of lane n arrive n cycles later.

    A tile's beats are loaded while the one before is used.  It is used itself from its first pixel on, and
    the next beats may come.  In cycle n of this pixel one of weights for lane n may come, in cycle
    `parameters_at` one of parameters.
    """

    #: From the read of a sum to the next read that finds it.
    INTERVAL = 3

    def __init__(self, config: MatrixConfig) -> None:
        self._config = config
        super().__init__(
            {
                "x": In(8 * config.inputs),  #: Inputs of a pixel, the first one lowest, lane by lane.
                #: Bit n: the pixel that comes to lane n in the next cycle is the first of a tile.
                "adopt": In(Chains(config.inputs).lanes),
                #: ``read`` and ``first`` in cycle `read_at`, ``parameters`` and ``shift`` a cycle before,
                #: ``write`` and ``pixel`` in cycle `sum_at`.
                "control": In(SumControl(config)),
                #: A bit for each beat of a packet: it is on ``beat`` in the next cycle.
                "strobes": In(packet_beats(config, parameters=True)),
                "beat": In(BEAT_BITS),
                "o": Out(signed(RESULT_BITS)).array(CELL_COLUMNS),  #: Results, in cycle `latency`.
            }
        )

    @staticmethod
    def dot_at(config: MatrixConfig) -> int:
        """Return the cycle of a pixel's dot products: four of a slice, a lane each, the tree, a shift."""
        chains = Chains(config.inputs)
        return 4 + chains.lanes - 1 + tree_levels(chains.chains) + 1

    @staticmethod
    def read_at(config: MatrixConfig) -> int:
        """Return the cycle in which the sum of earlier tiles is read."""
        return MatrixCell.dot_at(config) - 1

    @staticmethod
    def sum_at(config: MatrixConfig) -> int:
        """Return the cycle of a pixel's sums."""
        return MatrixCell.dot_at(config) + 1

    @staticmethod
    def latency(config: MatrixConfig) -> int:
        """Return the cycle of a pixel's results."""
        return MatrixCell.sum_at(config) + FLOAT_SCALE_LATENCY

    @staticmethod
    def parameters_at(config: MatrixConfig) -> int:
        """Return the cycle from which on loaded parameters may change: the multiplier is taken last."""
        return MatrixCell.sum_at(config) + FACTOR_AT + 1

    def elaborate(self, platform: Any) -> Module:
        """Connect weights, sums and scales."""
        m = Module()
        config = self._config
        strobes = Signal(len(self.strobes), reset_less=True)
        m.d.sync += strobes.eq(self.strobes)
        weights = self._weights(m, strobes[: config.weight_beats])
        adopt = Signal(len(self.adopt), reset_less=True)
        m.d.sync += adopt.eq(self.adopt)
        chains = range(Chains(config.inputs).chains)
        words = [self._chain(m, platform, chain, weights, adopt) for chain in chains]
        high, carry, low = packed_sums(m, "dots", words)
        # Bit n: n cycles after the first pixel's dot products come next.
        begins = Signal(2 + ZERO_AT, reset_less=True)
        m.d.sync += begins.eq(Cat(self.control.parameters, begins))
        scales, zeros = self._loaded(m, strobes[config.weight_beats :])
        biases = []
        for n in range(CELL_COLUMNS):
            bias = Signal(signed(SUM_BITS), name=f"bias_{n}", reset_less=True)
            with m.If(begins[0]):
                m.d.sync += bias.eq(scales[n].bias)
            biases.append(bias)
        # Column 0 is the low field.
        dots = [self._shifted(m, n, *dot) for n, dot in enumerate([(low, None), (high, carry)])]
        totals = self._sums(m, dots, biases)
        for n, total in enumerate(totals):
            exponent, zero = self._late(m, n, scales[n].exponent, zeros[n], begins)
            result = float_scale(
                m,
                platform,
                f"scale_{n}",
                total,
                multiplier=scales[n].multiplier,
                load=begins[2 + FACTOR_AT],
                exponent=exponent,
                zero=zero,
                bits=RESULT_BITS,
            )
            m.d.comb += self.o[n].eq(result)
        return m

    def _weights(self, m: Module, strobes: Value) -> list[list[Value]]:
        """Hold the weights of the next tile as they arrive; return those of each input."""
        inputs = self._config.inputs
        beat = data.View(WeightBeat(), self.beat)
        loaded = [Signal(8 * inputs, name=f"loaded_{n}", reset_less=True) for n in range(CELL_COLUMNS)]
        for n in range(len(strobes)):
            last = 8 * (inputs - BEAT_INPUTS * n)
            with m.If(strobes[n]):
                for column, weights in enumerate(loaded):
                    m.d.sync += weights[last - 8 * BEAT_INPUTS : last].eq(beat[column])
        return [[weights.word_select(i, 8).as_signed() for weights in loaded] for i in range(inputs)]

    def _chain(self, m: Module, platform: Any, chain: int, weights: list[list[Value]], adopt: Value) -> Value:
        """Make a chain of multipliers, whose lanes take weights with ``adopt``; return its last word."""
        chains = Chains(self._config.inputs)
        members = chains.of_chain(chain)
        word = None
        for i in members:
            word = packed_product(
                m,
                platform,
                f"word_{i}",
                high=weights[i][1],
                low=weights[i][0],
                load=adopt[chains.lane(i)],
                shared=self.x.word_select(i, 8).as_signed(),
                shared_registers=2,
                cascade=word,
                ends=i == members[-1],
            )
        assert word is not None
        return word

    def _loaded(self, m: Module, strobes: Value) -> tuple[list[Any], Any]:
        """Hold the parameters of the next tile as they arrive."""
        scales = []
        for n in range(CELL_COLUMNS):
            scale = Signal(ScaleBeat(), name=f"loaded_scale_{n}", reset_less=True)
            with m.If(strobes[n]):
                m.d.sync += scale.eq(self.beat[: ScaleBeat().size])
            scales.append(scale)
        zeros = Signal(ZeroBeat(), name="loaded_zeros", reset_less=True)
        with m.If(strobes[PARAMETER_BEATS - 1]):
            m.d.sync += zeros.eq(self.beat[: ZeroBeat().size])
        return scales, zeros

    def _late(self, m: Module, n: int, exponent: Value, zero: Value, begins: Value) -> tuple[Value, Value]:
        """Take a column's exponent and zero point early, and use each from the first pixel on."""
        late = []
        for name, value, at in (("exponent", exponent, EXPONENT_AT), ("zero", zero, ZERO_AT)):
            kept = Signal(value.shape(), name=f"kept_{name}_{n}", reset_less=True)
            used = Signal(value.shape(), name=f"{name}_{n}", reset_less=True)
            with m.If(begins[1]):
                m.d.sync += kept.eq(value)
            with m.If(begins[1 + at]):
                m.d.sync += used.eq(kept)
            late.append(used)
        return late[0], late[1]

    def _shifted(self, m: Module, n: int, dot: Value, carry: Value | None) -> tuple[Value, Value | None]:
        """Shift a dot product, and the carry that it lacks, to the left; a cycle, and a choice after it.

        The carry comes in at each place that the shift makes free, so that it still is a carry-in.
        """
        fine = Signal(2, name=f"shift_fine_{n}", reset_less=True)
        coarse = Signal(name=f"shift_coarse_{n}", reset_less=True)
        late_coarse = Signal(name=f"shift_late_coarse_{n}", reset_less=True)
        fill = Const(0, 1) if carry is None else carry
        steps = 1 << len(fine)
        shifted = Signal(signed(len(dot) + steps - 1), name=f"shifted_{n}", reset_less=True)
        shifts = [Cat(fill.replicate(places), dot).as_signed() for places in range(steps)]
        extended = [Cat(each, each[-1].replicate(len(shifted) - len(each))) for each in shifts]
        m.d.sync += [
            Cat(fine, coarse).eq(self.control.shift),
            late_coarse.eq(coarse),
            shifted.eq(chosen(extended, fine)),
        ]
        late_carry = None
        if carry is not None:
            late_carry = Signal(name=f"shifted_carry_{n}", reset_less=True)
            m.d.sync += late_carry.eq(carry)
        late_fill = Const(0, 1) if late_carry is None else late_carry
        far = Cat(late_fill.replicate(steps), shifted).as_signed()
        return Mux(late_coarse, far, shifted), late_carry

    def _sums(self, m: Module, dots: list[tuple[Value, Value | None]], biases: list[Signal]) -> list[Signal]:
        """Add dot products to the biases, or to the sums of earlier tiles; keep the sums."""
        bits = CELL_COLUMNS * SUM_BITS
        m.submodules.ram = ram = uninitialised(width=bits, depth=self._config.block_pixels, ram_style="block")
        write, read = ports(ram)
        first = Signal(reset_less=True)
        totals = []
        for n, (dot, carry) in enumerate(dots):
            before = read.data.word_select(n, SUM_BITS).as_signed()
            base = Mux(first, biases[n], before)
            total = Signal(signed(SUM_BITS), name=f"total_{n}", reset_less=True)
            m.d.sync += total.eq(dot + base if carry is None else with_carry(dot, base, carry))
            totals.append(total)
        m.d.sync += first.eq(self.control.first)
        m.d.comb += [
            read.en.eq(1),
            read.addr.eq(self.control.read),
            write.en.eq(self.control.write),
            write.addr.eq(self.control.pixel),
            write.data.eq(Cat(*totals)),
        ]
        return totals
