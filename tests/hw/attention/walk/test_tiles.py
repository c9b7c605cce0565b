# amaranth: UnusedElaboratable=no
"""The tiles of each pass and stream, and the bitmap's way to the streams."""

import numpy as np
import pytest

from hw.attention.core.command import NO_KEY
from hw.attention.walk.job_setup import BITMAP_ROW_BYTES
from hw.attention.walk.table_words import WORD_TILES, TableWords
from hw.attention.walk.tiles import TileWalker
from tests.hw.attention.plain import bitmap_rows, decoding, is_empty, passes, random_job, small, tiles
from tests.hw.attention.walk.test_job_queue import addressed
from tests.hw.attention.walk.test_passes import expected_keys
from tests.hw.lib.rows.test_rows import packed_words
from tests.support.gateware.streams import STALLS, Side, built, exchange, seeds
from tests.support.proofs.mutants import mutant


def stream_words(this):
    """Return the words that every stream gets for a pass."""
    if this.job.bits is None:
        return []
    size = len(bitmap_rows(this.job)) // len(this.job.bits)
    row = bitmap_rows(this.job)[this.block * size : (this.block + 1) * size]
    bits = np.unpackbits(np.frombuffer(row, np.uint8), bitorder="little").reshape(-1, WORD_TILES)
    return [sum(int(bit) << n for n, bit in enumerate(word)) for word in bits]


def expected_tiles(config, this, stream):
    keys = expected_keys(config, this)
    found = [] if is_empty(this) else tiles(config, this, stream) or [(None, 0, 1)]
    common = {
        "last_key_part": keys["source"]["last_key_part"],
        "last_value_part": keys["source"]["last_value_part"],
    }
    if config.logit_cap:
        common["cap"] = this.job.cap
    if config.decodes:
        common["keep"] = keys["source"]["keep"]
    requests = []
    for n, (tile, lead, count) in enumerate(found):
        dummy, decode = tile is None, this.job.decode
        keys_apart, key = (config.decode_streams, 0) if decode else (config.streams, stream)
        command = {
            "first": NO_KEY if dummy else (tile * config.tile_keys + lead) * keys_apart + key,
            "last_index": count - 1,
            "opens": int(n == 0),
            "closes": int(n == len(found) - 1),
            "dummy": int(dummy),
        }
        clear = keys["clear"] if n == 0 else 0
        place = {"tile": 0 if dummy and decode else tile, "lead": lead, "last": lead + count - 1}
        requests.append(place | {"clear": clear, "command": command | common, "source": keys["source"]})
    return requests


def walk(config, walked, stream, *, stall=0.0, seed=0):
    """Put passes through a walker and check its tiles; gives the sides."""
    walker = built(TileWalker, config, index=stream)
    expected, owed = [], 0
    for this in walked:
        requests = expected_tiles(config, this, stream)
        # A clear waits for the next tile there is.
        owed |= expected_keys(config, this)["clear"]
        if requests:
            requests[0]["clear"], owed = owed, 0
        expected += requests
    words = [word for this in walked for word in stream_words(this)]
    sides = {
        "i": Side(walker.i, items=[expected_keys(config, this) for this in walked], stall=stall),
        "words": Side(walker.words, items=words, stall=stall),
        "o": Side(walker.o, count=len(expected), stall=stall),
    }
    empty = []

    async def note(ctx):
        while True:
            _, _, valid, payload = await ctx.tick().sample(walker.empty.valid, walker.empty.payload)
            if valid:
                empty.append(payload)

    exchange(walker, sides, seed=seed, background=[] if stream else [note])
    if not stream:
        # The last pass may be empty, and the run end with the tiles of one before.
        known = [int(is_empty(this)) for this in walked]
        assert empty == known[: len(empty)]
        assert not any(expected_tiles(config, this, 0) for this in walked[len(empty) :])
    for got, want in zip(sides["o"].received, expected, strict=True):
        if want["command"]["dummy"] and not want["source"].get("decode"):
            got |= {name: want[name] for name in ("tile", "lead", "last")}
        assert got == want
    return sides


