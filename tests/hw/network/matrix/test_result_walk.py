# amaranth: UnusedElaboratable=no
"""The order of results: every word's address by block, column tile and word, and where tiles end."""

import random

import pytest

from hw.network.matrix.result_walk import ResultWalk
from hw.network.scratchpad.shape import GranuleShape
from tests.support.gateware.streams import Side, exchange_within, seeds, set_all, simulate

SHAPE = GranuleShape(banks=4, rows=8, granule_bits=32, memory="block")
GRANULES = SHAPE.words * SHAPE.granules
TILE = 4


def drawn(rng):
    order = {name: rng.randint(1, 4) for name in ("steps", "last_steps", "blocks", "n_tiles")}
    return order, rng.randrange(GRANULES), rng.randrange(GRANULES)


def wanted_of(order, base, pitch):
    """Return the places: words of a tensor of one row, numbered from block to block."""
    places = []
    for block in range(order["blocks"]):
        final = block == order["blocks"] - 1
        for tile in range(order["n_tiles"]):
            steps = order["last_steps"] if final else order["steps"]
            for step in range(steps):
                word = block * order["steps"] + step
                last_tile = tile == order["n_tiles"] - 1
                places.append(
                    {
                        "address": (base + word * pitch + tile * TILE) % GRANULES,
                        "last_tile": int(last_tile),
                        "last": int(final and last_tile and step == steps - 1),
                    }
                )
    return places


@pytest.mark.parametrize("stall", [0.0, 0.5])
@pytest.mark.parametrize("seed", seeds(1, 10))
def test_places_are_those_of_the_loops(stall, seed):
    dut = ResultWalk(SHAPE, tile_granules=TILE)
    rng = random.Random(seed)
    found, wanted = [], []

    async def bench(ctx):
        for _ in range(10):
            order, base, pitch = drawn(rng)
            places = wanted_of(order, base, pitch)
            set_all(ctx, [(dut.order, order), (dut.base, base), (dut.pitch, pitch), (dut.start, 1)])
            await ctx.tick()
            ctx.set(dut.start, 0)
            side = Side(dut.o, count=len(places), stall=stall)
            await exchange_within(ctx, {"places": side}, seed=seed)
            found.append(side.received)
            wanted.append(places)
            for _ in range(3):  # nothing follows
                assert not ctx.get(dut.o.valid)
                await ctx.tick()

    simulate(dut, bench)
    assert found == wanted
