# amaranth: UnusedElaboratable=no
"""The walk over passes, and over the rows of a pass."""

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.walk.job_setup import JobSetup
from hw.attention.walk.passes import PassWalker
from hw.attention.walk.rows import RowWalker
from tests.hw.attention.plain import (
    decoding,
    kept,
    key_bytes,
    last_part,
    page_entries,
    passes,
    port_rows,
    port_units,
    query_units,
    random_job,
    slots,
    small,
)
from tests.hw.attention.walk.test_job_queue import addressed
from tests.support.gateware.streams import STALLS, Side, exchange, seeds
from tests.support.proofs.mutants import mutant


class Walk(wiring.Component):
    """Setup and walker."""

    def __init__(self, config):
        self.setup, self.walker = JobSetup(config), PassWalker(config)
        super().__init__({"i": In(self.setup.i.signature.flip()), "o": Out(self.walker.o.signature)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.setup, m.submodules.walker = self.setup, self.walker
        connect(m, flipped(self.i), self.setup.i)
        connect(m, self.setup.o, self.walker.i)
        connect(m, self.walker.o, flipped(self.o))
        return m


def random_config(rng):
    ports = int(rng.choice([1, 2]))
    return small(
        rows=int(rng.integers(1, 9)),
        lanes=16 * ports,
        folds=int(rng.integers(1, 4)),
        streams=int(rng.choice([1, 2, 4])),
        ports_per_stream=int(rng.choice([1, 2, 4])),
        query_ports=ports,
        result_ports=int(rng.choice([1, 2, 4])),
        output=str(rng.choice(["int8", "int16", "bfloat16"])),
        logit_cap=bool(rng.random() < 0.5),
        alibi=bool(rng.random() < 0.5),
        paged=bool(rng.random() < 0.5),
    )


def segments(address, head_bytes, row_bytes, this):
    """Where the rows of a pass lie: pieces of memory that do not touch, in order."""
    pieces = []
    together = len(this.queries) == this.job.queries  # heads lie behind each other
    for head, query in this.rows:
        at = address + head * head_bytes + query * row_bytes
        if pieces and (together or query != this.queries[0]):
            assert pieces[-1][0] + pieces[-1][1] == at
            pieces[-1][1] += row_bytes
        else:
            pieces.append([at, row_bytes])
    return [tuple(piece) for piece in pieces]


def pieces_of(fields, unit=16):
    """The pieces that a `Segments` names."""
    return [
        ((fields["address"] + n * fields["stride"]) % 2**64, fields["units"] * unit)
        for n in range(fields["count"])
    ]


def expected_keys(config, this):
    job = this.job
    first, end = this.span
    rows = port_rows(config, job.page_keys or job.keys)
    count, ring = slots(config, job)
    source = {
        "k_offset": (job.address["k_offset"] + this.kv_head * rows * key_bytes(config, job.dqk)) % 2**64,
        "v_offset": (job.address["v_offset"] + this.kv_head * rows * key_bytes(config, job.dv)) % 2**64,
        "key_units": key_bytes(config, job.dqk) // 16,
        "value_units": key_bytes(config, job.dv) // 16,
        "last_key_part": last_part(config, job.dqk),
        "last_value_part": last_part(config, job.dv),
        "slots": count,
        "ring": int(ring),
    }
    if config.logit_cap:
        source["cap"] = job.cap
    if config.decodes:
        again, keep = kept(config, this)
        source |= {"decode": int(job.decode), "again": int(again), "keep": int(keep)}
    if config.paged:
        entries, size = page_entries(this), config.tile_keys * config.streams
        of_page = job.page_keys // size or 2 ** (65536 // size).bit_length()
        source |= {"paged": int(entries != []), "page_mask": of_page - 1, "first_paged": 0}
        if entries:
            source["first_paged"] = entries[0] * of_page
    return {
        "first": first,
        "end": end,
        "none": int(end == 0),
        "bitmap_rows": 0 if job.bits is None else -(-job.keys // (256 * config.tile_keys * config.streams)),
        "clear": int(this.opens_head and not (job.reuse_kv and this.kv_head == 0)),
        "source": source,
    }


def check_pass(config, this, got):
    job, size = this.job, 16 * port_units(config, this.job.dv)
    assert got["command"] == {
        "rows": len(this.rows),
        "last_key_part": last_part(config, job.dqk),
        "last_value_part": last_part(config, job.dv),
        "value_units": job.dv // 16,
        "scale": job.scale,
    }
    keys = expected_keys(config, this)
    if keys["none"]:
        got["keys"] |= {"first": 0, "end": 0}  # no key: whatever they are
    if config.paged and not keys["source"]["paged"]:
        got["keys"]["source"]["first_paged"] = 0  # no entries: whatever it is
    assert got["keys"] == keys
    read, write, tables = got["queries"], got["write"], got["tables"]
    query = 16 * query_units(config, job.dqk)
    assert pieces_of(read["q"]) == segments(job.address["q_offset"], job.queries * query, query, this)
    assert pieces_of(write["o"]) == segments(job.address["o_offset"], job.queries * size, size, this)
    assert (
        read["q"]["rows"] * read["q"]["count"] == len(this.rows) == write["o"]["rows"] * write["o"]["count"]
    )
    assert (read["units"], write["units"]) == (query // 16, size // 16)
    assert tables["bitmap_rows"] == keys["bitmap_rows"]
    if job.bits is not None:
        assert tables["bitmap"] == (job.address["bitmap"] + this.block * 32 * tables["bitmap_rows"]) % 2**64
    if config.paged:
        entries = page_entries(this)
        assert tables["page_groups"] == len(entries) // 4
        if entries:
            assert tables["pages"] == (job.address["pages"] + 8 * entries[0]) % 2**64
    if config.alibi:
        given = job.slope is not None
        assert tables["heads"] == (len(this.heads) if given and this.opens_set else 0)
        if tables["heads"]:
            assert tables["slopes"] == (job.address["slopes"] + 4 * this.heads[0]) % 2**64
        assert got["rows"]["slopes"] == (2 + this.opens_set if given else 0)
    expected = {
        "heads": len(this.heads),
        "positions": len(this.queries),
        "position": this.queries[0] + job.keys - job.queries,
        "causal": int(job.causal),
        "windowed": int(job.windowed),
        "window": job.window,
        "keys": job.keys,
        "multiplier": job.multiplier,
        "shift": job.shift,
    }
    assert expected.items() <= got["rows"].items()


@pytest.mark.parametrize("phases", [False, True])
@pytest.mark.parametrize("seed", seeds(5, 40))
def test_passes(seed, phases):
    rng = np.random.default_rng(seed)
    config = decoding(lanes=32, ports_per_stream=2) if phases else random_config(rng)
    jobs = [
        addressed(rng, random_job(rng, config, most_keys=80, reuse_kv=bool(rng.random() < 0.2)))
        for _ in range(6)
    ]
    jobs.insert(3, addressed(rng, random_job(rng, config, keys=0, bits=None)))
    expected = [this for job in jobs for this in passes(config, job)]
    walk = Walk(config)
    stalls = [0.0, float(rng.choice(STALLS))]
    sides = {
        "i": Side(walk.i, items=[job.layout(config) for job in jobs], stall=stalls[seed % 2]),
        "o": Side(walk.o, count=len(expected), stall=stalls[seed % 2]),
    }
    exchange(walk, sides, seed=seed)
    for this, got in zip(expected, sides["o"].received, strict=True):
        check_pass(config, this, got)
    if seed % 2 == 0:
        steps = np.diff(sides["o"].cycles)
        assert sides["o"].cycles[0] == 5
        assert steps.max() <= 7  # an empty job and a new one lie between two passes
        assert np.median(steps) <= 4


def walked(config, jobs):
    """Walk over jobs and check every pass; gives what was found of each."""
    expected = [this for job in jobs for this in passes(config, job)]
    walk = Walk(config)
    sides = {
        "i": Side(walk.i, items=[job.layout(config) for job in jobs]),
        "o": Side(walk.o, count=len(expected)),
    }
    exchange(walk, sides)
    for this, got in zip(expected, sides["o"].received, strict=True):
        check_pass(config, this, got)
    return sides["o"].received


def test_keys_are_kept_if_there_is_room_for_them():
    rng = np.random.default_rng(0)
    config = decoding(lanes=32, ports_per_stream=2)
    shape = {"heads": 10, "kv_group": 5, "pack": 2, "decode": True, "bits": None, "dqk": 32}
    jobs = [
        addressed(rng, random_job(rng, config, **shape, dv=dv, keys=keys, queries=queries))
        for dv, keys, queries in ((32, 1024, 1), (32, 1025, 1), (64, 512, 1), (48, 513, 1), (32, 40, 2))
    ]
    given = walked(config, jobs)
    sources = [got["keys"]["source"] for got in given]
    assert [source["keep"] for source in sources[:12]] == [1, 1, 0, 1, 1, 0] + 6 * [0]
    assert [source["again"] for source in sources[:12]] == [0, 1, 1, 0, 1, 1] + 6 * [0]


def test_heads_of_the_greatest_size():
    """65,536 queries and keys: the sums near the ends of their widths, walked from the last block but one."""
    rng = np.random.default_rng(0)
    config = small(rows=64, folds=4)
    job = random_job(rng, config, queries=2, keys=65536, causal=True, windowed=True, window=65536, bits=None)
    job.heads = job.kv_group = job.pack = 2
    addressed(rng, job)
    walk = Walk(config)
    sides = {"i": Side(walk.i, items=[job.layout(config)]), "o": Side(walk.o, count=1)}
    exchange(walk, sides)
    keys = sides["o"].received[0]["keys"]
    assert (keys["first"], keys["end"], keys["none"]) == (0, 65536, 0)


@pytest.mark.parametrize(
    ("queries", "keys", "window"), [(3, 64, 0), (3, 65, 0), (9, 200, 65), (70, 128, 64), (9, 3, 0), (9, 3, 2)]
)
def test_entries_of_pages(queries, keys, window):
    """Keys that end with the entries of 32 bytes, windows that begin with them, and rows that see nothing."""
    rng = np.random.default_rng(keys)
    config = small(paged=True)
    shape = {"queries": queries, "keys": keys, "causal": True, "windowed": window > 0, "window": window}
    jobs = [addressed(rng, random_job(rng, config, **shape, page_keys=page_keys)) for page_keys in (16, 32)]
    walked(config, jobs)


def slope_words(slopes, width):
    raw = b"".join(slope.to_bytes(4, "little") for slope in slopes)
    step = width // 8
    return [
        int.from_bytes(raw[at : at + step].ljust(step, b"\x5a"), "little") for at in range(0, len(raw), step)
    ]


def row_item(this):
    """Return a pass as the walker of rows takes it."""
    job = this.job
    return {
        "heads": len(this.heads),
        "positions": len(this.queries),
        "position": this.queries[0] + job.keys - job.queries,
        "causal": job.causal,
        "windowed": job.windowed,
        "window": job.window,
        "keys": job.keys,
        "multiplier": job.multiplier,
        "shift": job.shift,
    }


@pytest.mark.parametrize("width", [128, 256])
@pytest.mark.parametrize("seed", seeds(4, 20))
def test_rows(width, seed):
    rng = np.random.default_rng(seed)
    config = random_config(rng)
    jobs = [addressed(rng, random_job(rng, config, most_keys=80)) for _ in range(5)]
    walked = [this for job in jobs for this in passes(config, job)]
    words, expected, items = [], [], []
    for this in walked:
        job = this.job
        item = row_item(this)
        if config.alibi:
            item["slopes"] = 0 if job.slope is None else 2 + this.opens_set
            if job.slope is not None and this.opens_set:
                words += slope_words([job.slope[head] for head in this.heads], width)
        items.append(item)
        for head, query in this.rows:
            seen = [key for key in range(job.keys) if job.sees(query, key)]
            settings = {"seen": seen, "multiplier": job.multiplier, "shift": job.shift}
            if config.alibi:
                settings["position"] = query + job.keys - job.queries
                settings["slope"] = 0 if job.slope is None else job.slope[head]
            expected.append(settings)
    walker = RowWalker(config, data_width=width)
    stall = float(rng.choice(STALLS[:3]))
    sides = {
        "i": Side(walker.i, items=items, stall=stall),
        "o": Side(walker.o, count=len(expected), stall=stall),
    }
    if config.alibi:
        sides["words"] = Side(walker.words, items=words, stall=stall)
    exchange(walker, sides, seed=seed)
    for row, want in zip(sides["o"].received, expected, strict=True):
        assert list(range(row.pop("first"), row.pop("end"))) == want.pop("seen")
        assert row == want
    if stall == 0.0 and not config.alibi:
        assert sides["o"].cycles[-1] <= len(expected) + 2


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys", "window"), [(9, 9, 4), (9, 9, 40), (12, 5, 3), (3, 9, 1)])
def test_windows_that_reach_beyond_the_first_key(queries, keys, window, causal):
    """Each row's keys begin with the first one there is, also where positions are negative."""
    config = small()
    job = random_job(
        np.random.default_rng(0), config, queries=queries, keys=keys, pack=1, heads=1, kv_group=1
    )
    job.windowed, job.causal, job.window, job.bits = True, causal, window, None
    found = row_ranges(RowWalker, config, job)
    for query, (first, end) in enumerate(found):
        assert list(range(first, end)) == [key for key in range(keys) if job.sees(query, key)]


def row_ranges(walker_type, config, job):
    """Return the first key of each query of a job of one head, and the one behind its last."""
    walker = walker_type(config, data_width=128)
    items = [row_item(this) for this in passes(config, job)]
    sides = {"i": Side(walker.i, items=items), "o": Side(walker.o, count=job.queries)}
    exchange(walker, sides)
    return [(row["first"], row["end"]) for row in sides["o"].received]


def test_a_window_that_begins_before_the_first_key_is_missed():
    config = small()
    job = random_job(np.random.default_rng(0), config, queries=3, keys=9, pack=1, heads=1, kv_group=1)
    job.windowed, job.causal, job.window, job.bits = True, False, 8, None
    unclamped = mutant(RowWalker, "current.windowed & (oldest > 0)", "current.windowed")
    assert row_ranges(RowWalker, config, job) == [(0, 9), (0, 9), (1, 9)]
    assert row_ranges(unclamped, config, job)[0][0] == 2**17 - 1
