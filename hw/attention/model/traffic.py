"""Bytes that jobs transfer, counted from the contents of the caches, tile by tile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import UNIT_BITS, AttentionConfig
from hw.attention.driver.shapes import JobPass, JobShape, Tiles
from hw.attention.model.shared import split_shared
from hw.attention.walk.descriptor import USED_BYTES
from hw.attention.walk.job_setup import BITMAP_ROW_BYTES, PAGE_ENTRY_BYTES, SLOPE_BYTES


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Bytes of one or more jobs."""

    #: ``key_bytes``, ``value_bytes``: of keys, and of values.
    key_bytes: int
    value_bytes: int
    query_bytes: int  #: Of queries.
    table_bytes: int  #: Of bitmaps, slopes, page tables and descriptors.
    write_bytes: int  #: Of results.

    @property
    def read_bytes(self) -> int:
        """Bytes read."""
        return self.key_bytes + self.value_bytes + self.query_bytes + self.table_bytes

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.write_bytes


class _Cache:
    """The caches of a stream: for each slot a tile, and the range of its keys that is cached."""

    def __init__(self, slots: int) -> None:
        self._tile = np.full(slots, -1)
        self._start, self._end = np.zeros(slots, int), np.zeros(slots, int)

    def clear(self) -> None:
        """Invalidate all slots."""
        self._tile.fill(-1)

    def copy(self) -> _Cache:
        """Return a cache with the same contents."""
        other = _Cache(0)
        other._tile, other._start, other._end = self._tile.copy(), self._start.copy(), self._end.copy()
        return other

    def fetched(self, tiles: Tiles, slots: int, *, ring: bool) -> NDArray[np.int_]:
        """Count the misses of each of ``tiles``, and store the tiles that have a slot."""
        missing = tiles.keys.copy()
        if not slots:
            return missing
        numbers = tiles.numbers
        # Numbers rise, so the tiles with a slot are the first ones.
        start, end = 0, len(numbers) if ring else int(np.searchsorted(numbers, slots))
        # Tiles whose numbers differ by less than ``slots`` have different slots.
        while start < end:
            stop = min(end, int(np.searchsorted(numbers, numbers[start] + slots)))
            leads, keys = tiles.leads[start:stop], tiles.keys[start:stop]
            missing[start:stop] = self._update(numbers[start:stop], leads, leads + keys, slots)
            start = stop
        return missing

    def _update(
        self, numbers: NDArray[np.int_], leads: NDArray[np.int_], ends: NDArray[np.int_], slots: int
    ) -> NDArray[np.int_]:
        slot = numbers % slots
        same = self._tile[slot] == numbers
        joins = same & (self._start[slot] <= leads) & (leads <= self._end[slot])
        cached = np.where(joins, self._end[slot], leads)
        self._tile[slot] = numbers
        self._start[slot] = np.where(joins, self._start[slot], leads)
        self._end[slot] = np.maximum(cached, ends)
        return np.maximum(0, ends - cached)


class Fetch(NamedTuple):
    """A pass, and for each stream the keys of each tile that come from memory."""

    job: JobShape
    of: JobPass
    keys: tuple[NDArray[np.int_], ...]


def cache_slots(config: AttentionConfig, job: JobShape) -> tuple[int, bool]:
    """Return the tiles of a job that a stream's caches hold, and whether slots are a ring."""
    parts = max(-(-size // config.lanes) for size in (job.query_size, job.value_size))
    slots = config.cached_keys // config.tile_keys // parts
    tiles = -(-job.keys // config.tile_span)
    if job.window and tiles > slots:
        return 1 << slots.bit_length() >> 1, True
    return slots, False


def traffic(
    config: AttentionConfig, jobs: Iterable[JobShape], passes: Iterable[Fetch] | None = None
) -> Traffic:
    """Count the bytes of the jobs of a launch.

    ``jobs``: the first is in registers, the others have descriptors in memory. ``passes``: their `fetches`,
    if these are computed already.
    """
    jobs = list(jobs)
    keys = values = queries = results = 0
    tables = USED_BYTES * (len(jobs) - 1)
    for job, this, fetched in passes if passes is not None else fetches(config, jobs):
        # One stream stands for all those in lockstep.
        alike = job.streams(config) // len(fetched)
        missing = alike * sum(int(of_stream.sum()) for of_stream in fetched)
        keys += missing * config.key_units(job.query_size) * UNIT_BITS // 8
        values += missing * config.key_units(job.value_size) * UNIT_BITS // 8
        queries += this.shape.rows * config.query_bytes(job.query_size)
        results += (
            this.shape.rows * config.result_ports * config.result_units(job.value_size) * UNIT_BITS // 8
        )
        tables += _table_bytes(job, this)
    return Traffic(
        key_bytes=keys, value_bytes=values, query_bytes=queries, table_bytes=tables, write_bytes=results
    )


def _table_bytes(job: JobShape, this: JobPass) -> int:
    """Count the bytes of a pass's bitmap row, of the slopes of its heads, and of its page entries."""
    row = job.bitmap_rows * BITMAP_ROW_BYTES
    slopes = this.heads * SLOPE_BYTES if job.slopes and this.opens_set else 0
    return row + slopes + PAGE_ENTRY_BYTES * len(this.entries)


def fetches(config: AttentionConfig, jobs: Iterable[JobShape]) -> Iterator[Fetch]:
    """Return the passes of jobs in order, each with the keys that it fetches from memory."""
    caches = [_Cache(config.cached_keys // config.tile_keys)] * config.streams
    for job in jobs:
        slots, ring = cache_slots(config, job)
        for this in job.passes(config):
            if job.decode:
                fetched = (0 * tiles.keys if this.again else tiles.keys for tiles in this.tiles)
                yield Fetch(job, this, tuple(fetched))
                continue
            if this.opens_head and not (job.reuse_kv and this.first):
                for cache in caches:
                    cache.clear()
            split_shared(caches, [id(tiles) for tiles in this.tiles], _Cache.copy)
            distinct = {id(cache): (cache, tiles) for cache, tiles in zip(caches, this.tiles, strict=True)}
            missing = {
                key: cache.fetched(tiles, slots, ring=ring) for key, (cache, tiles) in distinct.items()
            }
            yield Fetch(job, this, tuple(missing[id(cache)] for cache in caches))