@pytest.mark.parametrize("streams", [1, 2, 4])
@pytest.mark.parametrize("seed", seeds(3, 30))
def test_tiles_of_random_passes(streams, seed):
    rng = np.random.default_rng(seed)
    config = small(streams=streams, logit_cap=bool(seed % 2), folds=3, ports_per_stream=2)
    jobs = [addressed(rng, random_job(rng, config, most_keys=300)) for _ in range(6)]
    walked = [this for job in jobs for this in passes(config, job)]
    stream = int(rng.integers(streams))
    walk(config, walked, stream, stall=float(rng.choice(STALLS[:3])), seed=seed)


@pytest.mark.parametrize("streams", [2, 4])
@pytest.mark.parametrize("seed", seeds(2, 20))
def test_tiles_of_both_phases(streams, seed):
    rng = np.random.default_rng(seed)
    config = decoding(streams=streams, ports_per_stream=2)
    jobs = [addressed(rng, random_job(rng, config, most_keys=300)) for _ in range(8)]
    # More queries than keys: the first ones see none.
    jobs.append(addressed(rng, random_job(rng, config, queries=5, keys=3, causal=True, decode=True)))
    walked = [this for job in jobs for this in passes(config, job)]
    walk(config, walked, int(rng.integers(streams)), stall=float(rng.choice(STALLS[:3])), seed=seed)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("window", [5, 16, 23], ids=lambda keys: f"{keys} sixteenths of a tile")
