"""The order of words that leave, against plain loops; no cycle is lost between the blocks of a layer."""

import itertools
import random

import pytest

from hw.conv.core.pointwise.drain import Drain
from tests.hw.conv.core.plain import small
from tests.support.gateware.streams import put, seeds, simulate

WORDS = 64  # of a half of either buffer


def expected(layers):
    """For each word whether it is shuffled and odd, and its addresses; one list a layer."""
    half, bypass_half, found = 0, 0, []
    for layer in layers:
        words, times, parts = [], range(1 + layer["double"]), range(layer["parts"])
        for block in range(layer["blocks"]):
            rows = layer["last_rows"] if block == layer["blocks"] - 1 else layer["rows"]
            for row, _ in itertools.product(range(rows), times):
                pixels = range(row * layer["columns"], (row + 1) * layer["columns"])
                if layer["split"]:
                    order = [(pixel, part) for part in parts for pixel in pixels for _ in times]
                else:
                    order = [(pixel, part) for pixel in pixels for _ in times for part in parts]
                for (pixel, part), word in itertools.product(order, range(layer["part_words"])):
                    place = word // 2 if layer["shuffle"] else word
                    address = (pixel * layer["parts"] + part) * layer["words"] + place
                    bypass = address + bypass_half * WORDS if layer["shuffle"] else None
                    words.append((layer["shuffle"], word % 2, address + half * WORDS, bypass))
            half, bypass_half = 1 - half, bypass_half ^ layer["shuffle"]
        found.append(words)
    return found


def random_layer(rng):
    shuffle, words = rng.randrange(2), rng.randint(1, 2)
    columns = rng.randint(1, 5)
    rows = rng.randint(1, 16 // columns)
    return {
        "blocks": rng.randint(1, 4),
        "rows": rows,
        "last_rows": rng.randint(1, rows),
        "columns": columns,
        "words": words,
        "parts": rng.choice([1, 2]),
        "split": rng.randrange(2),
        "double": rng.randrange(2),
        "shuffle": shuffle,
        "part_words": 2 * words - rng.randrange(2) if shuffle else words,
    }


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize("seed", seeds(3, 30))
def test_order(seed, stall):
    """Blocks are ready at random times; each is claimed before its first word and released with its last."""
    rng = random.Random(f"drain {seed}")
    layers = [random_layer(rng) for _ in range(6)]
    unit, wanted = Drain(small(block_words=WORDS, bypass_words=WORDS)), expected(layers)
    count = sum(len(words) for words in wanted)
    found, cycles = [], []
    claims = {"results": 0, "bypass": 0}
    releases = dict(claims)

    async def commands(ctx):
        await put(ctx, unit.command, layers, stall=stall)

    async def bench(ctx):
        cycle = 0
        while len(found) < count or releases["results"] < claims["results"]:
            advance = rng.random() >= stall
            ctx.set(unit.advance, advance)
            for read in (unit.results, unit.bypass):
                ctx.set(read.full, rng.random() >= stall)
            for name in claims:
                read = getattr(unit, name)
                claims[name] += ctx.get(read.claim)
                releases[name] += ctx.get(read.release)
                assert not ctx.get(read.claim) or ctx.get(read.full)
            if advance and ctx.get(unit.step.valid):
                shuffle = ctx.get(unit.step.shuffle)
                bypass = ctx.get(unit.bypass.address) if shuffle else None
                found.append((shuffle, ctx.get(unit.step.odd), ctx.get(unit.results.address), bypass))
                cycles.append(cycle)
            cycle += 1
            await ctx.tick()

    simulate(unit, commands, bench)
    assert found == [word for words in wanted for word in words]
    assert claims == releases
    assert claims["results"] == sum(layer["blocks"] for layer in layers)
    assert claims["bypass"] == sum(layer["blocks"] for layer in layers if layer["shuffle"])
    if stall == 0:
        first = 0
        for words in wanted:
            ours = cycles[first : first + len(words)]
            assert ours == list(range(ours[0], ours[0] + len(words)))
            first += len(words)
