"""The schedule of one stream: the cycles of each tile's keys and values, and the causes of stalls."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

from hw.attention.config import AttentionConfig
from hw.attention.core.row.maximum import LOGIT_TILES
from hw.attention.core.timing import CoreTiming
from hw.attention.core.value_side import spacing
from hw.attention.driver.shapes import PassShape
from hw.attention.model.phase import PhaseTiming
from hw.attention.model.supply import IssueTimes, Supply, SupplySchedule


class _TileTimes(NamedTuple):
    """When the parts of a tile are taken: the first and the last of its keys and of its values.

    Its first logit is number ``start`` of its stream.  Its values follow without gaps from ``value_first``
    on, except for those of the last key. These end with ``value_last``, and may have waited for a bank of
    results since the cycle ``bank``.  Its merge begins at ``merged``, the next one at least ``spacing``
    cycles later.
    """

    start: int
    keys: int
    value_parts: int
    key_first: int
    key_last: int
    value_first: int
    value_last: int
    merged: int
    spacing: int
    bank: int

    @property
    def resumed(self) -> int:
        """Return the cycle in which the last key's first part was taken."""
        return self.value_last - (self.value_parts - 1)

    def later(self, *, cycles: int, keys: int) -> _TileTimes:
        """Return the same tile, later by ``cycles`` and by ``keys``."""
        return self._replace(
            start=self.start + keys,
            key_first=self.key_first + cycles,
            key_last=self.key_last + cycles,
            value_first=self.value_first + cycles,
            value_last=self.value_last + cycles,
            merged=self.merged + cycles,
            bank=self.bank + cycles,
        )

    def freed(self, first: int, end: int) -> list[tuple[int, int]]:
        """Return (number, cycle of its last read) for logits ``first`` to ``end - 1``.

        Reads are evenly spaced, so only the two ends of a stretch are returned.
        """
        last = self.start + self.keys - 1
        steady = (max(first, self.start), min(end, last) - 1)  # those before the tile's last one
        found = [
            (n, self.value_first + (n - self.start + 1) * self.value_parts - 1)
            for n in (steady if steady[0] <= steady[1] else ())
        ]
        return [*found, (last, self.value_last)] if first <= last < end else found


class _KeyTimes(NamedTuple):
    """When the keys of a tile are available, taken first and last, and for how long parts were missing."""

    available: int
    first: int
    last: int
    starved: int


class TileRun(NamedTuple):
    """Consecutive tiles of a pass in a stream with equal keys and fetches."""

    tiles: int  #: How many.
    keys: int  #: In each.
    fetched: int  #: Keys of each that come from memory; the others, its leading ones, are cached.


def uncached_runs(config: AttentionConfig, keys: int, lead: int) -> list[TileRun]:
    """Return the runs of a stream's ``keys``, all from memory.

    All tiles have T keys, except for the first one, which lacks ``lead``, and the last one.
    """
    size = config.tile_keys
    first = min(keys, size - lead)
    whole, rest = divmod(keys - first, size)
    return [TileRun(tiles, of, of) for tiles, of in ((1, first), (whole, size), (1, rest)) if tiles and of]


class CycleBreakdown(NamedTuple):
    """Cycles of a stream's keys, by their causes."""

    idle: int = 0  #: No pass was issued.
    #: ``query``, ``key``, ``value``, ``output``: no part of a key was taken for lack of queries; of the key;
    #: of values, so that logits stayed; or of room for results.
    query: int = 0
    key: int = 0
    value: int = 0
    output: int = 0
    busy: int = 0  #: A part of a key was taken.

    def plus(self, other: CycleBreakdown, times: int = 1) -> CycleBreakdown:
        """Add ``times`` another breakdown."""
        return CycleBreakdown(*(a + times * b for a, b in zip(self, other, strict=True)))

    def without_first(self, cycles: int) -> CycleBreakdown:
        """Leave out the first cycles, in which another stream was not done."""
        left = []
        for count in self:
            left.append(max(0, count - cycles))
            cycles = max(0, cycles - count)
        return CycleBreakdown(*left)


