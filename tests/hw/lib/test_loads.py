"""Shifts by lanes, and equal registers."""

import random

import pytest
from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hw.lib.loads import copies, shifted_down
from tests.support.gateware.streams import simulate


@pytest.mark.parametrize(
    ("lanes", "count", "bits"), [(64, 32, 5), (8, 4, 2), (7, 5, 3), (4, 4, 1), (3, 1, 2), (5, 5, 0)]
)
@pytest.mark.parametrize("parts", [1, 3])
def test_lanes_are_those_from_the_amount_on(lanes, count, bits, parts):
    rng = random.Random(f"{lanes} {count}")
    values = [rng.getrandbits(6) for _ in range(lanes)]

    class Shift(wiring.Component):
        amount: In(bits)

        def elaborate(self, platform):
            m = Module()
            self.o = [Signal(6, name=f"o_{n}") for n in range(count)]
            amounts = copies(self.amount, parts)
            shifted = shifted_down(m, Cat(Const(value, 6) for value in values), 6, amounts, count)
            m.d.comb += [amount.eq(self.amount) for amount in amounts]
            m.d.comb += Cat(self.o).eq(shifted)
            m.d.sync += Signal().eq(0)
            return m

    dut = Shift()

    async def bench(ctx):
        for amount in range(1 << bits):
            ctx.set(dut.amount, amount)
            await ctx.tick()
            expected = [values[min(amount + n, lanes - 1)] for n in range(count)]
            assert [ctx.get(o) for o in dut.o] == expected

    simulate(dut, bench)


def test_copies_are_alike_and_stay_apart():
    like = Signal(3, init=5, reset_less=True, name="like")
    for count in (1, 2, 5):
        found = copies(like, count)
        assert [copy.name for copy in found] == [f"like_{n}" for n in range(count)]
        assert {(len(copy), copy.init, copy.reset_less) for copy in found} == {(3, 5, True)}
        assert {"keep" in copy.attrs for copy in found} == {count > 1}
