# amaranth: UnusedElaboratable=no
"""The end of a sum of int16 against integers: ties, bounds and every shift."""

import random

from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.network.normalization import LEAST_SHIFT, SHIFT_BITS
from hw.network.vector.narrowing import NARROWING_LATENCY, narrowed
from tests.support.gateware.streams import set_all, simulate

#: Bits of a sum.
TOTAL_BITS = 46


class Narrowing(wiring.Component):
    """The function between ports, with all choices and with none."""

    def __init__(self):
        ports = {"total": In(signed(TOTAL_BITS)), "shift": In(SHIFT_BITS), "ties": In(1), "byte": In(1)}
        super().__init__(ports | {"o": Out(signed(16)), "plain": Out(signed(8))})

    def elaborate(self, platform):
        m = Module()
        common = {"least": LEAST_SHIFT}
        full = narrowed(m, "full", self.total, self.shift, bits=16, ties=self.ties, byte=self.byte, **common)
        m.d.comb += [
            self.o.eq(full),
            self.plain.eq(narrowed(m, "plain", self.total, self.shift, bits=8, **common)),
        ]
        return m


def drawn_totals(rng, shift):
    """Draw sums without a rest and beside these, at both bounds, and anywhere."""
    near = [
        (rng.choice([rng.randrange(-40000, 40000), -32769, 32767, 32768, -129, 127, 128]) << shift) + rest
        for rest in (-1, 0, 0, 0, 1)
        for _ in range(5)
    ]
    most = (1 << TOTAL_BITS - 1) - 1
    return [max(~most, min(most, each)) for each in near] + [rng.randint(~most, most) for _ in range(4)]


def test_every_shift():
    rng, dut = random.Random(0), Narrowing()

    async def bench(ctx):
        for code in range(1 << SHIFT_BITS):
            shift = LEAST_SHIFT + code
            for ties, byte in ((0, 0), (0, 1), (1, 0)):
                totals = drawn_totals(rng, shift)
                set_all(ctx, [(dut.shift, code), (dut.ties, ties), (dut.byte, byte)])
                found = []
                for total in [*totals, *[0] * NARROWING_LATENCY]:
                    ctx.set(dut.total, total)
                    await ctx.tick()
                    found.append((ctx.get(dut.o), ctx.get(dut.plain)))
                for total, (wide, plain) in zip(totals, found[NARROWING_LATENCY - 1 :], strict=False):
                    whole = total >> shift
                    even = whole - (ties and total % (1 << shift) == 0 and whole % 2)
                    bounds = (-128, 127) if byte else (-32768, 32767)
                    wanted = max(bounds[0], min(bounds[1], even if whole <= bounds[1] else whole))
                    assert wide % (256 if byte else 65536) == wanted % (256 if byte else 65536), (
                        total,
                        shift,
                    )
                    assert plain == max(-128, min(127, whole))

    simulate(dut, bench)
