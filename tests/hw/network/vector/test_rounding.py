# amaranth: UnusedElaboratable=no
"""The end of an addition against integers: ties, clamps and every shift."""

import random

from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.network.graph.integers import rounded_shift
from hw.network.vector.layouts import FACTOR_BITS, LEAST_SHIFT, SHIFT_BITS
from hw.network.vector.rounding import INVERTS_AT, ROUNDING_LATENCY, rounded_to_int8
from tests.support.gateware.streams import set_all, simulate

#: Bits of a sum of two products of 9 bits.
TOTAL_BITS = FACTOR_BITS + 10


class Rounding(wiring.Component):
    """The function between ports."""

    def __init__(self):
        ports = {"total": In(signed(TOTAL_BITS)), "shift": In(SHIFT_BITS), "zero": In(signed(8))}
        super().__init__(ports | {"inverts": In(1), "o": Out(signed(8))})

    def elaborate(self, platform):
        m = Module()
        found = rounded_to_int8(m, "result", self.total, self.shift, self.zero, self.inverts)
        m.d.comb += self.o.eq(found)
        return m


def drawn_totals(rng, shift):
    """Draw totals at and beside ties, at the bounds of int8, and anywhere."""
    half = 1 << shift - 1
    near = [(rng.randint(-300, 300) * 2 + 1) * half + rng.choice([-1, 0, 0, 1]) for _ in range(20)]
    most = (1 << TOTAL_BITS - 1) - 1
    return [max(~most, min(most, each)) for each in near] + [rng.randint(~most, most) for _ in range(4)]


def test_rounds_ties_to_even_for_every_shift():
    rng = random.Random(0)
    dut = Rounding()

    async def bench(ctx):
        for code in range(1 << SHIFT_BITS):
            shift = LEAST_SHIFT + code
            zero = rng.randint(-128, 127)
            totals = drawn_totals(rng, shift)
            inverts = [rng.random() < 0.2 for _ in totals]
            late = [0] * INVERTS_AT + inverts + [0] * ROUNDING_LATENCY
            found = []
            for total, invert in zip([*totals, *[0] * ROUNDING_LATENCY], late, strict=False):
                inputs = [(dut.shift, code), (dut.zero, zero), (dut.total, total), (dut.inverts, invert)]
                set_all(ctx, inputs)
                await ctx.tick()
                found.append(ctx.get(dut.o))
            wanted = []
            for total, invert in zip(totals, inverts, strict=True):
                # Ties become even with the zero point.
                exact = total + (zero << shift)
                rounded = int(rounded_shift(exact, shift))
                rounded = 2 * (exact >> shift) + 1 - rounded if invert else rounded
                wanted.append(max(-128, min(127, rounded)))
            assert found[ROUNDING_LATENCY - 1 :][: len(totals)] == wanted, shift

    simulate(dut, bench)
