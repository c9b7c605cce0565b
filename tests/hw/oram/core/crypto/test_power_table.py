"""Every power of the hash key in its slot, after every start."""

import numpy as np
import pytest

from hw.lib.place import InlinePlacer
from hw.oram.core.crypto.config import PageShape
from hw.oram.core.crypto.power_table import PowerTable
from sim.golden.oram import aes
from tests.support.gateware.streams import simulate
from tests.support.oram.blocks import bits
from tests.support.oram.pages import powers

SHAPE = PageShape(page_bytes=128, lanes=2)
UNIT = PowerTable(SHAPE, InlinePlacer())


@pytest.mark.parametrize("before", [None, 1, 13, PowerTable.latency(SHAPE) - 1])
def test_powers(before):
    """A start during another one restarts."""
    starts = {} if before is None else {0: b"forgotten key 16"}
    starts[before or 0] = b"the one that is."
    written, done = {}, []

    async def bench(ctx):
        for cycle in range((before or 0) + PowerTable.latency(SHAPE) + 20):
            key = starts.get(cycle)
            ctx.set(UNIT.start, key is not None)
            if key is not None:
                ctx.set(UNIT.hash_key, bits(aes.encrypt(key, np.zeros(16, np.uint8))))
            if ctx.get(UNIT.power.en) and not done:
                written[ctx.get(UNIT.power.slot)] = ctx.get(UNIT.power.value)
            if ctx.get(UNIT.done):
                done.append(cycle)
            await ctx.tick()

    simulate(UNIT, bench)
    assert done == [(before or 0) + PowerTable.latency(SHAPE)]
    assert written == {slot: bits(value) for slot, value in powers(SHAPE, b"the one that is.")}
