"""How many cycles a launch takes, computed: the core's schedule between what memory takes at both ends.

A stream's tiles come from its caches, or from memory at the pace of its ports and of their channels, whose
buffers let them run ahead.  Latencies are those of idle memory, bandwidth is the realistic one.  To change
between jobs that decode and others the engine drains, so that each run of jobs is a launch of its own.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import UNIT_BITS, AttentionConfig
from hw.attention.model.channel import PieceTimes
from hw.attention.model.cycles import Run, Schedule, Waits
from hw.attention.model.latency import Latency
from hw.attention.model.places import Pieces, Places, Reads, dealt, ports_used
from hw.attention.model.refresh import Refreshes
from hw.attention.model.results import bursts, sent
from hw.attention.model.shapes import JobPass, JobShape, Tiles
from hw.attention.model.supply import Known, Lockstep, ResultChannel, Supply
from hw.attention.model.traffic import fetches, traffic
from hw.attention.movers.movers import PASSES_AHEAD
from hw.attention.movers.part_reader import PartReader
from hw.attention.movers.ports import key_port, port_count, query_port, value_port
from hw.attention.movers.query_parts import QueryParts
from hw.attention.movers.query_reader import PARTS_AHEAD
from hw.attention.walk.descriptor import DESCRIPTOR_BYTES, USED_BYTES
from hw.attention.walk.geometry import BITMAP_ROW_BYTES
from hw.attention.walk.job_queue import JOBS_AHEAD
from hw.attention.walk.pages import PageLookup
from hw.attention.walk.segments import TileWalker
from hw.attention.walk.words import WORD_TILES
from hw.board import Board
from hw.board.dram_timing import DramTiming
from hw.lib.dma.read import ReadDMA
from hw.lib.skid import Skid

#: The number of the memory port of a stream's port.
PortNumber = Callable[[AttentionConfig, int, int], int]


def launch_cycles(config: AttentionConfig, board: Board, jobs: Sequence[JobShape]) -> Waits:
    """Give the cycles of a launch, from ``start`` to ``done``, by where they go.

    Parameters
    ----------
    config, board
        The engine and where it runs.
    jobs
        All jobs of the launch in order.
    """
    waits = Waits()
    for _, alike in groupby(jobs, key=lambda job: job.decode):
        waits = waits.plus(_run_cycles(config, board, list(alike), start=sum(waits)))
    return waits


def _run_cycles(config: AttentionConfig, board: Board, jobs: Sequence[JobShape], *, start: int) -> Waits:
    """Give the cycles of jobs that all decode, or of which none does, ``start`` cycles after the launch's."""
    width = config.port_width(board.memory.port_data_width)
    latency = Latency(config, data_width=width, memory_cycles=board.idle_read_cycles)
    refreshes = Refreshes(board, start=start)
    schedule = Schedule(
        config,
        beat_width=config.result_ports * config.result_slice(width),
        queries=_query_supply(config, jobs[0], width, latency, board.idle_read_cycles),
        keys=_key_supply(config, board, jobs, jobs[0].query_size, latency, refreshes, key_port),
        values=_key_supply(config, board, jobs, jobs[0].value_size, latency, refreshes, value_port),
        channel=_result_channel(config, board, jobs, width),
        decode=jobs[0].decode,
    )
    walk = Walk(config, board, latency, refreshes)
    results = Results(config, board)
    loaded: deque[int] = deque(maxlen=PASSES_AHEAD + Skid.CAPACITY)
    for job, this, fetched in fetches(config, jobs):
        runs = [_runs(tiles, missing) for tiles, missing in zip(this.tiles, fetched, strict=True)]
        query_beats = this.shape.rows * config.query_bytes(job.query_size) * 8 / width
        room = loaded[0] + 1 if len(loaded) == loaded.maxlen else 0
        known = replace(walk.known(job, this, fetched, room=room), result_cycles=results.add(job, this))
        schedule.add(this.shape, runs, known=known, query_beats=query_beats)
        loaded.append(schedule.loaded)
        results.drain(schedule.last_output)
    done = results.written + board.idle_write_cycles + latency.done
    return schedule.waits.plus(Waits(idle=done - sum(schedule.waits)))


