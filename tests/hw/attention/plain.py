"""Attention jobs in plain Python: which query meets which key, in which order, and what moves for it.

Every function here is the rule itself, written as loops over heads, positions, tiles and keys, without any of
the arithmetic by which the gateware avoids these loops.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hw.attention.config import AttentionConfig
from hw.attention.driver.shapes import JobShape


def small(**changes) -> AttentionConfig:
    """Return a small configuration; of what is not named, one that fits what is."""
    fields = {"rows": 4, "lanes": 32, "tile_keys": 16, "ports_per_stream": 1, "cached_keys": 64} | changes
    fields.setdefault("merge_lanes", 1 << (fields["lanes"] // 8).bit_length() - 1)
    return AttentionConfig(**fields)


def decoding(**changes) -> AttentionConfig:
    """Return a small configuration that decodes; of what is not named, one that fits what is."""
    fields = {"lanes": 16, "folds": 2, "streams": 2, "ports_per_stream": 2} | changes
    fields |= {"rows": 2 * fields["ports_per_stream"], "port_bits": 8 * fields["lanes"], "decode": True}
    return small(**fields)


@dataclass
class PlainJob:
    """One job: numbers, and the addresses that a test gives its tensors."""

    queries: int
    keys: int
    heads: int = 1
    kv_group: int = 1
    pack: int = 1
    dqk: int = 32
    dv: int = 32
    causal: bool = False
    windowed: bool = False
    window: int = 1
    reuse_kv: bool = False
    bits: np.ndarray | None = None  # bool [blocks, tiles]
    slope: list[int] | None = None
    multiplier: int = 70_000
    shift: int = 20
    scale: dict = field(default_factory=lambda: {"fraction": 8})
    cap: int = 0
    page_keys: int = 0  # keys of a page; 0 for none
    decode: bool = False
    address: dict = field(
        default_factory=dict
    )  # q_offset, bitmap, slopes, pages, k_offset, v_offset, o_offset

    @property
    def empty(self):
        return 0 in (self.queries, self.keys, self.heads)

    def layout(self, config):
        """Return the job as the payload of `hw.attention.walk.job.Job`."""
        names = ("q_offset", "o_offset", "bitmap", "slopes", "k_offset", "v_offset")
        fields = {name: self.address.get(name, 0) for name in names}
        if self.slope is None:
            fields["slopes"] = 0
        fields |= {
            "queries": self.queries,
            "keys": self.keys,
            "heads": self.heads,
            "kv_group": self.kv_group,
            "pack": self.pack,
            "query_units": self.dqk // 16,
            "value_units": self.dv // 16,
            "flags": {
                "causal": int(self.causal),
                "windowed": int(self.windowed),
                "sparse": int(self.bits is not None),
                "reuse_kv": int(self.reuse_kv),
                **({"paged": int(self.page_keys > 0)} if config.paged or config.decodes else {}),
                **({"decode": int(self.decode)} if config.decodes else {}),
            },
            "window": self.window,
            "multiplier": self.multiplier,
            "shift": self.shift,
            "scale": self.scale,
        }
        if config.logit_cap:
            fields["cap"] = self.cap
        if config.paged:
            fields |= {"pages": self.address.get("pages", 0), "page_keys": self.page_keys}
        return fields

    def descriptor(self):
        """Return the job as the fields of `hw.attention.walk.descriptor.pack_descriptor`."""
        scale = {"fraction": 0, "multiplier": 0, "shift": 0} | self.scale
        return {
            **{name: value for name, value in self.address.items() if name != "slopes"},
            "slopes": 0 if self.slope is None else self.address.get("slopes", 0),
            "queries": self.queries,
            "keys": self.keys,
            "heads": self.heads,
            "kv_group": self.kv_group,
            "pack": self.pack,
            "query_bytes": self.dqk,
            "value_bytes": self.dv,
            "flags": self.causal
            + 2 * self.windowed
            + 4 * (self.bits is not None)
            + 8 * self.reuse_kv
            + 16 * (self.page_keys > 0)
            + 32 * self.decode,
            "window": self.window,
            "score_multiplier": self.multiplier,
            "score_shift": self.shift,
            "output_multiplier": scale["multiplier"],
            "output_shift": scale["shift"],
            "output_fraction": scale["fraction"],
            "cap_multiplier": self.cap,
            "page_keys": self.page_keys,
        }

    def sees(self, query, key):
        """Whether a query sees a key, bitmaps aside."""
        position = query + self.keys - self.queries
        return not (self.causal and key > position) and not (self.windowed and key <= position - self.window)


@dataclass
class PlainPass:
    """One pass of a job: query heads, query indices, K/V head, block, and whether they are the first."""

    job: PlainJob
    heads: list[int]
    queries: list[int]
    kv_head: int
    block: int
    opens_head: bool
    opens_set: bool

    @property
    def rows(self):
        """Return (head, query) of each row."""
        return [(head, query) for head in self.heads for query in self.queries]

    @cached_property
    def span(self) -> tuple[int, int]:
        """Return the first key that a row of the pass sees, and one past the last, bitmaps aside; or (0,
        0).
        """
        sees = self.job.sees
        seen = [key for key in range(self.job.keys) if any(sees(query, key) for query in self.queries)]
        return (seen[0], seen[-1] + 1) if seen else (0, 0)


def passes(config: AttentionConfig, job: PlainJob) -> list[PlainPass]:
    """List the passes of a job."""
    found: list[PlainPass] = []
    if job.empty:
        return found
    step = positions(config, job)
    for kv_head in range(job.heads // job.kv_group):
        group = list(range(kv_head * job.kv_group, (kv_head + 1) * job.kv_group))
        for first in range(0, job.kv_group, job.pack):
            for block, start in enumerate(range(0, job.queries, step)):
                found.append(
                    PlainPass(
                        job=job,
                        heads=group[first : first + job.pack],
                        queries=list(range(job.queries))[start : start + step],
                        kv_head=kv_head,
                        block=block,
                        opens_head=first == 0 and block == 0,
                        opens_set=block == 0,
                    )
                )
    return found


def tiles(config: AttentionConfig, this: PlainPass, stream: int) -> list[tuple[int, int, int]]:
    """List the tiles in which a stream has keys of a pass: number, leading keys left out, keys given.

    In a job that decodes all streams have the same, and these keys are rows of a key of each port.
    """
    first, end = this.span
    found = []
    if this.job.decode:
        size = config.tile_keys * config.decode_streams
        for tile in range(-(-this.job.keys // size)):
            rows = range(tile * size, (tile + 1) * size, config.decode_streams)
            given = [n for n, key in enumerate(rows) if key < end and key + config.decode_streams > first]
            if given:
                found.append((tile, given[0], len(given)))
        return found
    size = config.tile_keys * config.streams
    for tile in range(-(-this.job.keys // size)):
        own = [key for key in range(tile * size, (tile + 1) * size) if key % config.streams == stream]
        given = [key for key in own if first <= key < end]
        hidden = this.job.bits is not None and not this.job.bits[this.block, tile]
        if given and not hidden:
            found.append((tile, own.index(given[0]), len(given)))
    return found


def is_empty(this: PlainPass) -> bool:
    """Say whether the movers take a pass for empty: its range of keys or its bitmap row says so."""
    job = this.job
    if job.decode or job.page_keys:
        return False
    if job.bits is None:
        return this.span == (0, 0)
    size = len(bitmap_rows(job)) // len(job.bits)
    return this.span == (0, 0) or not any(bitmap_rows(job)[this.block * size : (this.block + 1) * size])


def keeps(config: AttentionConfig, job: PlainJob) -> bool:
    """Say whether readers keep the keys and values of a pass for the other heads of its group."""
    parts_of_row = last_part(config, max(job.dqk, job.dv)) + 1
    rows = 256 // parts_of_row
    return job.decode and job.queries <= positions(config, job) and job.keys <= rows * config.decode_streams


def kept(config: AttentionConfig, this: PlainPass) -> tuple[bool, bool]:
    """Say whether the keys and values of a pass are those of the one before, and those of the next one."""
    first, last = (head % this.job.kv_group for head in (this.heads[0], this.heads[-1]))
    yes = keeps(config, this.job)
    return yes and first > 0, yes and last < this.job.kv_group - 1


def page_entries(this: PlainPass) -> list[int]:
    """List the pages whose entries are read: of the visible range, and what lies in the same 32 bytes."""
    first, end = this.span
    groups = {key // this.job.page_keys // 4 for key in range(first, end)} if this.job.page_keys else set()
    return [4 * group + n for group in sorted(groups) for n in range(4)]


def parts(config: AttentionConfig, row: bytes) -> list[list[int]]:
    """Cut a row into parts of D elements, the last one padded with zeros."""
    padded = row + bytes(-len(row) % config.lanes)
    signed = np.frombuffer(padded, np.int8).reshape(-1, config.lanes)
    return [part.tolist() for part in signed]


def port_rows(config: AttentionConfig, keys: int) -> int:
    """Rows that each port has room for in a head: tiles are whole, and as many in each stream."""
    rounds = -(-keys // (config.tile_keys * config.streams))
    return rounds * config.tile_keys // config.ports


def positions(config: AttentionConfig, job: PlainJob) -> int:
    """Positions of a full query tile."""
    return (2 if job.decode else config.rows) // job.pack


def key_bytes(config: AttentionConfig, size: int) -> int:
    """Bytes of a key or value in its port: with ``decode`` whole parts."""
    return last_part(config, size) * config.lanes + config.lanes if config.decodes else size


def port_units(config, size):
    """Units of 16 bytes that a row of ``size`` results has at each port: they are dealt out in turn."""
    return _most_units(size * config.result_bits // 128, config.result_ports)


def query_units(config, size):
    """Units of 16 bytes that a query of ``size`` elements has at each port: they are dealt out in turn.  With
    ``decode``, where whole parts are, those that it has at all ports.
    """
    if config.decodes:
        return key_bytes(config, size) // 16
    return _most_units(size // 16, config.query_port_count)


def _most_units(units, ports):
    dealt = [n % ports for n in range(units)]
    return max(dealt.count(port) for port in range(ports))


def last_part(config: AttentionConfig, size: int) -> int:
    return -(-size // config.lanes) - 1


def slots(config: AttentionConfig, job: PlainJob) -> tuple[int, bool]:
    """Return how many tiles of a job the cache of a stream holds, and whether they take turns."""
    if job.decode:
        return 0, False
    entries = config.cached_keys // config.tile_keys // (last_part(config, max(job.dqk, job.dv)) + 1)
    each = -(-job.keys // (config.tile_keys * config.streams))
    if job.windowed and each > entries:
        while entries & (entries - 1):
            entries -= 1
        return entries, True
    return entries, False


class PlainCache:
    """What the caches of one stream hold: for each slot a tile and which keys of it, without a gap."""

    def __init__(self):
        self.content: dict[int, tuple[int, set[int]]] = {}

    def take(self, tile: int, asked: range, count: int, ring: bool) -> tuple[int, bool]:
        """Ask for keys of a tile; gives how many leading ones are held, and whether the others are stored."""
        if count == 0 or not (ring or tile < count):
            return 0, False
        slot = tile % count if ring else tile
        before, known = self.content.get(slot, (tile, set()))
        # What would leave a gap, or lacks the first one that is asked for, is of no use.
        if before != tile or not {asked[0] - 1, asked[0]} & known:
            known = set()
        self.content[slot] = (tile, known | {*asked})
        return len(known & {*asked}), True


def random_job(rng, config: AttentionConfig, *, most_keys=None, most_queries=None, **fixed) -> PlainJob:
    """Draw a job of any mode that takes few passes."""
    kv_group = int(rng.choice([1, 1, 2, 3, 5]))
    pack = int(rng.integers(1, min(kv_group, config.rows) + 1))
    sizes = 16 * rng.integers(1, config.max_head_dim // 16 + 1, 2)
    keys = int(rng.integers(1, (most_keys or 5 * config.tile_keys * config.streams) + 1))
    queries = int(rng.integers(1, (most_queries or 3 * config.rows) + 1))
    if rng.random() < 0.3:
        queries = keys = min(queries, keys)
    job = PlainJob(
        queries=queries,
        keys=keys,
        heads=kv_group * int(rng.integers(1, 3)),
        kv_group=kv_group,
        pack=pack,
        dqk=int(sizes[0]),
        dv=int(sizes[1]),
        causal=bool(rng.random() < 0.4),
        windowed=bool(rng.random() < 0.3),
        window=int(rng.integers(1, keys + 3)),
        multiplier=int(rng.integers(1, 2**17)),
        shift=int(rng.integers(1, 48)),
        cap=int(rng.integers(0, 2**23)),
    )
    if config.output != "int16":
        job.scale = {"multiplier": int(rng.integers(2**16, 2**17)), "shift": int(rng.integers(19, 48))}
    if config.decodes:
        job.decode = bool(rng.random() < 0.5)
    for name, value in fixed.items():
        setattr(job, name, value)
    if job.decode:
        job.pack, fixed = min(job.pack, 2), fixed | {"bits": None, "page_keys": 0}
    if rng.random() < 0.35 and "bits" not in fixed:
        blocks = -(-job.queries // (config.rows // job.pack))
        job.bits = rng.random((blocks, -(-job.keys // (config.tile_keys * config.streams)))) < rng.choice(
            [0.0, 0.2, 0.8]
        )
    if config.alibi and rng.random() < 0.7:
        job.slope = [int(slope) for slope in rng.integers(0, 2**26, job.heads)]
    if config.paged and "page_keys" not in fixed and rng.random() < 0.7:
        job.page_keys = config.tile_keys * config.streams * int(rng.choice([1, 1, 2, 4]))
    return job


def bitmap_rows(job: PlainJob) -> bytes:
    """Return the bitmap as it lies in memory."""
    assert job.bits is not None
    tiles_of_row = job.bits.shape[1]
    padded = np.zeros((len(job.bits), -(-tiles_of_row // 256) * 256), np.uint8)
    padded[:, :tiles_of_row] = job.bits
    padded[1::2, tiles_of_row:] = 1  # what the padding has does not matter
    return np.packbits(padded, axis=1, bitorder="little").tobytes()


def shape_of(job):
    """Return a plain job as a `JobShape`."""
    return JobShape(
        queries=job.queries,
        keys=job.keys,
        heads=job.heads,
        kv_group=job.kv_group,
        pack=job.pack,
        query_size=job.dqk,
        value_size=job.dv,
        causal=job.causal,
        window=job.window if job.windowed else 0,
        bitmap=job.bits,
        slopes=job.slope is not None,
        reuse_kv=job.reuse_kv,
        page_keys=job.page_keys,
    )
