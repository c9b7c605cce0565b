"""The FIFO with registers behind it: order under backpressure, what it holds, when it gives."""

import random

import pytest

from hw.attention.walk.registered_fifo import RegisteredFifo
from tests.support.gateware.streams import STALLS, Side, exchange, simulate

DEPTH = 5


@pytest.mark.parametrize("stall_i", STALLS)
@pytest.mark.parametrize("stall_o", STALLS)
def test_order(stall_i, stall_o):
    rng = random.Random(f"{stall_i} {stall_o}")
    unit, items = RegisteredFifo(8, depth=DEPTH), [rng.randrange(256) for _ in range(60)]
    sides = {"i": Side(unit.i, items=items, stall=stall_i), "o": Side(unit.o, count=60, stall=stall_o)}
    exchange(unit, sides, seed=rng.randrange(100))
    assert sides["o"].received == items
    if not (stall_i or stall_o):
        assert sides["o"].gapless
        assert sides["o"].cycles[0] == RegisteredFifo.LATENCY


def test_what_it_holds():
    unit, taken = RegisteredFifo(8, depth=DEPTH), []

    async def fill(ctx):
        ctx.set(unit.i.valid, 1)
        for _ in range(4 * DEPTH):
            _, _, ready = await ctx.tick().sample(unit.i.ready)
            taken.append(ready)

    simulate(unit, fill)
    assert sum(taken) == DEPTH + RegisteredFifo.EXTRA
