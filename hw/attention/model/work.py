"""The work of a launch on any engine: visible pairs of query and key, and keys that some query sees."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import AttentionConfig
from hw.attention.driver.division import Share
from hw.attention.driver.shapes import JobShape

Int = NDArray[np.int64]


def _limits(job: JobShape) -> tuple[Int, Int]:
    """Return for each query its first visible key and the end of its range; empty ranges are 0 to 0."""
    position = np.arange(job.queries, dtype=np.int64) + job.keys - job.queries
    first = np.maximum(position - job.window + 1, 0) if job.window else np.zeros(job.queries, np.int64)
    end = np.maximum(position + 1, 0) if job.causal else np.full(job.queries, job.keys, np.int64)
    return first, end


def _block(job: JobShape, config: AttentionConfig) -> Int:
    """Return the block of the bitmap of each query."""
    return np.arange(job.queries) // job.positions(config)


def seen_pairs(job: JobShape, config: AttentionConfig) -> int:
    """Count the visible pairs of a query of one head and a key."""
    first, end = _limits(job)
    if job.bitmap is None:
        return int(np.maximum(end - first, 0).sum())
    size, (blocks, tiles) = config.tile_span, job.bitmap.shape
    # Visible keys in the tiles before each one, and before the end.
    before = np.zeros((blocks, tiles + 1), np.int64)
    np.cumsum(job.bitmap * size, axis=1, out=before[:, 1:])
    bits = np.pad(job.bitmap, ((0, 0), (0, 1)))
    block = _block(job, config)

    def seen(limit: Int) -> Int:
        tile, rest = np.divmod(limit, size)
        return before[block, tile] + bits[block, tile] * rest

    return int(np.maximum(seen(end) - seen(first), 0).sum())


def seen_keys(job: JobShape, config: AttentionConfig) -> NDArray[np.bool_]:
    """Return for each key of a head whether some query sees it."""
    first, end = _limits(job)
    seen = np.zeros(job.keys, bool)
    if job.bitmap is None:
        # Positions follow one another, so their ranges leave no gap.
        some = end > first
        if some.any():
            seen[first[some].min() : end[some].max()] = True
        return seen
    starts = np.flatnonzero(np.diff(_block(job, config), prepend=-1))
    lows, highs = np.minimum.reduceat(first, starts), np.maximum.reduceat(end, starts)
    for low, high, tiles in zip(lows, highs, job.bitmap, strict=True):
        seen[low:high] |= np.repeat(tiles, config.tile_span)[low:high]
    return seen


def seen_keys_total(shares: Iterable[Share], config: AttentionConfig) -> int:
    """Count the keys that some query sees, over all K/V heads of a launch."""
    seen: dict[tuple[int, int], NDArray[np.bool_]] = {}
    for share in shares:
        own = seen_keys(share.shape, config)
        for head in range(share.kv_heads.start, share.kv_heads.stop):
            place = (share.sequence, head)
            seen[place] = seen[place] | own if place in seen else own
    return sum(int(np.count_nonzero(keys)) for keys in seen.values())
