"""Blocks: words at their addresses, tokens only when there is room, and no cycle lost."""

import random

import pytest

from hw.conv.core.pointwise.block import BlockBuffer
from tests.hw.conv.core.plain import small
from tests.support.gateware.streams import get, put, rule_checker, seeds, simulate

WORDS = 32


def random_map(rng):
    words = rng.choice([1, 2, 3, 5])
    block = rng.randint(1, min(16, WORDS // words))
    return {
        "block": block,
        "last_block": rng.randint(1, block),
        "blocks": rng.randint(1, 4),
        "words": words,
        "asked": rng.randrange(2),
    }


def blocks_of(command):
    """Pixels of each block."""
    return [command["block"]] * (command["blocks"] - 1) + [command["last_block"]]


@pytest.mark.parametrize("seed", seeds(4, 40))
@pytest.mark.parametrize("patient", [True, False], ids=["waits for tokens", "words at once"])
def test_blocks(seed, patient):
    """With patience the words of a block follow its token."""
    rng = random.Random(f"block {seed}")
    maps = [random_map(rng) for _ in range(6)]
    stalls = [rng.choice([0.0, 0.5]) for _ in range(4)]
    config = small()
    unit = BlockBuffer(config, words=WORDS)
    blocks = [(given["asked"], n * given["words"]) for given in maps for n in blocks_of(given)]
    asked = [n for n, (is_asked, _) in enumerate(blocks) if is_asked]
    contents = [[rng.getrandbits(config.word_bits) for _ in range(size)] for _, size in blocks]
    done = {"tokens": 0, "claimed": 0, "released": 0}

    async def commands(ctx):
        await put(ctx, unit.command, maps, stall=stalls[0])

    async def tokens(ctx):
        for number in asked:
            await get(ctx, unit.token, 1, stall=stalls[1], seed=number)
            done["tokens"] += 1
            # The block has a half of its own: all blocks but the previous one are released.
            assert number <= done["released"] + 1

    async def words(ctx):
        for number, content in enumerate(contents):
            while patient and blocks[number][0] and asked.index(number) >= done["tokens"]:
                await ctx.tick()
            await put(ctx, unit.i, content, stall=stalls[2], seed=number)

    async def reader(ctx):
        chooser = random.Random(f"reader {seed}")
        for number, content in enumerate(contents):
            while not ctx.get(unit.read.full) or chooser.random() < stalls[3]:
                await ctx.tick()
            ctx.set(unit.read.claim, 1)
            await ctx.tick()
            ctx.set(unit.read.claim, 0)
            done["claimed"] += 1
            found, issued = [], []
            while len(found) < len(content):
                moves = chooser.random() >= stalls[3]
                ctx.set(unit.read.en, moves)
                ctx.set(unit.read.address, min(len(issued), len(content) - 1) + WORDS * (number % 2))
                if moves and len(issued) >= 2:
                    found.append(ctx.get(unit.read.word))
                issued += [0] * moves
                await ctx.tick()
            ctx.set(unit.read.en, 0)
            assert found == content
            ctx.set(unit.read.release, 1)
            await ctx.tick()
            ctx.set(unit.read.release, 0)
            done["released"] += 1

    background = [rule_checker(unit.token, "token"), rule_checker(unit.i, "words")]
    simulate(unit, commands, tokens, words, reader, background=background)
    assert done["released"] == len(blocks)


def test_no_cycle_is_lost():
    """The words of a map enter one a cycle while its blocks are released as they fill."""
    command = {"block": 4, "last_block": 3, "blocks": 6, "words": 2, "asked": 0}
    unit = BlockBuffer(small(), words=WORDS)
    entered = []

    async def fill(ctx):
        await put(ctx, unit.command, [command])
        await put(ctx, unit.i, range(2 * sum(blocks_of(command))))

    async def release(ctx):
        taken = 0
        for _ in range(80):
            full = ctx.get(unit.read.full)
            ctx.set(unit.read.claim, full)
            ctx.set(unit.read.release, full)
            taken += full
            *_, valid, ready = await ctx.tick().sample(unit.i.valid, unit.i.ready)
            entered.append(valid & ready)
        assert taken == command["blocks"]

    simulate(unit, fill, release)
    words = 2 * sum(blocks_of(command))
    first = entered.index(1)
    assert entered[first : first + words] == [1] * words
