"""How many cycles a launch takes, computed: the core's schedule between what memory takes at both ends.

A stream's tiles come from its caches, or from memory at the pace of its ports and of their channels, whose
buffers let them run ahead.  Latencies are those of idle memory, bandwidth is the realistic one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hw.attention.config import AttentionConfig
from hw.attention.model.cycles import Run, Schedule, Waits
from hw.attention.model.shapes import JobShape, Tiles
from hw.attention.model.supply import Known, Supply
from hw.attention.model.traffic import fetches, traffic
from hw.attention.movers.movers import port_count
from hw.attention.walk.descriptor import USED_BYTES
from hw.attention.walk.job_queue import JOBS_AHEAD
from hw.board import Board, Memory
from hw.board.memory_timing import DramTiming, HbmTiming, HostTiming

#: From ``start`` to the job's first pass, and of any other job from its descriptor to that.
_FIRST_PASS_CYCLES, _NEXT_JOB_CYCLES = 5, 7
#: From a pass to the first address of its queries and of its bitmap; from its tiles to the first address of
#: keys, and to the first key out of the cache.
_QUERY_REQUEST_CYCLES, _BITMAP_REQUEST_CYCLES = 7, 7
_KEY_REQUEST_CYCLES, _KEY_REPLAY_CYCLES = 9, 16
#: From ``rvalid`` to the end of a reader; a row that waits for its turn.
_RECEIVE_CYCLES, _JOIN_CYCLES = 2, 1
#: From a bitmap's word to the walk over its tiles.
_BITMAP_RECEIVE_CYCLES = 4
#: From the last beat of results through the write DMA's buffer to its address; then follows its burst.
_SEND_CYCLES = 15
#: From a write response to ``done``.
_DONE_CYCLES = 2
#: Beats that a reader holds.
_READER_BEATS = 512
#: Cycles of the walk over passes and tiles: for a pass, a tile; with a bitmap for a pass, and a word of it.
_PASS_CYCLES, _TILE_CYCLES, _BITMAP_CYCLES, _WORD_CYCLES = 4, 3, 3, 3
#: Tiles of a word of a bitmap; words of the least row.
_WORD_TILES, _LEAST_WORDS = 128, 2


def launch_cycles(config: AttentionConfig, board: Board, jobs: Sequence[JobShape]) -> Waits:
    """Give the cycles of a launch, from ``start`` to ``done``, by where they go.

    Parameters
    ----------
    config, board
        The engine and where it runs.
    jobs
        All jobs of the launch in order.
    """
    memory = board.memory
    width = config.port_width(memory.port_data_width)
    latency, write_cycles = _latencies(memory.timing, board.clock_mhz)
    schedule = Schedule(
        config,
        beat_width=width,
        queries=_query_supply(config, jobs[0], width, latency),
        keys=_key_supply(config, board, jobs, jobs[0].query_size, latency),
        values=_key_supply(config, board, jobs, jobs[0].value_size, latency),
    )
    descriptors = _Descriptors(latency, 8 * USED_BYTES // width)
    known = tiles_known = 0
    last_beats = 0
    for job, this, fetched in fetches(config, jobs):
        if this.first:
            known = max(known, descriptors.take(known))
        runs = [_runs(tiles, missing) for tiles, missing in zip(this.tiles, fetched, strict=True)]
        tiles = max(len(own.numbers) for own in this.tiles)
        if job.bitmap is None:
            tiles_known = max(tiles_known, known)
            walk = max(_PASS_CYCLES, _TILE_CYCLES * tiles)
        else:
            # A bitmap comes through port 0 behind the queries of the pass before.
            words = max(_LEAST_WORDS, -(-job.bitmap.shape[1] // _WORD_TILES))
            walk = _BITMAP_CYCLES + _WORD_CYCLES * words + tiles
            come = max(schedule.loaded, known + _BITMAP_REQUEST_CYCLES + latency) + _BITMAP_RECEIVE_CYCLES
            tiles_known = max(tiles_known, come + walk - tiles)
        schedule.add(
            this.shape,
            runs,
            known=Known(
                queries=known,
                keys=tiles_known + _KEY_REQUEST_CYCLES,
                cached=tiles_known + _KEY_REPLAY_CYCLES,
            ),
        )
        known += _PASS_CYCLES
        tiles_known += walk
        last_beats = this.shape.rows * -(-job.value_size * config.result_bits // width)
    last_burst = min(memory.burst_beats, last_beats)
    done = schedule.last_output + _SEND_CYCLES + last_burst + write_cycles + _DONE_CYCLES
    return schedule.waits.plus(Waits(idle=done - sum(schedule.waits)))


class _Descriptors:
    """When jobs are known: `JOBS_AHEAD` descriptors are asked for ahead of their use.

    Parameters
    ----------
    latency
        Cycles from an address to its first beat.
    beats
        Of a descriptor.
    """

    def __init__(self, latency: int, beats: int) -> None:
        self._delay = _QUERY_REQUEST_CYCLES + latency + _RECEIVE_CYCLES + beats
        self._taken: list[int] = []

    def take(self, now: int) -> int:
        """Give the cycle of the first pass of the next job, if all jobs before it are walked ``now``."""
        number = len(self._taken)
        if not number:
            self._taken.append(0)
            return _FIRST_PASS_CYCLES
        asked = self._taken[number - JOBS_AHEAD] if number > JOBS_AHEAD else 0
        joined = max(asked + self._delay, self._taken[-1] + 1)
        self._taken.append(max(joined, now))
        return self._taken[-1] + _NEXT_JOB_CYCLES


def _runs(tiles: Tiles, fetched: NDArray[np.int_]) -> list[Run]:
    """Put tiles together that are alike; a dummy takes nothing from memory."""
    if not len(tiles.numbers):
        return [Run(1, 1, 0)]
    changes = np.flatnonzero((np.diff(tiles.keys) != 0) | (np.diff(fetched) != 0)) + 1
    starts = [0, *changes.tolist()]
    ends = [*changes.tolist(), len(tiles.numbers)]
    return [Run(b - a, int(tiles.keys[a]), int(fetched[a])) for a, b in zip(starts, ends, strict=True)]


def _query_supply(config: AttentionConfig, job: JobShape, width: int, latency: int) -> Supply:
    parts = -(-job.query_size // config.lanes)
    beats = 8 * job.query_size / width / parts
    behind = _QUERY_REQUEST_CYCLES + latency + _RECEIVE_CYCLES + (beats != 1)
    return Supply(latency=behind, interval=max(1.0, beats))


def _key_supply(
    config: AttentionConfig, board: Board, jobs: Sequence[JobShape], size: int, latency: int
) -> Supply:
    """Give the supply of parts of keys, or of values, of ``size`` elements."""
    memory = board.memory
    width = config.port_width(memory.port_data_width)
    parts = -(-size // config.lanes)
    part_bytes = size / parts / config.ports_per_stream  # through each port
    beats = 8 * part_bytes / width
    interval = max(1.0, beats, part_bytes / _port_bytes(config, board, memory, jobs))
    behind = latency + _RECEIVE_CYCLES + (beats != 1) + _JOIN_CYCLES
    depth = _READER_BEATS / beats - latency / interval
    return Supply(latency=behind, interval=interval, gap=max(1.0, beats), depth=max(1.0, depth))


def _port_bytes(config: AttentionConfig, board: Board, memory: Memory, jobs: Sequence[JobShape]) -> float:
    """Give the bytes a cycle that memory has for a port of keys or values."""
    channel = memory.realistic_bytes_per_second / memory.channels / (board.clock_mhz * 1e6)
    ports = 2 * config.streams * config.ports_per_stream
    shared = -(-ports // memory.channels)
    if port_count(config) <= memory.channels or shared == 1:
        return channel / shared
    # Queries and results go through the same channels.
    moved = traffic(config, jobs)
    streamed = moved.key_bytes + moved.value_bytes
    return channel / shared * (streamed / moved.moved_bytes if streamed else 1.0)


def _latencies(timing: DramTiming | HostTiming, clock_mhz: float) -> tuple[int, int]:
    """Give cycles from a read request to its data, and from written data to the response, on idle memory."""
    if isinstance(timing, HostTiming):
        read_ns, write_ns = timing.first_data_ns, timing.write_response_ns
    else:
        fabric_ns = timing.fabric_request_ns + timing.fabric_response_ns
        axi_cycles = timing.request_axi_cycles + timing.response_axi_cycles
        if isinstance(timing, HbmTiming):
            axi_cycles += timing.switch_axi_cycles
        command_cycles = timing.rcd_read_ck + timing.cas_latency_ck + timing.data_ck
        read_ns = (
            fabric_ns
            + 1e3 * axi_cycles / timing.axi_clock_mhz
            + 1e3 * command_cycles / timing.command_clock_mhz
        )
        write_ns = fabric_ns + 1e3 * timing.write_response_axi_cycles / timing.axi_clock_mhz
    return math.ceil(read_ns * clock_mhz / 1e3), math.ceil(write_ns * clock_mhz / 1e3)