class Results:
    """Results on their way from the core to the buses of their ports, which are alike.

    Parameters
    ----------
    config, board
        The engine and where it runs.

    Members
    -------
    sent, written : int
        Cycle of the last beat on the bus, and in which its channel is ready for it.
    """

    def __init__(self, config: AttentionConfig, board: Board) -> None:
        self._config = config
        self._beat_bytes = config.port_width(board.memory.port_data_width) // 8
        self._burst_beats = board.memory.burst_beats
        self._places, self._times = Places(config), PieceTimes(board, write=True)
        timing = board.memory.timing
        assert isinstance(timing, DramTiming)  # a board's own memory is one: `hw.board.Board`
        granule_cycles = board.cycles(1e3 * timing.data_ck / timing.command_clock_mhz)
        # What a beat takes longer of the channel than of the bus.
        self._behind = max(0.0, self._beat_bytes / timing.granule_bytes * granule_cycles - 1)
        self.sent = self.written = 0

    def add(self, job: JobShape, this: JobPass) -> float:
        """Go on to the next pass; give the cycles that a channel takes for its results at least."""
        self._row_bytes = self._config.result_units(job.value_size) * UNIT_BITS // 8
        self._pieces = self._places.add(job, this, row_bytes=self._row_bytes)
        return self._times.cycles(self._pieces)

    def drain(self, drained: int) -> None:
        """Send the results of the pass, whose last beat the core gives in the cycle ``drained``."""
        pieces = self._pieces
        self.sent = sent(
            drained,
            free=self.sent,
            pieces=pieces,
            row_bytes=self._row_bytes,
            beat_bytes=self._beat_bytes,
            burst_beats=self._burst_beats,
        )
        end = pieces.first + (pieces.count - 1) * pieces.stride + pieces.length
        *_, (beats, _) = bursts(
            end - pieces.length, end, beat_bytes=self._beat_bytes, burst_beats=self._burst_beats
        )
        self.written = self.sent + math.floor((beats - 1) * self._behind)


