# amaranth: UnusedElaboratable=no
"""The word gate: no request before its word, and each as early as the gate says, over the counts' end."""

import random

import pytest

from hw.network.commands import Core, Follow
from hw.network.matrix.word_gate import CORES, COUNT_BITS, WordGate, follow_fields
from tests.support.gateware.streams import seeds, set_all, simulate


def needs(follow):
    """Return the count that each request waits for, by the definition."""
    return [
        follow.first + tile * follow.tile_step + n * follow.step + 1
        for tile in range(follow.tiles)
        for n in range(follow.per_tile)
    ]


def drawn(rng, counts):
    core = rng.choice([*Core])
    return Follow(
        core=core,
        first=counts[core] + rng.randint(-30, 20),
        step=rng.randint(0, 3),
        tile_step=rng.choice([0, 5, -4, 12]),
        per_tile=rng.randint(1, 6),
        tiles=rng.randint(1, 5),
    )


@pytest.mark.parametrize("seed", seeds(2, 30))
def test_requests_follow_their_words(seed):
    dut, rng = WordGate(), random.Random(seed)
    counts = [(1 << COUNT_BITS) - rng.randrange(100) for _ in range(CORES)]
    history = [list(counts)]  # of each cycle

    async def step(ctx, pace):
        await ctx.tick()
        for n in range(CORES):
            counts[n] += rng.random() < pace
        history.append(list(counts))
        set_all(
            ctx, [(port, count % (1 << COUNT_BITS)) for port, count in zip(dut.counts, counts, strict=True)]
        )

    async def bench(ctx):
        await step(ctx, 0)
        assert ctx.get(dut.go)
        for _ in range(60):
            pace = rng.choice([0.2, 1])
            given = drawn(rng, counts) if rng.random() < 0.8 else None
            waits = needs(given) if given else []
            set_all(ctx, [(dut.start, 1), (dut.follow, follow_fields(given)), (dut.taken, ctx.get(dut.go))])
            started = len(history) - 1
            await step(ctx, pace)
            set_all(ctx, [(dut.start, 0), (dut.taken, 0)])
            for need in waits:
                while True:
                    seen = history[-1 - WordGate.LATENCY][given.core]
                    early = len(history) - 1 < started + WordGate.START
                    assert ctx.get(dut.go) == (not early and seen >= need)
                    take = ctx.get(dut.go) and rng.random() < pace
                    ctx.set(dut.taken, take)
                    await step(ctx, pace)
                    if take:
                        break
            for _ in range(rng.randrange(3)):
                assert ctx.get(dut.go)
                ctx.set(dut.taken, rng.randrange(2))
                await step(ctx, pace)
            assert ctx.get(dut.go)

    simulate(dut, bench)
    assert all(count > 1 << COUNT_BITS for count in counts)
