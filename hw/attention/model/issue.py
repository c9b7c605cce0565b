"""When passes are issued, with the reads of their queries, keys and values; and when their tiles are."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import UNIT_BITS, AttentionConfig
from hw.attention.driver.shapes import JobPass, JobShape
from hw.attention.model.channel import PieceTimes
from hw.attention.model.pieces import OpenRows, PassAddresses, Pieces, dealt, ports_used
from hw.attention.model.refresh import Refreshes
from hw.attention.model.supply import IssueTimes
from hw.attention.movers.ports import key_port, query_port, value_port
from hw.attention.movers.timing import MoverTiming
from hw.attention.walk.descriptor import DESCRIPTOR_BYTES, USED_BYTES
from hw.attention.walk.job_queue import JOBS_AHEAD
from hw.attention.walk.job_setup import BITMAP_ROW_BYTES
from hw.attention.walk.pages import PageLookup
from hw.attention.walk.table_words import WORD_TILES
from hw.attention.walk.tiles import TileWalker
from hw.board import Board

#: The number of the memory port of a stream's port.
PortNumber = Callable[[AttentionConfig, int, int], int]


class IssueSchedule:
    """When passes and tiles are issued, pass after pass; `JOBS_AHEAD` descriptors are prefetched.

    ``latency``: of the movers. ``refreshes``: of the board's memory. ``prefetched``: jobs of the other phase
    ran before, and the first descriptors arrived meanwhile.
    """

    def __init__(
        self,
        config: AttentionConfig,
        board: Board,
        latency: MoverTiming,
        refreshes: Refreshes,
        *,
        prefetched: bool = False,
    ) -> None:
        self._config, self._prefetched = config, prefetched
        self._decodes, self._query_ports = config.decodes, config.query_port_count
        self._latency = latency
        query_channels = [query_port(config, n) for n in range(self._query_ports)]
        self._queries, self._query_reads = PassAddresses(config), OpenRows(board, refreshes, query_channels)
        self._refreshes = refreshes
        self._key_channels, self._value_channels = (
            [[number(config, s, p) for p in range(config.ports)] for s in range(config.streams)]
            for number in (key_port, value_port)
        )
        self._query_times = PieceTimes(board, write=False)
        self._descriptor_reads, self._bitmap_reads = OpenRows(board, refreshes), OpenRows(board, refreshes)
        self._bitmap_bytes = 0  # read so far
        self._pass = 0  # issue of the last pass
        self._ends: list[int] = []  # issue of the last passes of the jobs before
        self._arrived: list[int] = []  # of descriptors
        self._taken = 0  # the last descriptor
        # The walk over tiles: issue of its last tile; when the tags are free behind the last two.
        self._last_tile = -2
        self._tags_free = (0, 0)
        self._bits_free = self._entries_free = 0  # earliest arrival of the next bitmap row, of the next entry
        self._clear_owed = False  # by a pass without tiles
        # The page lookup of the next tile: its latency, the arrival of its entry, and entries skipped before.
        self._page = (0, 0, 0)

    def add(
        self, job: JobShape, this: JobPass, fetched: Sequence[NDArray[np.int_]], *, room: int = 0
    ) -> IssueTimes:
        """Return when the next pass is issued.

        ``fetched``: keys of its tiles from memory. ``room``: first cycle with room for its command.
        """
        latency = self._latency
        if this.first:
            self._pass = self._first_pass()
        else:
            self._pass += latency.next_set if this.opens_set else latency.next_pass
        self._pass = max(self._pass, room)
        queries, channels = self._query_pieces(job, this)
        clears = self._clear_owed or (this.opens_head and not (this.first and job.reuse_kv))
        self._clear_owed = clears and this.shape.empty
        tile, decided = self._first_tile(job, this, clears=clears)
        planned = tile if clears else tile + latency.cleared
        key_delay = value_delay = 0
        if not job.decode:  # readers in lockstep wait for refreshes one by one
            key_delay, value_delay = (
                self._refreshes.wait(_used(channels_of, fetched), planned + latency.fetch + join)
                for channels_of, join in ((self._key_channels, 0), (self._value_channels, latency.join))
            )
        return IssueTimes(
            key_delay=key_delay,
            value_delay=value_delay,
            queries=self._pass,
            keys=planned,
            empty=decided + latency.empty,
            cached=planned + latency.replay,
            query_delay=self._query_reads.later(self._pass, queries, channels),
            query_cycles=self._query_times.cycles(queries),
            again=this.again,
            keep=this.keep,
        )

    def _query_pieces(self, job: JobShape, this: JobPass) -> tuple[Pieces, list[int]]:
        """Return the pieces of a pass's queries at a port, and the channels they lie in, if not in all."""
        query_bytes = self._config.query_units(job.query_size) * UNIT_BITS // 8
        queries = self._queries.add(job, this, row_bytes=query_bytes)
        if not self._decodes:
            return queries, []
        ports, unit = self._query_ports, self._config.part_bits // 8
        channels = [query_port(self._config, n) for n in ports_used(queries, ports=ports, unit=unit)]
        return dealt(queries, ports=ports, unit=unit), channels

    def _first_tile(self, job: JobShape, this: JobPass, *, clears: bool) -> tuple[int, int]:
        """Issue the tiles of a pass; return when the tags take the first one, and when it is decided whether
        the pass is empty.
        """
        latency, empty = self._latency, this.shape.empty
        taken = max(self._pass + latency.tile, self._last_tile + 1 + TileWalker.LATENCY)
        numbers = max((own.numbers for own in this.tiles), key=len)
        pace, passed, self._page = 1, None, (0, 0, 0)
        if this.entries:
            tiles = job.page_keys // self._config.tile_span
            passed = (numbers // tiles - this.entries.start).tolist() or [0]
            pace = PageLookup.INTERVAL + (tiles == 1)
            # Behind the pass's bitmap row.
            arrived = max(self._pass + job.bitmap_rows + latency.entry, self._entries_free)
            self._entries_free = arrived + len(this.entries)
            self._page = PageLookup.LATENCY, arrived, passed[0]
        decided = taken - TileWalker.LATENCY
        words: list[int] = []
        if job.bitmap is not None:
            length = job.bitmap_rows * 8 * BITMAP_ROW_BYTES // WORD_TILES
            words = np.bincount(numbers // WORD_TILES, minlength=length).tolist()
            bits = max(self._pass + latency.bitmap + self._bitmap_delay(job.bitmap_rows), self._bits_free)
            self._bits_free = bits + len(words)
            taken = max(taken, bits)
            before = next((n for n, tiles in enumerate(words) if tiles), len(words))
            decided = taken + before * (TileWalker.BITS_LATENCY + TileWalker.WORD_LATENCY)
            decided += 0 if empty else TileWalker.BITS_LATENCY
        if empty:
            tile = self._last_tile = decided
        elif words:
            tile = self._issue_words(taken, words, clears=clears)
        else:
            tile = self._issue_tiles(taken, max(1, len(numbers)), clears=clears, pace=pace)
        if passed is not None:
            # Entries are skipped up to that of the last tile, and behind it.
            skipped = len(this.entries) - passed[-1] - 1
            self._last_tile = max(self._last_tile, arrived + passed[-1]) + skipped
        return tile, decided

    def _first_pass(self) -> int:
        """Return the cycle of the first pass of the next job."""
        latency, number = self._latency, len(self._arrived)
        if not number:
            self._arrived.append(0)
            return latency.first_pass
        requested = number if number <= JOBS_AHEAD else self._arrived[number - JOBS_AHEAD]
        place = Pieces(first=(number - 1) * DESCRIPTOR_BYTES, stride=0, count=1, length=USED_BYTES)
        data = requested + latency.descriptor + self._descriptor_reads.later(requested, place)
        if self._prefetched and number <= JOBS_AHEAD:
            data = 0
        arrived = max(data, self._taken + latency.descriptor_words)
        self._arrived.append(arrived)
        self._ends.append(self._pass)
        # One job waits behind the current one.
        self._taken = max(arrived, self._ends[-2] if number > 1 else 0)
        return max(self._taken + latency.first_pass, self._pass + latency.next_job)

    def _bitmap_delay(self, rows: int) -> int:
        """Return the delay of the next bitmap row, of ``rows`` times `BITMAP_ROW_BYTES`."""
        length = rows * BITMAP_ROW_BYTES
        place = Pieces(first=self._bitmap_bytes, stride=0, count=1, length=length)
        self._bitmap_bytes += length
        return self._bitmap_reads.later(self._pass, place)

    def _issue_tiles(self, cycle: int, tiles: int, *, clears: bool, pace: int = 1) -> int:
        """Issue tiles to the tags, one in ``pace`` cycles from ``cycle`` on; two may wait.

        Returns the cycle in which the tags take the first one.
        """
        interval = max(self._latency.tiles, pace)
        before, last = self._tags_free
        lookup, arrived, skipped = self._page
        self._page = lookup, 0, 0
        first = max(max(cycle + lookup, arrived) + skipped, before + 1)
        taken = max(first, last)
        free = taken + self._latency.tiles - clears * self._latency.cleared
        self._last_tile = first + pace * (tiles - 1)
        if tiles > 1:
            behind = last + 1 if tiles == 2 else free + interval * (tiles - 3) + 1
            self._last_tile = max(self._last_tile, behind)
        self._tags_free = (
            free + interval * (tiles - 2) if tiles > 1 else last,
            free + interval * (tiles - 1),
        )
        return taken

    def _issue_words(self, cycle: int, words: list[int], *, clears: bool) -> int:
        """Issue the tiles of a bitmap's words, each when the next one is found: only then it is known whether
        it closes.

        Returns the cycle of the first tile.
        """
        pace = TileWalker.BIT_INTERVAL
        first, waiting = None, False
        for tiles in words:
            cycle += TileWalker.BITS_LATENCY
            if tiles and not waiting:
                cycle, tiles, waiting = cycle + pace, tiles - 1, True
            if tiles:
                clear = clears and first is None
                taken = self._issue_tiles(cycle + pace - 1, tiles, clears=clear, pace=pace)
                first = taken if first is None else first
                cycle = self._last_tile + 1
            cycle += TileWalker.WORD_LATENCY
        taken = self._issue_tiles(cycle + TileWalker.WORD_LATENCY, 1, clears=clears and first is None)
        return taken if first is None else first


def _used(channels: Sequence[Sequence[int]], fetched: Sequence[NDArray[np.int_]]) -> list[int]:
    """Return the channels, of those of each stream, that a pass reads keys or values from."""
    most = (int(keys.max(initial=0)) for keys in fetched)
    return [channel for own, count in zip(channels, most, strict=False) for channel in own[:count]]