class StreamSchedule:
    """The schedule of one stream's keys and values.

    ``phase``: of the jobs. ``keys``, ``values``: the supplies of parts.
    """

    def __init__(self, config: AttentionConfig, phase: PhaseTiming, *, keys: Supply, values: Supply) -> None:
        self._config = config
        self._ready, self._ends = CoreTiming(config).ready + phase.behind, CoreTiming(config).ends
        self._keys, self._values = SupplySchedule(keys), SupplySchedule(values)
        self._logits = 0  # so far
        self._tiles: list[_TileTimes] = []  # the last ones
        self.taken = 0  #: Cycle in which the last pass became current.
        #: Cycles of the last pass, from the end of the one before.
        self.cycles = self._tile_cycles = CycleBreakdown()

    def copy(self) -> StreamSchedule:
        """Return a schedule in the same state, for a stream that was alike so far."""
        other = copy(self)
        other._keys, other._values = self._keys.copy(), self._values.copy()
        return other

    @property
    def ended(self) -> int:
        """Return the cycle of the last part of the last pass's keys; -1 before the first pass."""
        return self._tiles[-1].key_last if self._tiles else -1

    @property
    def closed(self) -> int:
        """Return the cycle in which the merge of the last pass's last tile begins."""
        return self._tiles[-1].merged

    def add(
        self, shape: PassShape, runs: Sequence[TileRun], *, loaded: int, bank: int, issue: IssueTimes
    ) -> None:
        """Schedule a pass: its queries are loaded in the cycle ``loaded``, and a bank is free from ``bank``
        on.
        """
        self.taken = max(loaded + 1, self.ended)
        self.cycles = CycleBreakdown()
        for run in runs[:-1]:
            self._add_run(shape, run, run.tiles, issue)
        self._add_run(shape, runs[-1], runs[-1].tiles - 1, issue)
        self._add_tile(shape, runs[-1], issue, bank=bank)

    def _add_run(self, shape: PassShape, run: TileRun, left: int, issue: IssueTimes) -> None:
        """Schedule ``left`` tiles that do not close."""
        while left:
            before = list(self._tiles)
            self._add_tile(shape, run, issue)
            left -= 1
            left -= self._skip(shape, run, before, left)

    def _add_tile(
        self, shape: PassShape, run: TileRun, issue: IssueTimes, *, bank: int | None = None
    ) -> None:
        """Schedule a tile; ``bank`` is passed for one that closes."""
        queries = max(self.taken, self.ended) + 1  # loaded by then
        key = self._take_keys(shape, run, issue, queries)
        value_first, value_last = self._take_values(shape, run, issue, key.last)
        complete = value_last - (shape.value_parts - 1)
        value_last = max(value_last, (bank or 0) + shape.value_parts - 1)
        previous = self._tiles[-1] if self._tiles else None
        merged = max(value_last, previous.merged + previous.spacing) if previous else value_last

        self._keys.take(key.last, again=issue.again, keep=issue.keep)
        self._values.take(value_last, again=issue.again, keep=issue.keep)
        self._tile_cycles = self._cycles(shape, run, issue, key, queries)
        self.cycles = self.cycles.plus(self._tile_cycles)
        tile = _TileTimes(
            start=self._logits,
            keys=run.keys,
            value_parts=shape.value_parts,
            key_first=key.first,
            key_last=key.last,
            value_first=value_first,
            value_last=value_last,
            merged=merged,
            spacing=spacing(self._config, parts=shape.value_parts, closes=bank is not None),
            bank=complete,
        )
        self._logits += run.keys
        self._tiles = [*self._tiles[1 - LOGIT_TILES :], tile]

    def _take_keys(self, shape: PassShape, run: TileRun, issue: IssueTimes, queries: int) -> _KeyTimes:
        """Return when a tile's parts of keys are taken, with the queries loaded from ``queries`` on."""
        cached = run.keys - run.fetched
        parts, fetched_parts = run.keys * shape.key_parts, run.fetched * shape.key_parts
        supplied = self._keys.ask(fetched_parts, earliest=issue.keys + issue.key_delay)
        available = max(queries, issue.cached, supplied[0] if supplied and not cached else 0)
        first = available
        if len(self._tiles) == LOGIT_TILES:
            first = max(first, self._tiles[0].value_last + 1)
        last = first + parts - 1
        if supplied:
            late = cached * shape.key_parts + self._keys.late(fetched_parts)
            last = max(last, first + late, supplied[1])
        starved = last - first + 1 - parts
        # A key waits for its entry, which the key a buffer's length before it had; those behind it follow.
        start, entries = self._logits, self._config.logit_entries
        low, end = start - entries, start - entries + run.keys
        for tile in self._tiles:
            if tile.start < end and tile.start + tile.keys > low:
                for number, cycle in tile.freed(low, end):
                    key = number - low
                    first = max(first, cycle + 1 - key * shape.key_parts)
                    last = max(last, cycle + (run.keys - key) * shape.key_parts)
        return _KeyTimes(available, first, last, starved)

    def _take_values(
        self, shape: PassShape, run: TileRun, issue: IssueTimes, key_last: int
    ) -> tuple[int, int]:
        """Return when the first and the last part of a tile's values are taken, its bank being free."""
        cached = run.keys - run.fetched
        parts, fetched_parts = run.keys * shape.value_parts, run.fetched * shape.value_parts
        supplied = self._values.ask(fetched_parts, earliest=issue.keys + issue.value_delay)
        previous = self._tiles[-1] if self._tiles else None
        # A part taken now is on the row's port in the next cycle.
        first = key_last + 1 + self._ready
        if supplied and not cached:
            first = max(first, supplied[0])
        if previous:
            first = max(first, previous.value_last + 1)
        last = first + parts - 1
        if supplied:
            late = cached * shape.value_parts + self._values.late(fetched_parts)
            last = max(last, first + late, supplied[1])
        if previous:
            last = max(last, previous.merged + self._ends + shape.value_parts - 1)
        return first, last

    def _cycles(
        self, shape: PassShape, run: TileRun, issue: IssueTimes, key: _KeyTimes, queries: int
    ) -> CycleBreakdown:
        """Divide the cycles from the end of the tile before to the end of this one's keys by their causes."""
        ended, parts = self.ended, run.keys * shape.key_parts
        idle = min(max(0, issue.queries - ended - 1), queries - ended - 1)
        # The logit buffer was full in the rest; in some of it an earlier tile waited for a bank of results.
        blocked = key.last - ended - parts - (key.available - ended - 1) - key.starved
        output = sum(
            max(0, min(key.last, tile.resumed) - max(key.available, tile.bank)) for tile in self._tiles
        )
        return CycleBreakdown(
            idle=idle,
            query=queries - ended - 1 - idle,
            key=key.available - queries + key.starved,
            value=max(0, blocked - output),
            output=min(blocked, output),
            busy=parts,
        )

    def _skip(self, shape: PassShape, run: TileRun, before: list[_TileTimes], left: int) -> int:
        """Skip tiles that repeat the last one; return how many."""
        keys, values = self._keys.supply, self._values.supply
        if len(before) < LOGIT_TILES or left < 2 or keys.ahead or values.ahead:
            return 0
        step = self._tiles[-1].key_last - before[-1].key_last
        pace = run.fetched * max(
            shape.key_parts * max(keys.interval, keys.gap),
            shape.value_parts * max(values.interval, values.gap),
        )
        if step < pace or any(
            tile.later(cycles=step, keys=run.keys) != now
            for tile, now in zip(reversed(before), reversed(self._tiles), strict=True)
        ):
            return 0
        self._tiles = [tile.later(cycles=step * left, keys=run.keys * left) for tile in self._tiles]
        self._keys.skip(run.fetched * shape.key_parts * left, step * left)
        self._values.skip(run.fetched * shape.value_parts * left, step * left)
        self._logits += run.keys * left
        self.cycles = self.cycles.plus(self._tile_cycles, left)
        return left
