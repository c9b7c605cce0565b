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
        first, last = self.limits(queries, keys)
        if self.bitmap is None:
            sees = last >= first
            steps = np.zeros(keys + 1, np.int64)
            np.add.at(steps, first[sees], 1)
            np.add.at(steps, last[sees] + 1, -1)
            return sees, np.cumsum(steps[:keys]) > 0
        sees, seen = np.zeros(queries, np.bool_), np.zeros(keys, np.bool_)
        columns = np.arange(keys)
        for row in range(0, queries, self.tile_queries):
            rows = slice(row, min(row + self.tile_queries, queries))
            tiles = self.bitmap[row // self.tile_queries]
            # Visible keys of the block, from the first one on: ranges of neighbouring queries leave no gap.
            open_ = np.repeat(tiles, self.tile_keys)[:keys]
            seen |= open_ & (columns >= first[rows].min()) & (columns <= last[rows].max())
            counts = np.concatenate(([0], np.cumsum(open_)))
            sees[rows] = counts[np.maximum(last[rows] + 1, first[rows])] > counts[first[rows]]
        return sees, seen

    def pairs(self, queries: int, keys: int) -> int:
        """Count the visible pairs of a query and a key."""
        if self.bitmap is None:
            first, last = self.limits(queries, keys)
            return int(np.maximum(last - first + 1, 0).sum())
        columns = np.arange(keys)
        return sum(
            int(self.visible(np.arange(row, min(row + 256, queries)), columns, queries, keys).sum())
            for row in range(0, queries, 256)
        )
