# amaranth: UnusedElaboratable=no
"""The page of each tile: offsets by the table's entries, all of which are taken, pass by pass."""

import numpy as np
import pytest

from hw.attention.walk.pages import PageLookup
from tests.hw.attention.plain import page_entries, passes, random_job, small, tiles
from tests.hw.attention.walk.test_job_queue import addressed
from tests.hw.attention.walk.test_tiles import expected_tiles
from tests.support.gateware.streams import STALLS, Side, exchange, seeds


def entries_of(rng, this):
    """Draw the entries that are read for a pass, by the pages they are of."""
    pages = page_entries(this)
    return {
        page: {"k": int(rng.integers(2**32)), "v": int(rng.integers(2**32)), "last": int(page == pages[-1])}
        for page in pages
    }


def found(config, this, tile, request, entries):
    """Return a request as it must leave, for a pass that has entries."""
    request = request | {"place": tile, "source": dict(request["source"])}
    if not entries:
        return request
    size = config.tile_keys * config.streams
    page = tile * size // this.job.page_keys
    for side in "kv":
        moved = request["source"][f"{side}_offset"] + 16 * entries[page][side]
        request["source"][f"{side}_offset"] = moved % 2**64
    return request | {"place": tile - page * this.job.page_keys // size}


def look(config, walked, stream, *, stall=0.0, seed=0):
    """Put the tiles of passes through a lookup and check them; gives the sides."""
    rng = np.random.default_rng(seed)
    items, entries, expected = [], [], []
    for this in walked:
        own = entries_of(rng, this)
        entries += own.values()
        for request in expected_tiles(config, this, stream):
            tile = request["tile"]
            items.append(request | {"tile": tile or 0, "place": 0})
            expected.append(request if tile is None else found(config, this, tile, request, own))
    lookup = PageLookup(config)
    sides = {
        "i": Side(lookup.i, items=items, stall=stall),
        "entries": Side(lookup.entries, items=entries, stall=stall),
        "o": Side(lookup.o, count=len(expected), stall=stall),
    }
    exchange(lookup, sides, seed=seed)
    for got, want in zip(sides["o"].received, expected, strict=True):
        if want["command"]["dummy"]:  # without keys: wherever they would lie
            assert got["command"] == want["command"]
        else:
            assert got == want
    return sides


@pytest.mark.sample(2)
@pytest.mark.parametrize("streams", [1, 2, 4])
@pytest.mark.parametrize("seed", seeds(4, 40))
def test_tiles_of_random_passes(streams, seed):
    rng = np.random.default_rng(seed)
    config = small(streams=streams, paged=True)
    jobs = [addressed(rng, random_job(rng, config, most_keys=600)) for _ in range(6)]
    # Some see nothing in a stream, or at all.
    jobs.append(
        addressed(rng, random_job(rng, config, queries=9, keys=3, causal=True, page_keys=16 * streams))
    )
    walked = [this for job in jobs for this in passes(config, job)]
    look(config, walked, int(rng.integers(streams)), stall=float(rng.choice(STALLS[:3])), seed=seed)


@pytest.mark.parametrize("tiles_of_page", [1, 4, 4096])
def test_largest_head(tiles_of_page):
    """4,096 tiles, of which a bitmap leaves the last one: all entries are passed over, one a cycle."""
    config = small(paged=True)
    rng = np.random.default_rng(0)
    bits = np.zeros((1, 4096), bool)
    bits[0, [0, 4095]] = True
    job = random_job(rng, config, queries=1, keys=65536, heads=1, kv_group=1, pack=1, bits=bits,
                     causal=False, windowed=False, page_keys=16 * tiles_of_page)  # fmt: skip
    (this,) = passes(config, addressed(rng, job))
    assert tiles(config, this, 0) == [(0, 0, 16), (4095, 0, 16)]
    cycles = look(config, [this], 0)["o"].cycles
    assert cycles[-1] <= 4096 // tiles_of_page + 8


@pytest.mark.parametrize(("page_keys", "most"), [(0, 1), (16, 3), (64, 3)])
def test_pace(page_keys, most):
    """A tile a cycle without pages; with them one in three cycles, of which one is for another page."""
    config = small(paged=True)
    rng = np.random.default_rng(0)
    job = random_job(rng, config, queries=1, keys=320, heads=1, kv_group=1, pack=1, windowed=False, bits=None,
                     page_keys=page_keys)  # fmt: skip
    cycles = look(config, passes(config, addressed(rng, job)), 0)["o"].cycles
    assert np.diff(cycles).max() == most
    assert cycles[0] <= 4
