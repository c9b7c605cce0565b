"""The skid buffer: nothing lost, nothing late, nothing combinational."""

from __future__ import annotations

import random

import pytest

from hw.lib.skid import Skid
from tests.support.gateware.streams import STALLS, Side, exchange, seeds, simulate


def run(items, *, shape=8, stall_i=0.0, stall_o=0.0, seed=0):
    dut = Skid(shape)
    sides = {
        "i": Side(dut.i, items=items, stall=stall_i),
        "o": Side(dut.o, count=len(items), stall=stall_o),
    }
    exchange(dut, sides, seed=seed)
    return sides["o"]


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.parametrize("stall_i", STALLS)
@pytest.mark.parametrize("stall_o", STALLS)
def test_order_under_backpressure(stall_i, stall_o, seed):
    rng = random.Random(seed)
    items = [rng.randrange(256) for _ in range(50)]
    assert run(items, stall_i=stall_i, stall_o=stall_o, seed=seed).received == items


def test_one_item_a_cycle_after_one_cycle():
    side = run(list(range(100)))
    assert side.gapless
    assert side.cycles[0] == 1


def test_signed_payload():
    assert run([-1, -128, 127], shape=range(-128, 128)).received == [-1, -128, 127]


def test_takes_two_items_while_the_output_is_held():
    dut = Skid(8)
    accepted = []

    async def fill(ctx):
        for value in (10, 20, 30):
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.payload, value)
            _, _, ready = await ctx.tick().sample(dut.i.ready)
            accepted.append(bool(ready))
        assert ctx.get(dut.o.payload) == 10
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.o.ready, 1)
        await ctx.tick()
        assert ctx.get(dut.o.payload) == 20
        await ctx.tick()
        assert not ctx.get(dut.o.valid)

    simulate(dut, fill)
    assert accepted == [True, True, False]


def test_full_rate_resumes_after_a_stall():
    """The consumer pauses once: the item rate dips by that pause and by nothing else."""
    dut = Skid(8)
    source = Side(dut.i, items=list(range(40)))
    taken = []

    async def pausing(ctx):
        for cycle in range(45):
            ctx.set(dut.o.ready, cycle not in (10, 11, 12))
            _, _, valid, ready = await ctx.tick().sample(dut.o.valid, dut.o.ready)
            if valid and ready:
                taken.append(cycle)

    exchange(dut, {"i": source}, background=[pausing])
    expected = [cycle for cycle in range(1, 45) if cycle not in (10, 11, 12)]
    assert taken == expected[: len(taken)]
    assert len(taken) >= 35
