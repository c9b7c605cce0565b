"""When passes, their tiles, and what these need are known: the walks over both, and what they wait for."""

from __future__ import annotations

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
    """When passes and tiles are known: both walks, and `JOBS_AHEAD` descriptors asked for ahead of their use.

    ``latency``: of its movers. ``refreshes``: of the board's memory. ``goes_on``: jobs of the other phase
    were before: descriptors that may be asked for ahead have come meanwhile.
    """

    def __init__(
        self,
        config: AttentionConfig,
        board: Board,
        latency: MoverTiming,
        refreshes: Refreshes,
        *,
        goes_on: bool = False,
    ) -> None:
        self._config, self._goes_on = config, goes_on
        self._latency = latency
        query_channels = [query_port(config, n) for n in range(config.query_port_count)]
        self._queries, self._query_reads = PassAddresses(config), OpenRows(board, refreshes, query_channels)
        self._refreshes = refreshes
        self._query_times = PieceTimes(board, write=False)
        self._descriptor_reads, self._bitmap_reads = OpenRows(board, refreshes), OpenRows(board, refreshes)
        self._bitmap_bytes = 0  # read so far
        self._pass = 0  # the last one
        self._ends: list[int] = []  # last passes of the jobs before
        self._joined: list[int] = []  # when descriptors were there
        self._taken = 0  # the last one
        # Of the walk over tiles: when it gave its last one; when the tags were free behind the last two.
        self._gave = -2
        self._bits = 0  # when the bits of the next bitmap row can come, behind those before them
        self._entries = 0  # when the next entry of a page table can come, likewise
        self._owed = False  # a clear, by a pass without tiles
        # Of its lookup for the next tile: its cycles, when it can be, and entries that it passes over.
        self._page = (0, 0, 0)
        self._tags_free = (0, 0)

    def known(
        self, job: JobShape, this: JobPass, fetched: Sequence[NDArray[np.int_]], *, room: int = 0
    ) -> IssueTimes:
        """Return when what the next pass needs is known; ``fetched`` are the keys of its tiles from memory,
        and from the cycle ``room`` on there is room for its command.
        """
        latency = self._latency
        if this.first:
            self._pass = self._first_pass()
        else:
            self._pass += latency.next_set if this.opens_set else latency.next_pass
        self._pass = max(self._pass, room)
        query_bytes = self._config.query_units(job.query_size) * UNIT_BITS // 8
        queries = self._queries.add(job, this, row_bytes=query_bytes)
        channels: list[int] = []
        if self._config.decodes:
            turns = {"ports": self._config.query_port_count, "unit": self._config.part_bits // 8}
            channels = [query_port(self._config, n) for n in ports_used(queries, **turns)]
            queries = dealt(queries, **turns)
        taken = max(self._pass + latency.tile, self._gave + 1 + TileWalker.LATENCY)
        numbers = max((own.numbers for own in this.tiles), key=len)
        clears = self._owed or (this.opens_head and not (this.first and job.reuse_kv))
        self._owed = clears and this.shape.empty
        rows = job.bitmap_rows
        pace, look, self._page = 1, None, (0, 0, 0)
        if this.entries:
            tiles = job.page_keys // self._config.tile_span
            look = (numbers // tiles - this.entries.start).tolist() or [0]
            pace = PageLookup.INTERVAL + (tiles == 1)
            # Behind the pass's bitmap row.
            come = max(self._pass + rows + latency.entry, self._entries)
            self._entries = come + len(this.entries)
            self._page = PageLookup.LATENCY, come, look[0]
        told = taken - TileWalker.LATENCY  # whether it is empty
        words: list[int] = []
        if job.bitmap is not None:
            length = rows * 8 * BITMAP_ROW_BYTES // WORD_TILES
            words = np.bincount(numbers // WORD_TILES, minlength=length).tolist()
            bits = max(self._pass + latency.bitmap + self._bitmap_later(rows), self._bits)
            self._bits = bits + len(words)
            taken = max(taken, bits)
            before = next((n for n, tiles in enumerate(words) if tiles), len(words))
            told = taken + before * (TileWalker.BITS_LATENCY + TileWalker.WORD_LATENCY)
            told += 0 if this.shape.empty else TileWalker.BITS_LATENCY
        if this.shape.empty:
            tile = self._gave = told
        elif words:
            tile = self._over_bits(taken, words, clears=clears)
        else:
            tile = self._give(taken, max(1, len(numbers)), clears=clears, pace=pace)
        if look is not None:
            # Entries are passed over on the way to the last tile, and those left behind it.
            self._gave = max(self._gave, come + look[-1]) + len(this.entries) - look[-1] - 1
        looked = tile if clears else tile + latency.cleared
        keys_later = values_later = 0
        if not job.decode:  # readers in lockstep wait for refreshes one by one
            keys_later, values_later = (
                self._refreshes.wait(self._channels(number, fetched), looked + latency.fetch + join)
                for number, join in ((key_port, 0), (value_port, latency.join))
            )
        return IssueTimes(
            keys_later=keys_later,
            values_later=values_later,
            queries=self._pass,
            keys=looked,
            empty=told + latency.empty,
            cached=looked + latency.replay,
            later=self._query_reads.later(self._pass, queries, channels),
            query_cycles=self._query_times.cycles(queries),
            again=this.again,
            keep=this.keep,
        )

    def _channels(self, number: PortNumber, fetched: Sequence[NDArray[np.int_]]) -> list[int]:
        """Return the channels that a pass reads keys, or values, from."""
        used = [min(self._config.ports, int(keys.max(initial=0))) for keys in fetched]
        return [number(self._config, s, port) for s, ports in enumerate(used) for port in range(ports)]

    def _first_pass(self) -> int:
        """Return the cycle of the first pass of the next job."""
        latency, number = self._latency, len(self._joined)
        if not number:
            self._joined.append(0)
            return latency.first_pass
        asked = number if number <= JOBS_AHEAD else self._joined[number - JOBS_AHEAD]
        place = Pieces(first=(number - 1) * DESCRIPTOR_BYTES, stride=0, count=1, length=USED_BYTES)
        come = asked + latency.descriptor + self._descriptor_reads.later(asked, place)
        if self._goes_on and number <= JOBS_AHEAD:
            come = 0
        joined = max(come, self._taken + latency.descriptor_words)
        self._joined.append(joined)
        self._ends.append(self._pass)
        # One job waits behind the one that is walked.
        self._taken = max(joined, self._ends[-2] if number > 1 else 0)
        return max(self._taken + latency.first_pass, self._pass + latency.next_job)

    def _bitmap_later(self, rows: int) -> int:
        """Return the cycles by which the next bitmap row, of so many `BITMAP_ROW_BYTES`, comes later."""
        length = rows * BITMAP_ROW_BYTES
        place = Pieces(first=self._bitmap_bytes, stride=0, count=1, length=length)
        self._bitmap_bytes += length
        return self._bitmap_reads.later(self._pass, place)

    def _give(self, cycle: int, tiles: int, *, clears: bool, pace: int = 1) -> int:
        """Return tiles to the tags, one in ``pace`` cycles from ``cycle`` on; two may wait. Say when they
        take the first one.
        """
        interval = max(self._latency.tiles, pace)
        before, last = self._tags_free
        lookup, come, passed_over = self._page
        self._page = lookup, 0, 0
        first = max(max(cycle + lookup, come) + passed_over, before + 1)
        taken = max(first, last)
        free = taken + self._latency.tiles - clears * self._latency.cleared
        self._gave = first + pace * (tiles - 1)
        if tiles > 1:
            self._gave = max(self._gave, last + 1 if tiles == 2 else free + interval * (tiles - 3) + 1)
        self._tags_free = (
            free + interval * (tiles - 2) if tiles > 1 else last,
            free + interval * (tiles - 1),
        )
        return taken

    def _over_bits(self, cycle: int, words: list[int], *, clears: bool) -> int:
        """Return the cycle of the first tile.

        A tile goes when the next one is found, so that it is known whether it closes.
        """
        pace = TileWalker.BIT_INTERVAL
        first, waiting = None, False
        for tiles in words:
            cycle += TileWalker.BITS_LATENCY
            if tiles and not waiting:
                cycle, tiles, waiting = cycle + pace, tiles - 1, True
            if tiles:
                taken = self._give(cycle + pace - 1, tiles, clears=clears and first is None, pace=pace)
                first = taken if first is None else first
                cycle = self._gave + 1
            cycle += TileWalker.WORD_LATENCY
        taken = self._give(cycle + TileWalker.WORD_LATENCY, 1, clears=clears and first is None)
        return taken if first is None else first
