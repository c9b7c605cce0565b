# amaranth: UnusedElaboratable=no
"""Tiles of any length, with any keys hidden: logits come back with their maximum, the rise after the last."""

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.core.row.maximum import LOGIT_TILES, LogitBuffer
from tests.support.gateware.streams import simulate


@pytest.mark.parametrize("streams", [1, 2])
def test_logit_buffer(streams):
    config = AttentionConfig(tile_keys=16, lanes=32, streams=streams)
    rng = np.random.default_rng(streams)
    unit = LogitBuffer(config)
    lengths = [16, 1, 7, 16, *(int(n) for n in rng.integers(1, 17, 20))]
    tiles = [rng.integers(-(2**23), 2**23, n) >> rng.integers(0, 20) for n in lengths]
    tiles[3][:] = 2**23 - 1
    shown = [rng.random(n) < rng.choice([0, 0.2, 1]) for n in lengths]
    shown[0][:], shown[1][:], shown[4][:] = False, False, True
    tiles[4][:] = -(2**23)
    opens = [True, False, False, True, *(rng.random(20) < 0.3)]
    starts = np.cumsum([0, *lengths])
    seen = []

    def place(n, index):
        entry = int(starts[n] + index) % config.logit_entries
        last = index == lengths[n] - 1
        return {"valid": 1, "slot": n % LOGIT_TILES, "entry": entry, "first": index == 0, "last": last}

    async def write(ctx, n):
        for index, t in enumerate(tiles[n]):
            ctx.set(unit.i, int(t))
            ctx.set(unit.i_visible, bool(shown[n][index]))
            ctx.set(unit.write, {**place(n, index), "opens": bool(opens[n])})
            await ctx.tick()
        ctx.set(unit.write, {"valid": 0, "first": 1, "last": 1})
        for _ in range(LogitBuffer.LATENCY - 1):
            await ctx.tick()

    async def read(ctx, n):
        values = []
        for index in range(len(tiles[n])):
            for _ in range(int(rng.integers(1, 3))):  # any logit may be read more than once
                ctx.set(unit.read, place(n, index))
                await ctx.tick()
                values.append((index, ctx.get(unit.o), ctx.get(unit.o_visible), ctx.get(unit.maximum)))
        ctx.set(unit.read.valid, 0)
        await ctx.tick()
        seen.append((values, ctx.get(unit.rise), ctx.get(unit.reached)))

    async def bench(ctx):
        # Two tiles lie in the buffer whenever one is read.
        await write(ctx, 0)
        for n in range(1, len(tiles)):
            await write(ctx, n)
            await read(ctx, n - 1)
        await read(ctx, len(tiles) - 1)

    simulate(unit, bench)
    running = None
    for tile, shows, opening, (values, rise, reached) in zip(tiles, shown, opens, seen, strict=True):
        # What -4096 stands for shows only where a key is seen: p and the rescale of zeros are zero anyway.
        before = -2048 if opening else running
        running = max([before, *(int(t) + 4095 >> 12 for t in tile[shows])])
        assert {value[0] for value in values} == set(range(len(tile)))
        for index, t, visible, maximum in values:
            assert (t, visible, maximum) == (tile[index], shows[index], running)
        if not opening:
            assert rise == min(63, running - before)
        if streams > 1:
            assert reached == running
