"""The schedule of one key stream: when each of its tiles' keys and values are taken, and why not earlier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hw.attention.config import AttentionConfig
from hw.attention.core.row.maximum import LOGIT_TILES
from hw.attention.core.timing import CoreTiming
from hw.attention.core.value_side import spacing
from hw.attention.driver.shapes import PassShape
from hw.attention.model.phase import PhaseTiming
from hw.attention.model.supply import IssueTimes, Supply, SupplySchedule


class _TileTimes(NamedTuple):
    """When the parts of a tile were taken: first and last of its keys and of its values.

    Its logits are numbers ``start`` and on of its stream.  Its values come without gaps from ``value_first``
    on, but for those of the last key, which end with ``value_last``, having waited for room for results from
    the cycle ``bank`` on.  Its merge begins with ``merged``, and the next one ``spacing`` cycles later.
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

    def moved(self, *, cycles: int, keys: int) -> _TileTimes:
        """Return the same tile later."""
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

        In between reads come at a constant pace, so that only the ends of such a stretch are given.
        """
        last = self.start + self.keys - 1
        steady = (max(first, self.start), min(end, last) - 1)  # those before the tile's last one
        found = [
            (n, self.value_first + (n - self.start + 1) * self.value_parts - 1)
            for n in (steady if steady[0] <= steady[1] else ())
        ]
        return [*found, (last, self.value_last)] if first <= last < end else found


class TileRun(NamedTuple):
    """Tiles of a pass that follow one another in a stream and are alike."""

    tiles: int  #: How many.
    keys: int  #: In each.
    fetched: int  #: Keys of each that come from memory: the others, its leading ones, are in the caches.


def uncached_runs(config: AttentionConfig, keys: int, lead: int) -> list[TileRun]:
    """Return the runs of a stream's ``keys``, all from memory: tiles of T, but for the first one, which lacks
    its ``lead``, and the last one.
    """
    size = config.tile_keys
    first = min(keys, size - lead)
    whole, rest = divmod(keys - first, size)
    return [TileRun(tiles, of, of) for tiles, of in ((1, first), (whole, size), (1, rest)) if tiles and of]


class CycleBreakdown(NamedTuple):
    """Where the cycles of a stream's keys go, or some of them."""

    idle: int = 0  #: Nothing was known that could be done.
    #: ``query``, ``key``, ``value``, ``output``: no part of a key was taken for want of queries; of the key;
    #: of values, so that logits could not leave; or of room for results.
    query: int = 0
    key: int = 0
    value: int = 0
    output: int = 0
    busy: int = 0  #: A part of a key was taken.

    def plus(self, other: CycleBreakdown, times: int = 1) -> CycleBreakdown:
        """Add others, so many times."""
        return CycleBreakdown(*(a + times * b for a, b in zip(self, other, strict=True)))

    def without_first(self, cycles: int) -> CycleBreakdown:
        """Leave out the first ones, in which another stream did something."""
        left = []
        for count in self:
            left.append(max(0, count - cycles))
            cycles = max(0, cycles - count)
        return CycleBreakdown(*left)


