"""Which passes a job has, and how many keys each stream has in them: what cycles are counted from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.attention.command import UNIT_ELEMENTS
from hw.attention.config import AttentionConfig


@dataclass(frozen=True, kw_only=True)
class PassShape:
    """What of a pass decides its cycles.

    Members
    -------
    rows
        Rows in use.
    keys
        Keys in all tiles that a stream has of the pass: only the last tile may be short; a dummy has 1.
    key_parts, value_parts
        Parts of a query or key, and of a value.
    value_units
        Elements of a value by `UNIT_ELEMENTS`.
    """

    rows: int
    keys: tuple[int, ...]
    key_parts: int = 1
    value_parts: int = 1
    value_units: int


def pass_shapes(
    config: AttentionConfig,
    *,
    queries: int,
    keys: int,
    heads: int = 1,
    kv_group: int = 1,
    pack: int = 1,
    query_size: int | None = None,
    value_size: int | None = None,
    causal: bool = False,
    window: int = 0,
    bitmap: NDArray[np.bool_] | None = None,
) -> Iterator[PassShape]:
    """Give the passes of a job in order.

    Parameters
    ----------
    config
        Shape of the engine.
    queries, keys, heads, kv_group, pack, causal
        As the launch says.
    query_size, value_size
        Elements of a query or key and of a value; by default as many as there are lanes.
    window
        Newest keys that a query sees, 0 for all.
    bitmap
        Bool, ``[blocks of queries, tiles of keys]``, or None.
    """
    if not queries or not keys or not heads:
        return
    query_size, value_size = query_size or config.lanes, value_size or config.lanes
    block = config.rows // pack
    of_blocks = []
    for n, first in enumerate(range(0, queries, block)):
        positions = min(block, queries - first)
        position = first + keys - queries
        oldest = max(0, position - window + 1) if window else 0
        end = max(0, position + positions) if causal else keys
        row = None if bitmap is None else bitmap[n]
        of_blocks.append((positions, _stream_keys(config, oldest, end, row)))
    sets = [min(pack, kv_group - first) for first in range(0, kv_group, pack)]
    for _ in range(heads // kv_group):
        for packed in sets:
            for positions, stream_keys in of_blocks:
                yield PassShape(
                    rows=packed * positions,
                    keys=stream_keys,
                    key_parts=-(-query_size // config.lanes),
                    value_parts=-(-value_size // config.lanes),
                    value_units=value_size // UNIT_ELEMENTS,
                )


def _stream_keys(
    config: AttentionConfig, first: int, end: int, row: NDArray[np.bool_] | None
) -> tuple[int, ...]:
    """Count the keys of each stream's tiles that hold any of the keys ``first <= j < end``."""
    size, streams = config.tile_keys, config.streams
    tiles = np.arange(first // size, -(-end // size)) if first < end else np.arange(0)
    if row is not None:
        tiles = tiles[row[tiles]]
    counts = np.minimum((tiles + 1) * size, end) - tiles * size
    totals = np.bincount(tiles % streams, counts, streams).astype(int)
    return tuple(max(1, int(total)) for total in totals)
