# amaranth: UnusedElaboratable=no
"""Requantization in gates against float32 arithmetic: a scale a run, sums that lie next to ties."""

import numpy as np
import pytest
from amaranth.hdl import Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError
from hw.lib.arithmetic import float_scale as gates
from hw.lib.arithmetic.float_scale import (
    EXPONENT_AT,
    EXPONENT_BITS,
    FACTOR_AT,
    FLOAT_SCALE_LATENCY,
    MULTIPLIER_BITS,
    SUM_BITS,
    ZERO_AT,
    float_scale,
    float_scale_fields,
)
from sim.golden.float_scale import float_scaled
from tests.support.gateware.float_scale import random_scales, sums_next_to_ties
from tests.support.gateware.play import play
from tests.support.gateware.streams import seeds
from tests.support.proofs.mutants import mutant

#: Sum, significand and shift of the scale: the product lies in the middle of a tie and its
#: neighbour in float32, or just beyond, by bits that the shift drops.
MIDDLES = [(1139, 8484352, 31), (8897163, 12358003, 43), (15592116, 11282745, 46)]

AT = {"value": 0, "multiplier": FACTOR_AT, "load": FACTOR_AT, "exponent": EXPONENT_AT, "zero": ZERO_AT}


class Scaled(wiring.Component):
    """The function, with a register at its inputs."""

    def __init__(self, function=float_scale, bits=8):
        self.function = function
        self.bits = bits
        shapes = {
            "value": signed(SUM_BITS),
            "multiplier": MULTIPLIER_BITS,
            "load": 1,
            "exponent": EXPONENT_BITS,
            "zero": signed(8),
        }
        super().__init__({**{name: In(shape) for name, shape in shapes.items()}, "o": Out(signed(bits))})

    def elaborate(self, platform):
        m = Module()
        held = {name: Signal.like(getattr(self, name)) for name in AT}
        m.d.sync += [register.eq(getattr(self, name)) for name, register in held.items()]
        m.d.comb += self.o.eq(self.function(m, platform, "scaled", held.pop("value"), **held, bits=self.bits))
        return m


def drawn_run(rng, scale, bits):
    """Draw sums for a scale."""
    count = int(rng.integers(2, 24))
    drawn = rng.integers(-(1 << 31), 1 << 31, count) >> rng.integers(0, 31, count)
    most = int(rng.choice([400, 3 << bits - 1]))
    ties = sums_next_to_ties(rng, scale, count, most=most) if scale else drawn
    sums = np.where(rng.random(count) < 0.7, ties, drawn)
    sums[rng.random(count) < 0.1] = rng.choice([0, -1, -(1 << 31), (1 << 31) - 1, 1 << 24, -(1 << 30)])
    return scale, sums


def played(function, rng, runs, bits=8):
    """Return the results of runs of sums, a scale each, and those of float32 arithmetic."""
    unit = Scaled(function, bits)
    inputs, wanted = [], []

    def at(cycle, name, value):
        cycle += AT[name]
        inputs.extend([] for _ in range(cycle + 1 - len(inputs)))
        inputs[cycle].append((getattr(unit, name), int(value)))

    scales = np.where(rng.random(runs) < 0.05, np.float32(0), random_scales(rng, runs))
    cases = [(np.float32(m * 2.0**-shift), np.array([value, -value])) for value, m, shift in MIDDLES]
    for scale, sums in [*cases, *(drawn_run(rng, scale, bits) for scale in scales)]:
        zero = int(rng.choice([-128, 127, *rng.integers(-128, 128, 6)])) if scale in scales else 0
        multiplier, exponent = float_scale_fields(float(scale))
        for n, value in enumerate(sums):
            cycle = len(wanted) + n
            for name, given in (("value", value), ("exponent", exponent), ("zero", zero), ("load", n == 0)):
                at(cycle, name, given)
            # It may go once both slices have taken it.
            at(cycle, "multiplier", multiplier if n < 2 else rng.integers(1 << MULTIPLIER_BITS))
        wanted += float_scaled(sums, scale, zero, bits=bits).tolist()
    inputs += [[] for _ in range(FLOAT_SCALE_LATENCY)]
    found = play(unit, inputs, unit.o, FLOAT_SCALE_LATENCY + 1)
    return found[: len(wanted)], wanted


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("seed", seeds(1, 30))
def test_equals_float32(seed, bits):
    found, wanted = played(float_scale, np.random.default_rng(seed), 250, bits)
    assert found == wanted
    assert len(wanted) > 2000
    assert len({*wanted}) > 200


#: Single changes of the shift: text, its replacement.  Proofs find those of the roundings.
MUTANTS = {
    "bits below are lost": ("rest | chosen(amount, [extended[:first].any() for first in firsts])", "rest"),
    "a bit above is lost": ("value[first + width - 1 :]", "value[first + width :]"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_found(name):
    changed = mutant(gates._shifted, *MUTANTS[name]).__globals__["float_scale"]
    found, wanted = played(changed, np.random.default_rng(0), 150)
    assert found != wanted


def test_other_widths_are_refused():
    narrow = Signal(signed(17))
    fields = {"load": Signal(), "exponent": Signal(4), "zero": Signal(signed(8))}
    with pytest.raises(InputError, match="must be 18 to 32 and 26 bits wide"):
        float_scale(Module(), None, "scaled", narrow, multiplier=Signal(26), **fields)
    for scale, legal in ((-1.0, "finite"), (float("inf"), "finite"), (0.1, "a float32")):
        with pytest.raises(InputError, match=f"scale must be {legal}"):
            float_scale_fields(scale)