@pytest.mark.parametrize("streams", [1, 2, pytest.param(4, marks=pytest.mark.soak)])
def test_a_window_begins_within_a_tile(streams, window, sparse):
    """Windows narrower than a tile, as wide, and wider: they begin at any key of it, and between streams."""
    rng = np.random.default_rng([streams, window])
    config = small(streams=streams, rows=3)
    tokens = 4 * config.tile_span
    shape = {"heads": 1, "kv_group": 1, "pack": 1, "causal": True, "windowed": True}
    bits = rng.random((-(-tokens // 3), 4)) < 0.7 if sparse else None
    shape |= {"queries": tokens, "keys": tokens, "window": window * streams}
    job = random_job(rng, config, **shape, bits=bits)
    walked = passes(config, addressed(rng, job))
    first = [[next(iter(tiles(config, this, s)), (None, 0, 0)) for s in range(streams)] for this in walked]
    assert len({lead for of_pass in first for _, lead, _ in of_pass}) > config.tile_keys // 2
    assert any(len({tile for tile, _, _ in of_pass}) > 1 for of_pass in first) == (streams > 1)
    for stream in range(streams):
        walk(config, walked, stream, stall=0.3, seed=stream)


@pytest.mark.parametrize("streams", [1, pytest.param(16, marks=pytest.mark.soak)])
def test_long_bitmap_rows(streams):
    """Tiles far apart: the range cuts bits off on both sides, also within and between words."""
    rng = np.random.default_rng(streams)
    config = small(streams=streams, rows=2)
    walked = []
    for keys, window in ((65536, 65536), (65535, 30_000), (40_000, 17), (20_000, 5_000)):
        job = random_job(
            rng, config, queries=7, keys=keys, causal=True, windowed=True, window=window, heads=1, kv_group=1
        )
        job.pack = 1
        job.bits = rng.random((4, -(-keys // (16 * streams)))) < 0.01 * streams
        job.bits[2] = False
        job.bits[3, -40:] = True
        # Block by block, so that the rule need not be asked for each of 65,536 keys and all passes.
        walked += [this for this in passes(config, addressed(rng, job)) if this.block in (0, 2, 3)][:3]
    walk(config, walked, streams - 1)


def clears(walker_type, config, walked):
    """Return what a walker says of the caches before each tile."""
    walker = built(walker_type, config, index=0)
    count = sum(not is_empty(this) for this in walked)
    sides = {
        "i": Side(walker.i, items=[expected_keys(config, this) for this in walked]),
        "words": Side(walker.words, items=[word for this in walked for word in stream_words(this)]),
        "o": Side(walker.o, count=count),
    }
    exchange(walker, sides)
    return [request["clear"] for request in sides["o"].received]


def empty_blocks(config, blocks):
    """Return the passes of two jobs, whose blocks see a tile where ``blocks`` has a bit, and else nothing."""
    rng = np.random.default_rng(0)
    bits = np.zeros((len(blocks), 8 * BITMAP_ROW_BYTES), bool)  # whole rows, as padding is no zeros
    bits[:, 7] = blocks
    shape = {"queries": len(blocks) * config.rows, "keys": bits.shape[1] * config.tile_span, "heads": 1}
    shape |= {"kv_group": 1, "pack": 1, "causal": False, "windowed": False, "bits": bits}
    jobs = [addressed(rng, random_job(rng, config, **shape)) for _ in range(2)]
    return [this for job in jobs for this in passes(config, job)]


@pytest.mark.parametrize("blocks", [[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0, 1, 1]])
def test_a_clear_outlasts_passes_without_tiles(blocks):
    """The first pass of a head has none, and neither have those behind it: its clear waits for a tile."""
    config = small()
    first = [int(n == 0) for n in range(sum(blocks))]
    assert clears(TileWalker, config, empty_blocks(config, blocks)) == 2 * first


@pytest.mark.parametrize("sparse", [False, True])
def test_passes_before_the_first_key_are_empty(sparse):
    """Two of three blocks of queries stand before it: neither has a tile, whatever a bitmap says."""
    config = small()
    walked = early_blocks(config, sparse=sparse)
    assert [is_empty(this) for this in walked] == [True, True, False]
    assert clears(TileWalker, config, walked) == [1]
    walk(config, walked, 0)


def early_blocks(config, *, sparse):
    """Return the passes of a causal job with three blocks of queries, of which the last one meets its
    keys.
    """
    shape = {"queries": 3 * config.rows, "keys": config.rows, "heads": 1, "kv_group": 1, "pack": 1}
    shape |= {"causal": True, "windowed": False, "bits": np.ones((3, 1), bool) if sparse else None}
    rng = np.random.default_rng(0)
    return passes(config, addressed(rng, random_job(rng, config, **shape)))


@pytest.mark.parametrize(
    ("old", "sparse"), [("owed | now.current.clear", True), ("owed | given.clear", False)]
)
def test_a_clear_that_is_lost_is_missed(old, sparse):
    config = small()
    lost = mutant(TileWalker, f"now.owed.eq(now.{old})", f"now.owed.eq({old.removeprefix('owed | ')})")
    walked = empty_blocks(config, [0, 0, 1])[:3] if sparse else early_blocks(config, sparse=False)
    assert clears(lost, config, walked) == [0]


def test_a_tile_a_cycle():
    config = small()
    rng = np.random.default_rng(0)
    job = random_job(rng, config, queries=1, keys=320, heads=1, kv_group=1, pack=1, windowed=False, bits=None)
    cycles = walk(config, passes(config, addressed(rng, job)), 0)["o"].cycles
    assert cycles == list(range(2, 22)) or cycles == list(range(1, 21))


@pytest.mark.sample(3)
@pytest.mark.parametrize("width", [128, 256, 512, 1024])
@pytest.mark.parametrize(("streams", "ends"), [(1, 0), (4, 0), (4, 1), (16, 0)])
def test_table_words(width, streams, ends):
    """Words of half the bits when each is to say whether it is the last one of its table."""
    rng = np.random.default_rng(width + streams)
    config = small(streams=streams)
    stall = float(rng.choice(STALLS[:3]))
    rows = [rng.integers(0, 256, 32 * int(rng.integers(1, 5)), np.uint8).tobytes() for _ in range(6)]
    bits_each = WORD_TILES >> ends
    unit = TableWords(config, bits_each + ends, word_bits=bits_each, depth=8, data_width=width)
    items = [word for row in rows for word in packed_words([row], len(row), width)]
    expected = []
    for row in rows:
        step = bits_each // 8
        words = [int.from_bytes(row[at : at + step], "little") for at in range(0, len(row), step)]
        words[-1] |= ends << bits_each
        expected += words
    sides = {"i": Side(unit.i, items=items, stall=stall)}
    for s in range(streams):
        sides[f"o{s}"] = Side(unit.o[s], count=len(expected), stall=stall)
    exchange(unit, sides, seed=width)
    for s in range(streams):
        assert sides[f"o{s}"].received == expected
