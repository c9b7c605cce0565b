"""How many bytes jobs move, computed: what the caches hold, tile by tile, without a simulation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import UNIT_BITS, AttentionConfig
from hw.attention.driver.shapes import JobPass, JobShape, Tiles
from hw.attention.walk.descriptor import USED_BYTES
from hw.attention.walk.job_setup import BITMAP_ROW_BYTES, PAGE_ENTRY_BYTES

#: Bytes of a slope in memory.
_SLOPE_BYTES = 4


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
        """All that is read."""
        return self.key_bytes + self.value_bytes + self.query_bytes + self.table_bytes

    @property
    def moved_bytes(self) -> int:
        """All that is read or written."""
        return self.read_bytes + self.write_bytes


class _Cache:
    """The caches of a stream: a tile for each slot, and the range of its keys that is there."""

    def __init__(self, slots: int) -> None:
        self._tile = np.full(slots, -1)
        self._start, self._end = np.zeros(slots, int), np.zeros(slots, int)

    def clear(self) -> None:
        """Forget everything."""
        self._tile.fill(-1)

    def fetched(self, tiles: Tiles, slots: int, *, ring: bool) -> NDArray[np.int_]:
        """Count the keys of each of ``tiles`` that are not held, and hold what there is room for."""
        missing = tiles.keys.copy()
        if not slots:
            return missing
        numbers = tiles.numbers
        # Numbers rise, so those that have a slot are the first ones.
        start, end = 0, len(numbers) if ring else int(np.searchsorted(numbers, slots))
        # Tiles whose numbers are less than ``slots`` apart have slots of their own.
        while start < end:
            stop = min(end, int(np.searchsorted(numbers, numbers[start] + slots)))
            leads, keys = tiles.leads[start:stop], tiles.keys[start:stop]
            missing[start:stop] = self._look(numbers[start:stop], leads, leads + keys, slots)
            start = stop
        return missing

    def _look(
        self, numbers: NDArray[np.int_], leads: NDArray[np.int_], ends: NDArray[np.int_], slots: int
    ) -> NDArray[np.int_]:
        slot = numbers % slots
        same = self._tile[slot] == numbers
        joins = same & (self._start[slot] <= leads) & (leads <= self._end[slot])
        known = np.where(joins, self._end[slot], leads)
        self._tile[slot] = numbers
        self._start[slot] = np.where(joins, self._start[slot], leads)
        self._end[slot] = np.maximum(known, ends)
        return np.maximum(0, ends - known)


class Fetch(NamedTuple):
    """A pass, and of each stream how many keys of each tile come from memory."""

    job: JobShape
    of: JobPass
    keys: tuple[NDArray[np.int_], ...]


def cache_slots(config: AttentionConfig, job: JobShape) -> tuple[int, bool]:
    """Return how many tiles of a job the caches of a stream hold, and whether they take turns."""
    parts = max(-(-size // config.lanes) for size in (job.query_size, job.value_size))
    slots = config.cached_keys // config.tile_keys // parts
    tiles = -(-job.keys // config.tile_span)
    if job.window and tiles > slots:
        return 1 << slots.bit_length() >> 1, True
    return slots, False


def traffic(config: AttentionConfig, jobs: Iterable[JobShape]) -> Traffic:
    """Count what the jobs of a launch move, one after the other.

    ``jobs``: the first is that of the registers, the others have descriptors in memory.
    """
    jobs = list(jobs)
    keys = values = queries = results = 0
    tables = USED_BYTES * (len(jobs) - 1)
    for job, this, fetched in fetches(config, jobs):
        # Streams in lockstep read as much as the one that stands for them.
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
    """Count what a pass reads of tables: its bitmap row, the slopes of its heads, entries of its pages."""
    row = job.bitmap_rows * BITMAP_ROW_BYTES
    slopes = this.heads * _SLOPE_BYTES if job.slopes and this.opens_set else 0
    return row + slopes + PAGE_ENTRY_BYTES * len(this.entries)


def fetches(config: AttentionConfig, jobs: Iterable[JobShape]) -> Iterator[Fetch]:
    """Return the passes of jobs that follow one another, and what each takes from memory."""
    caches = [_Cache(config.cached_keys // config.tile_keys) for _ in range(config.streams)]
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
            missing = (
                cache.fetched(tiles, slots, ring=ring)
                for cache, tiles in zip(caches, this.tiles, strict=True)
            )
            yield Fetch(job, this, tuple(missing))