class Walk:
    """When passes and tiles are known: both walks, and `JOBS_AHEAD` descriptors asked for ahead of their use.

    Parameters
    ----------
    config, board
        The engine and where it runs.
    latency
        Of its movers.
    refreshes
        Of the board's memory.
    """

    def __init__(self, config: AttentionConfig, board: Board, latency: Latency, refreshes: Refreshes) -> None:
        self._config = config
        self._latency = latency
        query_channels = [query_port(config, n) for n in range(config.query_port_count)]
        self._queries, self._query_reads = Places(config), Reads(board, refreshes, query_channels)
        self._refreshes = refreshes
        self._query_times = PieceTimes(board, write=False)
        self._descriptor_reads, self._bitmap_reads = Reads(board, refreshes), Reads(board, refreshes)
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
    ) -> Known:
        """Give when what the next pass needs is known; ``fetched`` are the keys of its tiles from memory, and
        from the cycle ``room`` on there is room for its command.
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
        rows = 0 if job.bitmap is None else -(-job.bitmap.shape[1] // (8 * BITMAP_ROW_BYTES))
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
            told += not this.shape.empty
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
        return Known(
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
        """Give the channels that a pass reads keys, or values, from."""
        used = [min(self._config.ports, int(keys.max(initial=0))) for keys in fetched]
        return [number(self._config, s, port) for s, ports in enumerate(used) for port in range(ports)]

    def _first_pass(self) -> int:
        """Give the cycle of the first pass of the next job."""
        latency, number = self._latency, len(self._joined)
        if not number:
            self._joined.append(0)
            return latency.first_pass
        asked = number if number <= JOBS_AHEAD else self._joined[number - JOBS_AHEAD]
        place = Pieces(first=(number - 1) * DESCRIPTOR_BYTES, stride=0, count=1, length=USED_BYTES)
        come = asked + latency.descriptor + self._descriptor_reads.later(asked, place)
        joined = max(come, self._taken + latency.descriptor_words)
        self._joined.append(joined)
        self._ends.append(self._pass)
        # One job waits behind the one that is walked.
        self._taken = max(joined, self._ends[-2] if number > 1 else 0)
        return max(self._taken + latency.first_pass, self._pass + latency.next_job)

    def _bitmap_later(self, rows: int) -> int:
        """Give the cycles by which the next bitmap row, of so many `BITMAP_ROW_BYTES`, comes later."""
        length = rows * BITMAP_ROW_BYTES
        place = Pieces(first=self._bitmap_bytes, stride=0, count=1, length=length)
        self._bitmap_bytes += length
        return self._bitmap_reads.later(self._pass, place)

    def _give(self, cycle: int, tiles: int, *, clears: bool, pace: int = 1) -> int:
        """Give tiles to the tags, one in ``pace`` cycles from ``cycle`` on; two may wait. Say when they take
        the first one.
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
        """Give the cycle of the first tile.

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


def _runs(tiles: Tiles, fetched: NDArray[np.int_]) -> list[Run]:
    """Put tiles together that are alike; a dummy takes nothing from memory."""
    if not len(tiles.numbers):
        return [Run(1, 1, 0)]
    changes = np.flatnonzero((np.diff(tiles.keys) != 0) | (np.diff(fetched) != 0)) + 1
    starts = [0, *changes.tolist()]
    ends = [*changes.tolist(), len(tiles.numbers)]
    return [Run(b - a, int(tiles.keys[a]), int(fetched[a])) for a, b in zip(starts, ends, strict=True)]


def _query_supply(
    config: AttentionConfig, job: JobShape, width: int, latency: Latency, idle_read_cycles: int
) -> Supply:
    if config.decodes:
        ahead = config.query_port_count * PartReader.PARTS + QueryParts.PARTS_AHEAD
        return Supply(latency=latency.query, depth=ahead - idle_read_cycles)
    parts = -(-job.query_size // config.lanes)
    beats = max(1.0, config.query_units(job.query_size) * UNIT_BITS / width / parts)
    depth = PARTS_AHEAD + Skid.CAPACITY + max(0.0, (ReadDMA.FIFO_BEATS - idle_read_cycles) / beats)
    return Supply(latency=latency.query + math.ceil(beats) - 1, interval=beats, depth=depth)


def _key_supply(
    config: AttentionConfig,
    board: Board,
    jobs: Sequence[JobShape],
    size: int,
    latency: Latency,
    refreshes: Refreshes,
    number: PortNumber,
) -> Supply:
    """Give the supply of parts of keys, or of values, of ``size`` elements."""
    parts = -(-size // config.lanes)
    decode = jobs[0].decode
    ports = 1 if decode else config.ports  # that share a stream's parts
    part_bytes = config.key_units(size) * UNIT_BITS / 8 / parts / ports  # through each of them
    beats = 8 * part_bytes / config.port_width(board.memory.port_data_width)
    gap = max(1.0, beats)
    interval = max(gap, part_bytes / _port_bytes(config, board, jobs))
    depth = ReadDMA.FIFO_BEATS / beats - board.idle_read_cycles / interval
    first = (latency.part if decode else latency.key) + math.ceil(gap) - 1
    turn = parts * ports
    lockstep = None
    if decode:
        interval = max(gap, interval * (1 - refreshes.share))
        lockstep = Lockstep(
            channels=[number(config, s, p) for s in range(config.streams) for p in range(config.ports)],
            refreshes=refreshes,
            behind=first - latency.fetch - (latency.join if number is value_port else 0),
        )
    return Supply(
        lockstep=lockstep,
        latency=first,
        interval=interval,
        gap=gap,
        depth=max(1.0, depth),
        turn=turn,
        beats=beats,
    )


def _result_channel(
    config: AttentionConfig, board: Board, jobs: Sequence[JobShape], width: int
) -> ResultChannel:
    """Give the channel of results: each of their ports has one of its own, or they share one with queries.
    That one changes its direction once a run of writes and back, and opens a row for what comes then.
    """
    timing = board.memory.timing
    assert isinstance(timing, DramTiming)  # a board's own memory is one: `hw.board.Board`
    # A row's last slice may be partly filled, and is put together with the next row's.
    row = config.result_units(max(job.value_size for job in jobs)) * UNIT_BITS
    beat_bytes = row / 8 / -(-row // config.result_slice(width))
    interval = beat_bytes / board.channel_bytes_per_cycle
    channels = board.memory.channels
    # Results of a kernel that decodes share channels with keys and values, which caches keep idle where there
    # are many results.
    apart = config.decodes and 1 + config.query_port_count + config.result_ports <= channels
    if port_count(config) <= channels or apart:
        return ResultChannel(write_interval=interval)
    runs = beat_bytes / (timing.direction_granules * timing.granule_bytes)
    lost = board.cycles(timing.turnaround_ns + 1e3 * timing.rcd_read_ck / timing.command_clock_mhz)
    writes = config.result_ports * (interval + runs * lost)
    read = width / 8 / board.channel_bytes_per_cycle
    return ResultChannel(read_interval=read, write_interval=writes)


def _port_bytes(config: AttentionConfig, board: Board, jobs: Sequence[JobShape]) -> float:
    """Give the bytes a cycle that memory has for a port of keys or values."""
    channel, channels = board.channel_bytes_per_cycle, board.memory.channels
    width = config.port_width(board.memory.port_data_width)
    shared = -(-2 * config.streams * config.ports // channels)
    if port_count(config) <= channels or shared == 1:
        return channel / shared
    # Queries and results go through the same channels, but no faster than their ports.
    moved = traffic(config, jobs)
    streamed = moved.key_bytes + moved.value_bytes
    others = channel * (1 - streamed / moved.moved_bytes) if streamed else 0.0
    return (channel - min(others, (config.query_port_count + config.result_ports) * width / 8)) / shared
