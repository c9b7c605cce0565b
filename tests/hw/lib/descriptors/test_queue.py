# amaranth: UnusedElaboratable=no
"""Descriptors come in order, however slow memory and user are, and no more are asked for than have room."""

import random

import pytest

from hw.errors import InputError
from hw.lib.descriptors.queue import DescriptorQueue
from tests.support.gateware.streams import get, put, simulate
from tests.support.proofs.mutants import mutant


@pytest.mark.parametrize("stall", [0.0, 0.7])
def test_two_launches(stall):
    rng = random.Random(f"{stall}")
    unit = DescriptorQueue(pitch_bytes=96, used_bytes=64, data_width=128, ahead=2)
    launches = [(0x1000, 5), (0x8000, 3)]
    content = {base + 96 * n: rng.getrandbits(512) for base, count in launches for n in range(count)}
    asked, received, outstanding = [], [], [0]

    async def memory(ctx):
        while True:
            [address] = await get(ctx, unit.fetch, 1, stall=stall)
            asked.append(address)
            outstanding[0] += 1
            assert outstanding[0] <= 4  # two in the queue, one joined, one taken in this cycle
            words = [content[address] >> 128 * n & (1 << 128) - 1 for n in range(4)]
            await put(ctx, unit.words, words, stall=stall)

    async def use(ctx):
        for base, count in launches:
            ctx.set(unit.address, base)
            ctx.set(unit.count, count)
            ctx.set(unit.start, 1)
            await ctx.tick()
            ctx.set(unit.start, 0)
            for _ in range(count):
                assert ctx.get(unit.left)
                received.extend(await get(ctx, unit.o, 1, stall=stall))
                outstanding[0] -= 1
            await ctx.tick()
            assert not ctx.get(unit.left)

    simulate(unit, use, background=[memory])
    assert asked == list(content)
    assert received == list(content.values())


def asked_ahead(queue):
    """Return how many descriptors are asked for while nobody takes one."""
    unit = queue(pitch_bytes=64, used_bytes=64, data_width=128, ahead=2)
    asked = []

    async def memory(ctx):
        while True:
            asked.extend(await get(ctx, unit.fetch, 1))
            await put(ctx, unit.words, [0] * 4)

    async def start(ctx):
        ctx.set(unit.count, 9)
        ctx.set(unit.start, 1)
        await ctx.tick()
        ctx.set(unit.start, 0)
        for _ in range(100):
            await ctx.tick()

    simulate(unit, start, background=[memory])
    return len(asked)


def test_no_more_are_asked_for_than_have_room():
    """Two, behind the one that is offered."""
    assert asked_ahead(DescriptorQueue) == 3
    assert asked_ahead(mutant(DescriptorQueue, "(ahead != self._ahead)", "(ahead != self._ahead + 1)")) > 3


def test_sizes_are_checked():
    with pytest.raises(InputError, match="used_bytes must be words of 16, up to 96, not 40"):
        DescriptorQueue(pitch_bytes=96, used_bytes=40, data_width=128, ahead=2)
