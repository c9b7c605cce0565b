# amaranth: UnusedElaboratable=no
"""The factor of a softmax: the quotient in gates, and why a product with it replaces the division."""

import random

from hw.network.graph import integers
from hw.network.vector.layouts import EXPONENTIAL_BITS, STEPS_BITS
from hw.network.vector.reciprocal import PLACES, QUOTIENT_CYCLES, SUM_BITS, Quotient
from tests.support.gateware.streams import set_all, simulate

LARGEST = (1 << EXPONENTIAL_BITS) - 1


def drawn(rng):
    """Draw the steps of a softmax and a sum of exponentials, the largest among them."""
    total = rng.choice([LARGEST, (1 << SUM_BITS) - 4096, LARGEST + rng.getrandbits(rng.randrange(1, 32))])
    steps = rng.choice([65536, 65280, (1 << STEPS_BITS) - 1, 1, 1 + rng.getrandbits(rng.randrange(1, 27))])
    return steps, total


def factor_of(steps, total):
    return -(-(steps << PLACES) // (total << 8))


def test_product_equals_division():
    """Terms next to ties, and exact ties."""
    rng = random.Random(1)
    ties = 0
    for _ in range(2000):
        steps, total = drawn(rng)
        if rng.random() < 0.5:  # powers of two meet ties exactly
            steps, total = 1 << rng.randrange(20, 27), 1 << rng.randrange(20, 32)
        denominator = total << integers.SOFTMAX_FRACTION_BITS
        whole = rng.randrange(256)
        near = (2 * whole + 1) * denominator // (2 * steps) + rng.randrange(-1, 2)
        term = min(max(near, 0), LARGEST)
        ties += 2 * term * steps % (2 * denominator) == denominator
        expected = (2 * term * steps + denominator) // (2 * denominator)
        product = term * factor_of(steps, total)
        assert (product + (1 << PLACES - 1)) >> PLACES == expected
    assert ties > 20


def test_quotient_in_gates():
    dut = Quotient()
    rng = random.Random(2)

    async def bench(ctx):
        for _ in range(30):
            steps, total = drawn(rng)
            set_all(ctx, [(dut.steps, steps), (dut.total, total), (dut.start, 1)])
            await ctx.tick()
            ctx.set(dut.start, 0)
            for _ in range(QUOTIENT_CYCLES - 1):
                await ctx.tick()
            assert ctx.get(dut.factor) == factor_of(steps, total)

    simulate(dut, bench)
