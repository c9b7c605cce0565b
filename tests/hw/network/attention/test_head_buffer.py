# amaranth: UnusedElaboratable=no
"""The ring of a head's rows: each pass takes them from the first one on, and the last pass frees them."""

import random
from collections import deque

import pytest

from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.head_buffer import HeadBuffer
from hw.network.scratchpad.shape import GranuleShape
from tests.support.gateware.streams import Side, built, exchange_within, hash_seed, simulate

CONFIG = AttentionUnitConfig(shape=GranuleShape(), rows=2, lanes=16, tile_keys=16, merge_lanes=2, tokens=16)


def run(heads, *, stall, latency, seed):
    """Send the rows of heads, as fast as there is room; return the rows taken, and their cycles.

    ``heads``: of each the rows of its passes, the last of which takes all.
    """
    dut = built(HeadBuffer, CONFIG)
    rng = random.Random(hash_seed(seed, "rows"))
    rows = [[rng.getrandbits(128) for _ in range(passes[-1])] for passes in heads]
    spans = [
        {"last": count - 1, "frees": int(at == len(passes) - 1)}
        for passes in heads
        for at, count in enumerate(passes)
    ]
    wanted = [row for passes, own in zip(heads, rows, strict=True) for count in passes for row in own[:count]]
    sides = {
        "span": Side(dut.span, items=spans, stall=stall),
        "o": Side(dut.o, count=len(wanted), stall=stall),
    }

    async def main(ctx):
        await exchange_within(ctx, sides, seed=seed)

    async def scratchpad(ctx):
        waiting = deque(row for own in rows for row in own)
        coming, cycle = deque(), 0
        while True:
            ask = bool(waiting) and bool(ctx.get(dut.room)) and rng.random() >= stall
            if ask:
                coming.append((cycle + latency, waiting.popleft()))
            arrives = bool(coming) and coming[0][0] <= cycle and rng.random() >= stall
            ctx.set(dut.asked, ask)
            ctx.set(dut.arrived, arrives)
            ctx.set(dut.row, coming.popleft()[1] if arrives else rng.getrandbits(128))
            await ctx.tick()
            cycle += 1

    simulate(dut, main, background=[scratchpad])
    return sides["o"].received == wanted, sides["o"]


@pytest.mark.parametrize("stall", [0.0, 0.3, 0.8])
def test_rows_come_again_in_every_pass(stall):
    rng = random.Random(int(10 * stall))
    heads = []
    for _ in range(12):
        whole = rng.choice((1, 2, 15, 16, rng.randint(1, 16)))
        heads.append([*sorted(rng.randint(1, whole) for _ in range(rng.randrange(4))), whole])
    right, _ = run(heads, stall=stall, latency=7, seed=1)
    assert right


def test_no_cycle_between_passes_and_heads():
    """Two heads fit, so the next one is there when a head ends."""
    right, side = run([[8, 8, 8], [8, 8], [7, 8], [8, 8], [8, 8]], stall=0.0, latency=5, seed=2)
    assert right
    assert side.gapless
