"""Visibility of keys, see "Which keys a row sees" in ``docs/attention-specification.md``."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError

Int = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Mask:
    """Keys visible to the queries of one head; all of them by default.

    Query i of Nq is at position i + Nk - Nq: the last query is at the last key.
    """

    causal: bool = False  #: Keys after the query's position are hidden.
    #: Visible are the ``window`` newest keys up to the query's position, and those after it unless
    #: ``causal``; 0 for no window.
    window: int = 0
    #: Bool, ``[ceil(Nq / tile_queries), ceil(Nk / tile_keys)]``: the visible tiles of keys of each tile of
    #: queries; None for all.
    bitmap: NDArray[np.bool_] | None = None
    #: Queries and keys of a tile of the bitmap.
    tile_queries: int = 1
    tile_keys: int = 1

    def check(self, queries: int, keys: int) -> None:
        """Raise `InputError` unless the bitmap has the shape for ``queries`` and ``keys``."""
        if self.bitmap is None:
            return
        shape = (-(-queries // self.tile_queries), -(-keys // self.tile_keys))
        if self.bitmap.shape != shape:
            raise InputError("shape of the bitmap", self.bitmap.shape, f"{shape}")

    def limits(self, queries: int, keys: int) -> tuple[Int, Int]:
        """Return the first and the last key of each query's range; a range is empty if last < first."""
        position = np.arange(queries, dtype=np.int64) + keys - queries
        everything = np.full(queries, keys - 1, np.int64)
        first = np.maximum(position - self.window + 1, 0) if self.window else np.zeros(queries, np.int64)
        return first, np.minimum(position, everything) if self.causal else everything

    def visible(self, rows: Int, columns: Int, queries: int, keys: int) -> NDArray[np.bool_]:
        """Return whether queries ``rows`` see keys ``columns``: ``[len(rows), len(columns)]``."""
        first, last = self.limits(queries, keys)
        seen = (columns >= first[rows, None]) & (columns <= last[rows, None])
        if self.bitmap is not None:
            seen &= self.bitmap[np.ix_(rows // self.tile_queries, columns // self.tile_keys)]
        return seen

    def read(self, queries: int, keys: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which queries see some key, and which keys some query sees: ``[Nq]``, ``[Nk]``."""
        return self._counts(queries, keys) > 0, self.seen(queries, keys)

    def seen(self, queries: int, keys: int) -> NDArray[np.bool_]:
        """Return which keys some query sees: ``[Nk]``."""
        bitmap, tile_queries, tile_keys = self._tiles(queries, keys)
        first, last = self.limits(queries, keys)
        starts = np.arange(0, queries, tile_queries)
        lows, ends = np.minimum.reduceat(first, starts), np.maximum.reduceat(last, starts) + 1
        seen = np.zeros(keys, np.bool_)
        for low, end, tiles in zip(lows, np.maximum(ends, 0), bitmap, strict=True):
            # Positions follow one another, so ranges of neighbouring queries leave no gap.
            seen[low:end] |= np.repeat(tiles, tile_keys)[low:end]
        return seen

    def pairs(self, queries: int, keys: int) -> int:
        """Count the visible pairs of a query and a key."""
        return int(self._counts(queries, keys).sum())

    def _counts(self, queries: int, keys: int) -> Int:
        """Count the keys that each query sees."""
        bitmap, tile_queries, tile_keys = self._tiles(queries, keys)
        first, last = self.limits(queries, keys)
        # Visible keys in the tiles before each one, and before the end.
        before = np.pad(np.cumsum(bitmap * tile_keys, axis=1), ((0, 0), (1, 0)))
        bits = np.pad(bitmap, ((0, 0), (0, 1)))
        block = np.arange(queries) // tile_queries

        def seen(limit: Int) -> Int:
            tile, rest = np.divmod(limit, tile_keys)
            return before[block, tile] + bits[block, tile] * rest

        return np.maximum(seen(np.maximum(last + 1, 0)) - seen(first), 0)

    def _tiles(self, queries: int, keys: int) -> tuple[NDArray[np.bool_], int, int]:
        """Return the bitmap and the size of its tiles; a single tile without a bitmap."""
        if self.bitmap is None:
            return np.ones((1, 1), np.bool_), queries, keys
        return self.bitmap, self.tile_queries, self.tile_keys
