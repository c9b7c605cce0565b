"""The passes of a job, and the tiles of each stream in them, from which cycles and bytes are counted."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import AttentionConfig
from hw.attention.core.command import UNIT_ELEMENTS
from hw.attention.walk.job_setup import BITMAP_ROW_BYTES, DECODE_ROWS, KEPT_PARTS, PAGE_GROUP


@dataclass(frozen=True, kw_only=True)
class PassShape:
    """The properties of a pass that determine its cycles."""

    rows: int  #: Rows in use.
    #: Keys in all tiles of each stream.  Only the first and the last tile may be short; a placeholder has 1
    #: key, an empty pass none.  In a job that decodes one number stands for all streams.
    keys: tuple[int, ...]
    leads: tuple[int, ...]  #: Keys left out of the first of these tiles.
    #: ``key_parts``, ``value_parts``: parts of a query or key, and of a value.
    key_parts: int = 1
    value_parts: int = 1
    value_units: int  #: Elements of a value, in `UNIT_ELEMENTS`.

    @property
    def empty(self) -> bool:
        """Say whether no row sees a key, so that nothing is computed."""
        return not any(self.keys)


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """The tiles of one stream in a pass, in order; none for a placeholder that reads nothing."""

    numbers: NDArray[np.int_]  #: Of the tiles.
    leads: NDArray[np.int_]  #: Leading keys left out of each: of the first tile only, if any.
    keys: NDArray[np.int_]  #: In each of them.


@dataclass(frozen=True, kw_only=True)
class JobPass:
    """A pass, its tiles, and whether a job, a head or a set of heads begins with it."""

    shape: PassShape  #: Its properties for the cycles.
    tiles: tuple[Tiles, ...]  #: Of each stream; one list for all in a job that decodes.
    heads: int  #: Query heads packed into its rows.
    #: ``first``, ``opens_head``, ``opens_set``: whether it is the first of the job, of a K/V head, of a set
    #: of packed heads.
    first: bool
    opens_head: bool
    opens_set: bool
    entries: range  #: Page entries read for it.
    #: ``again``, ``keep``: whether the pass before had the same keys and values, which readers kept; whether
    #: the next pass has the same ones.
    again: bool
    keep: bool


@dataclass(frozen=True, kw_only=True)
class JobShape:
    """The properties of a job that determine its cycles and bytes."""

    #: ``queries``, ``keys``, ``heads``, ``kv_group``, ``pack``, ``causal``, ``reuse_kv``: of the launch.
    queries: int
    keys: int
    heads: int = 1
    kv_group: int = 1
    pack: int = 1
    #: ``query_size``, ``value_size``: elements of a query or key and of a value.
    query_size: int
    value_size: int
    causal: bool = False
    window: int = 0  #: Newest keys that a query sees, 0 for all.
    bitmap: NDArray[np.bool_] | None = None  #: Bool, ``[blocks of queries, tiles of keys]``, or None.
    slopes: bool = False  #: Whether heads have slopes.
    reuse_kv: bool = False
    page_keys: int = 0  #: Keys of a page, 0 for no pages.
    #: Whether each pair of rows of each stream has keys of its own, see `hw.attention.walk.job.Flags`.
    decode: bool = False

    @property
    def bitmap_rows(self) -> int:
        """Return the length of a row of the bitmap in `BITMAP_ROW_BYTES`, 0 without a bitmap."""
        return 0 if self.bitmap is None else -(-self.bitmap.shape[1] // (8 * BITMAP_ROW_BYTES))

    def positions(self, config: AttentionConfig) -> int:
        """Return the positions of a full query tile."""
        return (DECODE_ROWS if self.decode else config.rows) // self.pack

    def streams(self, config: AttentionConfig) -> int:
        """Return the number of streams for keys."""
        return config.decode_streams if self.decode else config.streams

    def keeps(self, config: AttentionConfig) -> bool:
        """Say whether readers keep a K/V head's keys and values for all its sets of query heads."""
        parts = -(-max(self.query_size, self.value_size) // config.lanes)
        rows = KEPT_PARTS // parts
        fits = self.queries <= self.positions(config) and self.keys <= rows * self.streams(config)
        return self.decode and fits

    def passes(self, config: AttentionConfig) -> Iterator[JobPass]:
        """Return the passes in order."""
        if not self.queries or not self.keys or not self.heads:
            return
        block = self.positions(config)
        of_blocks = []
        for n, first in enumerate(range(0, self.queries, block)):
            positions = min(block, self.queries - first)
            position = first + self.keys - self.queries
            oldest = max(0, position - self.window + 1) if self.window else 0
            end = max(0, position + positions) if self.causal else self.keys
            row = None if self.bitmap is None else self.bitmap[n]
            tiles = _stream_tiles(config, self._ranges(config, oldest, end), row)
            empty = not self.page_keys and (oldest >= end or (row is not None and not row.any()))
            least = 0 if empty and not self.decode else 1
            keys = tuple(max(least, int(given.keys.sum())) for given in tiles)
            leads = tuple(int(given.leads.sum()) for given in tiles)
            of_blocks.append((positions, tiles, keys, leads, _entries(self.page_keys, oldest, end)))
        sets = [min(self.pack, self.kv_group - first) for first in range(0, self.kv_group, self.pack)]
        keeps = self.keeps(config)
        for head in range(self.heads // self.kv_group):
            for number, packed in enumerate(sets):
                for n, (positions, tiles, keys, leads, entries) in enumerate(of_blocks):
                    yield JobPass(
                        shape=PassShape(
                            rows=packed * positions,
                            keys=keys,
                            leads=leads,
                            key_parts=-(-self.query_size // config.lanes),
                            value_parts=-(-self.value_size // config.lanes),
                            value_units=self.value_size // UNIT_ELEMENTS,
                        ),
                        tiles=tiles,
                        heads=packed,
                        first=not head and not number and not n,
                        opens_head=not number and not n,
                        opens_set=not n,
                        entries=entries,
                        again=keeps and number > 0,
                        keep=keeps and number < len(sets) - 1,
                    )

    def _ranges(self, config: AttentionConfig, first: int, end: int) -> list[tuple[int, int]]:
        """Return each stream's range of the keys ``first <= j < end``, in its own key numbers.

        In a job that decodes all streams take whole rows of keys; without keys they take the first row, which
        no query sees.
        """
        streams = self.streams(config)
        if self.decode:
            return [(first // streams, -(-end // streams)) if first < end else (0, 1)]
        return [(-(-(first - n) // streams), -(-(end - n) // streams)) for n in range(streams)]


def _entries(page_keys: int, first: int, end: int) -> range:
    """Return the page entries read for keys ``first <= j < end``, in whole groups."""
    if not page_keys or first >= end:
        return range(0)
    groups = first // page_keys // PAGE_GROUP, (end - 1) // page_keys // PAGE_GROUP + 1
    return range(groups[0] * PAGE_GROUP, groups[1] * PAGE_GROUP)


def _stream_tiles(
    config: AttentionConfig, ranges: list[tuple[int, int]], row: NDArray[np.bool_] | None
) -> tuple[Tiles, ...]:
    """Return the tiles of each stream's range of keys."""
    size = config.tile_keys
    found: dict[tuple[int, int], Tiles] = {}  # streams with equal ranges share one list
    for own_first, own_end in dict.fromkeys(ranges):
        tiles = np.arange(own_first // size, -(-own_end // size)) if own_first < own_end else np.arange(0)
        if row is not None:
            tiles = tiles[row[tiles]]
        leads = np.maximum(own_first - tiles * size, 0)
        ends = np.minimum(own_end - tiles * size, size)
        found[own_first, own_end] = Tiles(numbers=tiles, leads=leads, keys=ends - leads)
    return tuple(found[own] for own in ranges)
