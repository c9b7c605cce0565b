"""Bursts in flight at a port, against a count of them."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib import axi
from hw.oram.movers.outstanding import Outstanding
from tests.support.gateware.streams import set_all, simulate


class Watched(wiring.Component):
    """A port and its counter."""

    def __init__(self):
        super().__init__({"axi": In(axi.Signature(data_width=64, addr_width=32)), "busy": Out(1)})

    def elaborate(self, platform):
        """Connect the counter."""
        m = Module()
        m.submodules.outstanding = outstanding = Outstanding(bits=3)
        outstanding.watch(m, self.axi)
        m.d.comb += self.busy.eq(outstanding.busy)
        return m


UNIT = Watched()


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_busy(rate):
    """A burst counts from its address to its last beat or response, both included; at most seven each way."""
    rng, port, told = random.Random(rate), UNIT.axi, []

    async def bench(ctx):
        under_way, expected = {"r": 0, "w": 0}, 0
        for _ in range(600):
            now = {name: rng.random() < rate for name in ("arvalid", "rvalid", "awvalid", "bvalid")}
            now |= {name: rng.random() < 0.6 for name in ("arready", "rready", "awready", "bready", "rlast")}
            for way, address, answer in (("r", "ar", "r"), ("w", "aw", "b")):
                now[f"{address}valid"] &= under_way[way] < 7
                now[f"{answer}valid"] &= under_way[way] > 0
            moves = {name: now[f"{name}valid"] and now[f"{name}ready"] for name in ("ar", "r", "aw", "b")}
            set_all(ctx, [(getattr(port, name), value) for name, value in now.items()])
            told.append(ctx.get(UNIT.busy))
            assert told[-1] == expected
            expected = any(under_way.values()) or moves["ar"] or moves["aw"]
            under_way["r"] += moves["ar"] - (moves["r"] and now["rlast"])
            under_way["w"] += moves["aw"] - moves["b"]
            await ctx.tick()

    simulate(UNIT, bench)
    assert set(told) == {0, 1}
