"""Both roundings of requantization equal their definition, for every number."""

from __future__ import annotations

import pytest
from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value, signed

from hw.lib.arithmetic import float_scale
from hw.lib.arithmetic.fixed import round_half_even, saturate
from hw.lib.delay import delay
from tests.support.proofs.formal import PropertyFailure, bounded, check, free
from tests.support.proofs.mutants import mutant


def rounded_to_significand(m: Module, name: str, value: Value) -> Value:
    """Round a signed value to 24 significant bits, by its magnitude, place by place."""
    magnitude = Signal(len(value), name=f"{name}_magnitude")
    found = Signal(len(value) + 1, name=f"{name}_rounded")
    m.d.comb += [magnitude.eq(Mux(value[-1], -value, value)), found.eq(magnitude)]
    for places in range(1, len(value) - 23):
        with m.If(magnitude >> (23 + places) != 0):
            m.d.comb += found.eq(Cat(Const(0, places), round_half_even(magnitude, places)))
    signed_found = Signal(signed(len(value) + 2), name=f"{name}_signed")
    m.d.comb += signed_found.eq(Mux(value[-1], -found, found))
    return signed_found


class SignificandSpec(Elaboratable):
    """A sum as float32."""

    def __init__(self, function=float_scale.significand):
        self.function = function

    def elaborate(self, platform):
        m = Module()
        value = Signal(signed(32))
        free(m, value)
        started = Signal()
        m.d.sync += started.eq(1)
        found = self.function(m, "dut", value)
        wanted = rounded_to_significand(m, "spec", delay(m, "value", value, 1))
        with m.If(started):
            check(m, found == wanted, "a sum is rounded to float32")
        return m


class ToIntegerSpec(Elaboratable):
    """A product as float32, as an integer, and clamped; its lowest bit stands for all dropped ones."""

    def __init__(self, function=float_scale._to_integer, bits=8):
        self.function = function
        self.bits = bits

    def elaborate(self, platform):
        m = Module()
        product, zero, odd = Signal(signed(28 + self.bits)), Signal(signed(8)), Signal()
        free(m, product, zero, odd)
        started = Signal(range(4))
        m.d.sync += started.eq(Mux(started == 3, 3, started + 1))
        bits = product[1:], product[0], Const(0, 1), product[-1]
        found = self.function(m, "dut", *bits, zero, ties_odd=odd, bits=self.bits)
        late, late_zero = delay(m, "product", product, 3), delay(m, "zero", zero, 3)
        late_odd = delay(m, "odd", odd, 3)
        # An odd integer is even with one more.
        product_and_one = rounded_to_significand(m, "spec", late) + Cat(Const(0, 27), late_odd, Const(0, 1))
        whole = Signal(signed(4 + self.bits))
        m.d.comb += whole.eq(round_half_even(product_and_one, 27) - late_odd)
        with m.If(started == 3):
            check(m, found == saturate(whole + late_zero, signed(self.bits)), "a product becomes an integer")
        return m


@pytest.mark.parametrize(("spec", "depth"), [(SignificandSpec, 3), (ToIntegerSpec, 5)])
def test_roundings(spec, depth):
    bounded(spec(), depth, reset="low")


def test_the_rounding_to_int16():
    bounded(ToIntegerSpec(bits=16), 5, reset="low")


MUTANTS = [
    (SignificandSpec, float_scale.significand, "Cat(carry, loses[1:]", "Cat(carry, loses[:-1]"),
    (SignificandSpec, float_scale.significand, "value[n + 1], odd", "value[n], odd"),
    (ToIntegerSpec, float_scale._to_integer, "is_half & ~has_rest", "is_half"),
    (ToIntegerSpec, float_scale._to_integer, "(near | tie)", "near"),
    (ToIntegerSpec, float_scale._to_integer, "whole[0] ^ ties_odd", "whole[0]"),
]


@pytest.mark.parametrize(("spec", "original", "old", "new"), MUTANTS)
def test_mutants_are_found(spec, original, old, new):
    with pytest.raises(PropertyFailure):
        bounded(spec(mutant(original, old, new)), 5, reset="low", solver="sat")
