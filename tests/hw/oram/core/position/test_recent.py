"""The newest operation with the same number, against a list searched from its end."""

import random

import pytest

from hw.oram.core.position.recent import RecentBuckets
from tests.support.gateware.streams import simulate


@pytest.mark.parametrize(("depth", "numbers"), [(1, 2), (7, 3), (8, 12), (29, 40), (150, 120)])
def test_newest(depth, numbers):
    rng = random.Random(depth)
    dut = RecentBuckets(bits=7, depth=depth)
    seen, wanted, found = [], [], []

    async def play(ctx):
        for cycle in range(400):
            step, number = rng.random() < 0.7, rng.randrange(numbers)
            clear = cycle == 200
            ctx.set(dut.step, step and not clear)
            ctx.set(dut.number, number)
            ctx.set(dut.clear, clear)
            last = seen[: -depth - 1 : -1]
            wanted.append(last.index(number) if number in last else None)
            if clear:
                seen.clear()
            elif step:
                seen.append(number)
            await ctx.tick()
            found.append(ctx.get(dut.age) if ctx.get(dut.found) else None)

    simulate(dut, play)
    assert found[RecentBuckets.LATENCY - 1 :] == wanted[: 1 - RecentBuckets.LATENCY]
