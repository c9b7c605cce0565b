# amaranth: UnusedElaboratable=no
"""Delay lines against a list shifted by as many places."""

import random

import pytest
from amaranth.hdl import ClockDomain, Module, ResetInserter, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import delay
from tests.support.gateware.play import play
from tests.support.gateware.streams import plain, simulate

PAIR = data.StructLayout({"a": 3, "b": signed(4)})


class Line(wiring.Component):
    def __init__(self, shape, cycles, *, reset=True):
        self.cycles, self.reset = cycles, reset
        super().__init__({"i": In(shape), "o": Out(shape), "clear": In(1)})

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain()  # a delay of 0 needs none
        m.d.comb += self.o.eq(delay(m, "line", self.i, self.cycles, reset=self.reset))
        return m


@pytest.mark.parametrize("cycles", [0, 1, 2, 5])
@pytest.mark.parametrize("shape", [unsigned(1), signed(6), PAIR], ids=["bit", "signed", "pair"])
def test_against_a_list(shape, cycles):
    rng = random.Random(cycles)
    if shape is PAIR:
        given = [{"a": rng.randrange(8), "b": rng.randrange(-8, 8)} for _ in range(40)]
    else:
        low = -(1 << shape.width - 1) if shape.signed else 0
        given = [rng.randrange(low, low + (1 << shape.width)) for _ in range(40)]
    line = Line(shape, cycles)
    assert play(line, [[(line.i, value)] for value in given], line.o, cycles) == given


@pytest.mark.parametrize("reset", [True, False])
def test_reset_clears_what_it_should(reset):
    line = Line(unsigned(8), 2, reset=reset)
    seen = []

    async def bench(ctx):
        ctx.set(line.i, 77)
        await ctx.tick().repeat(2)
        ctx.set(line.clear, 1)
        await ctx.tick()
        seen.append(plain(ctx.get(line.o)))

    simulate(ResetInserter(line.clear)(line), bench)
    assert seen == [0 if reset else 77]