class StreamSchedule:
    """The schedule of one stream's two sides.

    ``phase``: of the jobs. ``keys``, ``values``: what the streams of parts give at most.
    """

    def __init__(self, config: AttentionConfig, phase: PhaseTiming, *, keys: Supply, values: Supply) -> None:
        self._config = config
        self._ready, self._ends = CoreTiming(config).ready + phase.behind, CoreTiming(config).ends
        self._keys, self._values = SupplySchedule(keys), SupplySchedule(values)
        self._logits = 0  # so far
        self._tiles: list[_TileTimes] = []  # the last ones
        self.taken = 0  #: Cycle in which the last pass became the current one.
        self.waits = self._tile_waits = (
            CycleBreakdown()
        )  #: Cycles of the last pass, from the end of the one before.

    @property
    def ended(self) -> int:
        """Return the cycle in which the last part of the last pass's keys was taken; -1 before there is
        one.
        """
        return self._tiles[-1].key_last if self._tiles else -1

    @property
    def closed(self) -> int:
        """Return the cycle from which on the merge of the last pass's last tile waited for no other."""
        return self._tiles[-1].merged

    def add(
        self, shape: PassShape, runs: Sequence[TileRun], *, loaded: int, bank: int, known: IssueTimes
    ) -> None:
        """Schedule a pass: queries are there after ``loaded``, a bank from ``bank`` on."""
        self.taken = max(loaded + 1, self.ended)
        self.waits = CycleBreakdown()
        for run in runs[:-1]:
            self._add_run(shape, run, run.tiles, known)
        self._add_run(shape, runs[-1], runs[-1].tiles - 1, known)
        self._add_tile(shape, runs[-1], known, bank=bank)

    def _add_run(self, shape: PassShape, run: TileRun, left: int, known: IssueTimes) -> None:
        """Schedule ``left`` tiles that do not close."""
        while left:
            before = list(self._tiles)
            self._add_tile(shape, run, known)
            left -= 1
            left -= self._skip(shape, run, before, left)

    def _add_tile(
        self, shape: PassShape, run: TileRun, known: IssueTimes, *, bank: int | None = None
    ) -> None:
        """Schedule a tile; ``bank`` is given for one that closes."""
        previous = self._tiles[-1] if self._tiles else None
        keys = run.keys
        loaded = max(self.taken, self.ended) + 1
        held = keys - run.fetched
        fetched_parts = run.fetched * shape.key_parts
        coming = self._keys.ask(fetched_parts, known=known.keys + known.keys_later)
        come = max(loaded, known.cached, coming[0] if coming and not held else 0)
        first = come
        if len(self._tiles) == LOGIT_TILES:
            first = max(first, self._tiles[0].value_last + 1)
        last = first + keys * shape.key_parts - 1
        if coming:
            last = max(last, first + held * shape.key_parts + self._keys.late(fetched_parts), coming[1])
        starved = last - first + 1 - keys * shape.key_parts
        # A key waits for its entry, which the key a buffer's length before it had; those behind it follow.
        start, behind = self._logits, self._config.logit_entries
        for tile in self._tiles:
            for number, cycle in tile.freed(start - behind, start - behind + keys):
                key = number + behind - start
                first = max(first, cycle + 1 - key * shape.key_parts)
                last = max(last, cycle + (keys - key) * shape.key_parts)

        # A part taken now is on the row's port in the next cycle.
        parts = keys * shape.value_parts
        fetched_parts = run.fetched * shape.value_parts
        coming = self._values.ask(fetched_parts, known=known.keys + known.values_later)
        value_first = last + 1 + self._ready
        if coming and not held:
            value_first = max(value_first, coming[0])
        if previous:
            value_first = max(value_first, previous.value_last + 1)
        value_last = value_first + parts - 1
        if coming:
            late = held * shape.value_parts + self._values.late(fetched_parts)
            value_last = max(value_last, value_first + late, coming[1])
        if previous:
            value_last = max(value_last, previous.merged + self._ends + shape.value_parts - 1)
        complete = value_last - (shape.value_parts - 1)
        value_last = max(value_last, (bank or 0) + shape.value_parts - 1)
        merged = max(value_last, previous.merged + previous.spacing) if previous else value_last

        self._keys.take(last, again=known.again, keep=known.keep)
        self._values.take(value_last, again=known.again, keep=known.keep)
        self._logits += keys
        space = spacing(self._config, parts=shape.value_parts, closes=bank is not None)
        # What is left of the cycles from the last key on: logits could not leave, and as long as a tile
        # before waited for it, for want of room for results.
        unknown = min(max(0, known.queries - self.ended - 1), loaded - self.ended - 1)
        blocked = last - self.ended - keys * shape.key_parts - (come - self.ended - 1) - starved
        output = sum(max(0, min(last, tile.resumed) - max(come, tile.bank)) for tile in self._tiles)
        self._tile_waits = CycleBreakdown(
            idle=unknown,
            query=loaded - self.ended - 1 - unknown,
            key=come - loaded + starved,
            value=max(0, blocked - output),
            output=min(blocked, output),
            busy=keys * shape.key_parts,
        )
        self.waits = self.waits.plus(self._tile_waits)
        tile = _TileTimes(
            start, keys, shape.value_parts, first, last, value_first, value_last, merged, space, complete
        )
        self._tiles = [*self._tiles[1 - LOGIT_TILES :], tile]

    def _skip(self, shape: PassShape, run: TileRun, before: list[_TileTimes], left: int) -> int:
        """Jump over tiles that only repeat what the last one did; give how many."""
        keys, values = self._keys.supply, self._values.supply
        if len(before) < LOGIT_TILES or left < 2 or keys.ahead or values.ahead:
            return 0
        step = self._tiles[-1].key_last - before[-1].key_last
        moved = [tile.moved(cycles=step, keys=run.keys) for tile in before]
        pace = run.fetched * max(
            shape.key_parts * max(keys.interval, keys.gap),
            shape.value_parts * max(values.interval, values.gap),
        )
        if moved != self._tiles or step < pace:
            return 0
        self._tiles = [tile.moved(cycles=step * left, keys=run.keys * left) for tile in self._tiles]
        self._keys.skip(run.fetched * shape.key_parts * left, step * left)
        self._values.skip(run.fetched * shape.value_parts * left, step * left)
        self._logits += run.keys * left
        self.waits = self.waits.plus(self._tile_waits, left)
        return left
