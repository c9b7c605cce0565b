"""Predicted cycles of a launch: the core's schedule between the reads and the writes of memory.

A stream reads its tiles from its caches, or prefetches them from memory at the pace of its ports and their
channels.  Latencies are those of idle memory, bandwidth is the realistic one.  The engine drains between jobs
that decode and others, so each run of jobs of one phase is a launch of its own.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import UNIT_BITS, AttentionConfig
from hw.attention.driver.shapes import JobPass, JobShape, Tiles
from hw.attention.model.channel import PieceTimes
from hw.attention.model.cycles import CoreSchedule
from hw.attention.model.issue import IssueSchedule, PortNumber
from hw.attention.model.pieces import PassAddresses
from hw.attention.model.refresh import Refreshes, host_cycles
from hw.attention.model.results import bursts, sent
from hw.attention.model.stream import CycleBreakdown, TileRun
from hw.attention.model.supply import LockstepPorts, ResultChannel, Supply
from hw.attention.model.traffic import Fetch, fetches, traffic
from hw.attention.movers.movers import PASSES_AHEAD
from hw.attention.movers.ports import key_port, port_count, value_port
from hw.attention.movers.query_parts import QueryParts
from hw.attention.movers.query_reader import PARTS_AHEAD
from hw.attention.movers.timing import MoverTiming
from hw.board import Board
from hw.lib.dma.read import ReadDMA
from hw.lib.skid import Skid


def launch_cycles(
    config: AttentionConfig, board: Board, jobs: Sequence[JobShape], passes: Sequence[Fetch] | None = None
) -> CycleBreakdown:
    """Return the cycles of a launch, from ``start`` to ``done``, by their causes.

    ``jobs``: all jobs of the launch in order. ``passes``: their `fetches`, if these are computed already.
    """
    cycles = CycleBreakdown()
    left = deque(fetches(config, jobs) if passes is None else passes)
    for _, alike in groupby(jobs, key=lambda job: job.decode):
        own = list(alike)
        numbers = {id(job) for job in own}
        these = []
        while left and id(left[0].job) in numbers:
            these.append(left.popleft())
        cycles = cycles.plus(_run_cycles(config, board, own, these, start=sum(cycles)))
    return cycles


def _run_cycles(
    config: AttentionConfig, board: Board, jobs: Sequence[JobShape], passes: Sequence[Fetch], *, start: int
) -> CycleBreakdown:
    """Return the cycles of jobs of one phase, which begin ``start`` cycles after the launch."""
    width = config.port_width(board.memory.port_data_width)
    latency = MoverTiming(
        config,
        data_width=width,
        memory_cycles=board.beat_read_cycles(width // 8),
        table_cycles=board.idle_read_cycles,
    )
    refreshes = Refreshes(board, start=host_cycles(config) + start)
    schedule = CoreSchedule(
        config,
        beat_width=config.result_ports * config.result_slice(width),
        queries=_query_supply(config, board, jobs[0], width, latency),
        keys=_key_supply(config, board, jobs, jobs[0].query_size, latency, refreshes, key_port),
        values=_key_supply(config, board, jobs, jobs[0].value_size, latency, refreshes, value_port),
        channel=_result_channel(config, board, jobs, width),
        decode=jobs[0].decode,
    )
    issues = IssueSchedule(config, board, latency, refreshes, prefetched=start > 0)
    results = ResultTimes(config, board)
    loaded: deque[int] = deque(maxlen=PASSES_AHEAD + Skid.CAPACITY)
    for job, this, fetched in passes:
        # Streams with the same tiles and the same fetches have the same runs.
        distinct = {(id(t), id(m)): (t, m) for t, m in zip(this.tiles, fetched, strict=True)}
        runs_of = {key: _runs(*given) for key, given in distinct.items()}
        runs = [runs_of[id(t), id(m)] for t, m in zip(this.tiles, fetched, strict=True)]
        query_beats = this.shape.rows * config.query_bytes(job.query_size) * 8 / width
        room = loaded[0] + 1 if len(loaded) == loaded.maxlen else 0
        issue = replace(issues.add(job, this, fetched, room=room), result_cycles=results.add(job, this))
        schedule.add(this.shape, runs, issue=issue, query_beats=query_beats)
        loaded.append(schedule.loaded)
        results.drain(schedule.last_output)
    done = results.written + latency.done
    return schedule.cycles.plus(CycleBreakdown(idle=done - sum(schedule.cycles)))


class ResultTimes:
    """When the results of passes are on the buses of their ports, which are all alike."""

    def __init__(self, config: AttentionConfig, board: Board) -> None:
        self._config, self._board = config, board
        self._beat_bytes = config.port_width(board.memory.port_data_width) // 8
        self._burst_beats = board.memory.burst_beats
        self._places, self._times = PassAddresses(config), PieceTimes(board, write=True)
        timing = board.dram_timing
        granule_cycles = board.cycles(1e3 * timing.data_ck / timing.command_clock_mhz)
        # Cycles of the channel for a beat, beyond the one of the bus.
        self._behind = max(0.0, self._beat_bytes / timing.granule_bytes * granule_cycles - 1)
        #: ``sent``, ``written``: cycle of the last beat on the bus, and of its response.
        self.sent = self.written = 0

    def add(self, job: JobShape, this: JobPass) -> float:
        """Add the next pass; return the fewest cycles of a channel for its results."""
        self._row_bytes = self._config.result_units(job.value_size) * UNIT_BITS // 8
        self._pieces = self._places.add(job, this, row_bytes=self._row_bytes)
        return self._times.cycles(self._pieces)

    def drain(self, drained: int) -> None:
        """Send the results of the pass, whose last beat leaves the core in the cycle ``drained``."""
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
        response = self._board.beat_write_cycles(min(self._beat_bytes, pieces.length))
        self.written = self.sent + math.floor((beats - 1) * self._behind) + response


def _runs(tiles: Tiles, fetched: NDArray[np.int_]) -> list[TileRun]:
    """Group tiles with equal keys and fetches; a placeholder fetches nothing."""
    if not len(tiles.numbers):
        return [TileRun(1, 1, 0)]
    changes = np.flatnonzero((np.diff(tiles.keys) != 0) | (np.diff(fetched) != 0)) + 1
    starts = [0, *changes.tolist()]
    ends = [*changes.tolist(), len(tiles.numbers)]
    return [TileRun(b - a, int(tiles.keys[a]), int(fetched[a])) for a, b in zip(starts, ends, strict=True)]


def _query_supply(
    config: AttentionConfig, board: Board, job: JobShape, width: int, latency: MoverTiming
) -> Supply:
    idle_read_cycles = board.idle_read_cycles
    if config.decodes:
        ahead = config.query_port_count * QueryParts.PORT_PARTS + QueryParts.PARTS_AHEAD
        return Supply(latency=latency.query, depth=ahead - idle_read_cycles)
    parts = -(-job.query_size // config.lanes)
    part_bits = config.query_units(job.query_size) * UNIT_BITS / parts
    beats = max(1.0, part_bits / width)
    depth = PARTS_AHEAD + Skid.CAPACITY + max(0.0, (ReadDMA.FIFO_BEATS - idle_read_cycles) / beats)
    interval = max(beats, part_bits / 8 / board.channel_bytes_per_cycle)
    return Supply(latency=latency.query + math.ceil(beats) - 1, interval=interval, depth=depth)


def _key_supply(
    config: AttentionConfig,
    board: Board,
    jobs: Sequence[JobShape],
    size: int,
    latency: MoverTiming,
    refreshes: Refreshes,
    number: PortNumber,
) -> Supply:
    """Return the supply of parts of keys, or of values, of ``size`` elements."""
    parts = -(-size // config.lanes)
    decode = jobs[0].decode
    ports = 1 if decode else config.ports  # that share a stream's parts
    part_bytes = config.key_units(size) * UNIT_BITS / 8 / parts / ports  # through each port
    beats = 8 * part_bytes / config.port_width(board.memory.port_data_width)
    gap = max(1.0, beats)
    interval = max(gap, part_bytes / _port_bytes(config, board, jobs))
    depth = ReadDMA.FIFO_BEATS / beats - board.idle_read_cycles / interval
    first = (latency.part if decode else latency.key) + math.ceil(gap) - 1
    lockstep = None
    if decode:
        moves = part_bytes / _port_bytes(config, board, jobs) * (1 - refreshes.share)
        interval = max(gap, moves)
        timing = board.dram_timing
        held_bytes = timing.read_buffer_granules * timing.granule_bytes + timing.fabric_read_bytes
        lockstep = LockstepPorts(
            interval=moves,
            ahead=held_bytes / part_bytes,
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
        turn=parts * ports,
        beats=beats,
    )


def _result_channel(
    config: AttentionConfig, board: Board, jobs: Sequence[JobShape], width: int
) -> ResultChannel:
    """Return the channel of results: one for each of their ports, or a single one shared with queries.

    A shared channel turns around for each run of writes and back, and then opens a row.
    """
    timing = board.dram_timing
    # A row's last slice may be partly filled, and is packed with the next row's.
    row = config.result_units(max(job.value_size for job in jobs)) * UNIT_BITS
    beat_bytes = row / 8 / -(-row // config.result_slice(width))
    interval = beat_bytes / board.channel_bytes_per_cycle
    channels = board.memory.channels
    # Results of a kernel that decodes share channels with keys and values.  Where there are many results,
    # caches keep these channels idle.
    apart = config.decodes and 1 + config.query_port_count + config.result_ports <= channels
    if port_count(config) <= channels or apart:
        return ResultChannel(write_interval=interval)
    runs = beat_bytes / (timing.direction_granules * timing.granule_bytes)
    lost = board.cycles(timing.turnaround_ns + 1e3 * timing.rcd_read_ck / timing.command_clock_mhz)
    writes = config.result_ports * (interval + runs * lost)
    read = width / 8 / board.channel_bytes_per_cycle
    return ResultChannel(read_interval=read, write_interval=writes)


def _port_bytes(config: AttentionConfig, board: Board, jobs: Sequence[JobShape]) -> float:
    """Return memory's bytes a cycle for a port of keys or values."""
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
