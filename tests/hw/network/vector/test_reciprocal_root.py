# amaranth: UnusedElaboratable=no
"""Slope and term of pixels in gates, equal to the formula."""

import random

import numpy as np

from hw.network.normalization import (
    LEAST_EXPONENT,
    MOST_STEPS,
    STEP,
    dropped_bits,
    most_epsilon,
    root,
    split_channels,
)
from hw.network.vector.reciprocal_root import ROOT_LATENCY, ReciprocalRoot
from tests.support.gateware.streams import set_all, simulate


def factors_of(total, squares, channels, epsilon):
    """Return slope, ``h - T`` and j."""
    odd, twos = split_channels(channels)
    dropped = dropped_bits(odd)
    found, exponent = root(channels * squares - total * total + epsilon, dropped)
    exponent = max(exponent - twos - dropped, LEAST_EXPONENT)
    steps = max(0, min(MOST_STEPS, -(-exponent // STEP)))
    lift = STEP * steps - exponent
    slope, term = (
        value << places if places >= 0 else value >> -places
        for value, places in ((odd * found, lift), (total * found, lift - twos))
    )
    return slope, (1 << STEP * steps >> 1 if steps else 0) - term, steps


def drawn(rng, channels):
    """Draw the sums of a pixel, of greatest and least spread among them."""
    numbers = np.random.default_rng(rng.getrandbits(32))
    mean, deviation = rng.choice([0, 0, 1000, -20000]), 2.0 ** rng.uniform(-3, 15)
    values = np.clip(np.rint(numbers.normal(mean, deviation, channels)), -32768, 32767)
    kind = rng.randrange(5)
    if kind == 0:
        values[:] = rng.choice([-32768, 32767, 0, 5])
    elif kind == 1:
        values[: channels // 2], values[channels // 2 :] = -32768, 32767
    elif kind == 2:
        values[:], values[0] = values[0], values[0] + 1
    return int(values.sum()), int((values * values).sum())


def test_factors_equal_the_formula():
    """Pixels in each second cycle, and with pauses."""
    dut, rng = ReciprocalRoot(), random.Random(0)

    async def bench(ctx):
        for channels in (384, 768, 1024, 4, 7, 312, 800, 96, 640):
            epsilon = rng.choice([1, 1, 5, 1000, most_epsilon(channels)])
            odd, twos = split_channels(channels)
            numbers = {"channels": channels, "odd": odd, "twos": twos, "dropped": dropped_bits(odd)}
            set_all(ctx, [(dut.settings[name], value) for name, value in numbers.items()])
            ctx.set(dut.settings.epsilon, epsilon)
            pixels = {}
            cycle = 0
            for _ in range(30):
                pixels[cycle] = drawn(rng, channels)
                cycle += 2 + rng.choice([0, 0, 0, 1])
            found = []
            for at in range(cycle + ROOT_LATENCY + 1):
                total, squares = pixels.get(at, (0, 0))
                set_all(ctx, [(dut.i_valid, at in pixels), (dut.i.sum, total), (dut.i.squares, squares)])
                found.append((ctx.get(dut.o.slope), ctx.get(dut.o.term), ctx.get(dut.o.steps)))
                await ctx.tick()
            for at, sums in pixels.items():
                assert found[at + ROOT_LATENCY] == factors_of(*sums, channels, epsilon), (channels, sums)

    simulate(dut, bench)
