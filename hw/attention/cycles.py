"""How many cycles a job takes, computed: the schedule of the core, tile by tile, and what memory adds.

The core has two places where it may wait, and fixed times between them, so its schedule is a short list of
"not before": a key not before its queries, not before the slot of its logits is free; a value not before its
tile is complete; the end of a tile not before the merge of the tile before, nor before there is room for
results.  `core_cycles` follows these exactly.  `predict_cycles` adds when the streams begin and how fast they
can come.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from hw.attention.config import AttentionConfig
from hw.attention.movers import port_count
from hw.attention.row import Timing
from hw.attention.values import spacing
from hw.board import Board
from hw.memory_timing import DramTiming, HbmTiming, HostTiming

#: From a value's place in the schedule of results to its transfer: the buffers' latch, the register on ``o``.
_DRAIN_LATENCY = 2
#: From ``start`` to ``arvalid``: sequencer, command queue, splitter, address register.
_REQUEST_CYCLES = 4
#: From ``rvalid`` to the end of a DMA, and the skid buffer behind the joined slices.
_RECEIVE_CYCLES = 2
_JOIN_CYCLES = 1
#: From the last beat of results through the write DMA's buffer to its address; then follows its burst.
_SEND_CYCLES = 15
#: Items that wait behind a converter: its own, and two in the skid buffer.
_ITEMS_READY = 3
#: From a write response to ``done``.
_DONE_CYCLES = 2


@dataclass(frozen=True, kw_only=True)
class Supply:
    """A stream: item n comes at ``first + n * interval`` at the earliest; all in cycles.

    Members
    -------
    first, interval
        What memory gives.
    gap
        Between items even when memory is ahead: a converter behind the DMA's buffer takes a beat a cycle.
    """

    first: float = 0.0
    interval: float = 1.0
    gap: float = 1.0

    def time(self, item: int) -> int:
        """Give the earliest cycle of an item."""
        return math.ceil(self.first + item * self.interval)


@dataclass
class _Tile:
    """When the keys and the values of a tile were taken: first and last."""

    keys: int
    key_first: int
    key_last: int
    value_first: int
    value_last: int

    def shifted(self, cycles: int) -> _Tile:
        """Give the same tile later."""
        return _Tile(
            self.keys,
            self.key_first + cycles,
            self.key_last + cycles,
            self.value_first + cycles,
            self.value_last + cycles,
        )


class Schedule:
    """The core's schedule, pass after pass.

    Parameters
    ----------
    config
        Shape of the engine.
    beat_width
        Bits of a beat of results.
    queries, keys, values
        What the streams give at most. Cycle 0 is the first in which the core has a command.

    Members
    -------
    last_output : int
        Cycle in which the last beat of results is transferred, if nothing holds it back.
    """

    def __init__(
        self,
        config: AttentionConfig,
        *,
        beat_width: int,
        queries: Supply,
        keys: Supply,
        values: Supply,
    ) -> None:
        self._config = config
        self._timing = Timing(config)
        self._beats = config.output_beats(beat_width)
        self._queries, self._keys, self._values = queries, keys, values
        self._queries_loaded = self._keys_taken = 0
        self._taken = 0  # cycle in which the last pass became the current one
        self._tiles: list[_Tile] = []  # the last two
        self._spacing = 0
        self._freed: list[int] = []  # when the results of the last two passes had left
        self.last_output = 0

    def add(self, *, rows: int, keys: int) -> None:
        """Schedule one pass: ``rows`` queries against ``keys`` keys."""
        self._queries_loaded += rows
        loaded = max(self._taken + rows - 1, self._queries.time(self._queries_loaded - 1))
        self._taken = max(loaded + 1, self._tiles[-1].key_last if self._tiles else 0)
        ready = self._taken + 1
        tile_keys = self._config.tile_keys
        whole, rest = divmod(keys - 1, tile_keys)  # the last tile has 1 to T keys
        left = whole
        while left:
            before = list(self._tiles)
            self._add_tile(tile_keys, ready, closes=False)
            left -= 1
            left -= self._skip(before, left)
        self._add_tile(rest + 1, ready, closes=True)

        end = self._tiles[-1].value_last
        start = max(end + self._timing.drained, self._freed[-1] + 1 if self._freed else 0)
        self._freed = [*self._freed[-1:], start + rows * self._beats - 1]
        self.last_output = self._freed[-1] + _DRAIN_LATENCY

    def _add_tile(self, keys: int, ready: int, *, closes: bool) -> None:
        previous = self._tiles[-1] if self._tiles else None
        slot = self._tiles[-2] if len(self._tiles) > 1 else None  # the tile whose slot this one takes

        first = max(ready, self._keys.time(self._keys_taken))
        last = self._keys.time(self._keys_taken + keys - 1)
        if previous:
            first = max(first, previous.key_last + 1)
        if slot:
            first = max(first, (slot.value_last if slot.keys == 1 else slot.value_first) + 1)
            if keys >= slot.keys:
                last = max(last, slot.value_last + 1 + keys - slot.keys)
        last = max(last, first + keys - 1)

        # A key taken now is on the row's port in the next cycle.
        value_first = max(last + 1 + self._timing.ready, self._values.time(self._keys_taken))
        value_last = self._values.time(self._keys_taken + keys - 1)
        if previous:
            value_first = max(value_first, previous.value_last + 1)
            value_last = max(value_last, previous.value_last + self._spacing)
        if closes and len(self._freed) > 1:
            value_last = max(value_last, self._freed[-2] + 1)
        behind = math.ceil(max(0, keys - 1 - _ITEMS_READY) * self._values.gap)
        value_last = max(value_last, value_first + max(keys - 1, behind))
        if keys == 1:
            value_first = value_last
        self._keys_taken += keys
        self._spacing = spacing(self._config, closes=closes)
        self._tiles = [*self._tiles[-1:], _Tile(keys, first, last, value_first, value_last)]

    def _skip(self, before: list[_Tile], left: int) -> int:
        """Jump over whole tiles that only repeat what the last one did; give how many."""
        if len(before) < 2 or left < 2:
            return 0
        tile_keys = self._config.tile_keys
        step = self._tiles[-1].key_first - before[-1].key_first
        repeats = all(old.shifted(step) == new for old, new in zip(before, self._tiles, strict=True))
        if not repeats or step < tile_keys * max(self._keys.interval, self._values.interval):
            return 0
        self._tiles = [tile.shifted(step * left) for tile in self._tiles]
        self._keys_taken += tile_keys * left
        return left


def passes(config: AttentionConfig, *, queries: int, keys: int, heads: int) -> Iterable[tuple[int, int]]:
    """Give rows and keys of every pass of a job."""
    for _ in range(heads):
        for first in range(0, queries, config.rows):
            yield min(config.rows, queries - first), keys


def core_cycles(config: AttentionConfig, jobs: Iterable[tuple[int, int]], *, beat_width: int = 256) -> int:
    """Give the cycles of the core alone, exactly, when no stream ever makes it wait.

    Parameters
    ----------
    config
        Shape of the engine.
    jobs
        Rows and keys of every command.
    beat_width
        Bits of a beat of results.

    Returns
    -------
    int
        From the first cycle with a command to the transfer of the last beat of results, both included.
    """
    stream = Supply()
    schedule = Schedule(config, beat_width=beat_width, queries=stream, keys=stream, values=stream)
    for rows, keys in jobs:
        schedule.add(rows=rows, keys=keys)
    return schedule.last_output + 1


def predict_cycles(config: AttentionConfig, board: Board, *, queries: int, keys: int, heads: int) -> int:
    """Predict ``cycles_total`` of a launch, from ``start`` to ``done``.

    Parameters
    ----------
    config, board
        The engine and where it runs, with idle memory latency and realistic bandwidth.
    queries, keys, heads
        As the launch says; ``kv_group`` does not matter to time.
    """
    memory = board.memory
    width = memory.port_data_width
    read_cycles, write_cycles = _latencies(memory.timing, board.clock_mhz)
    first_item = _REQUEST_CYCLES + read_cycles + _RECEIVE_CYCLES

    # How many cycles an item takes on its port, and on its channel of the memory.
    beats = 8 * config.head_dim / width
    slice_beats = beats / config.ports_per_stream
    channel_bytes = memory.realistic_bytes_per_second / memory.channels / (board.clock_mhz * 1e6)
    ports_a_channel = -(-port_count(config) // memory.channels)
    slice_bytes = config.head_dim // config.ports_per_stream
    interval = max(1.0, slice_beats)
    if ports_a_channel == 1:
        interval = max(interval, slice_bytes / channel_bytes)
    else:
        rows = min(queries, config.rows)
        shared_bytes = 2 * config.head_dim + 3 * rows * config.head_dim / keys
        interval = max(interval, shared_bytes / channel_bytes / memory.channels)

    stream = Supply(
        first=first_item + (slice_beats != 1) + _JOIN_CYCLES, interval=interval, gap=max(1.0, slice_beats)
    )
    schedule = Schedule(
        config,
        beat_width=width,
        queries=Supply(first=first_item + (beats != 1), interval=max(1.0, beats)),
        keys=stream,
        values=stream,
    )
    rows = 0
    for rows, count in passes(config, queries=queries, keys=keys, heads=heads):
        schedule.add(rows=rows, keys=count)
    last_burst = min(memory.burst_beats, rows * config.output_beats(width))
    return schedule.last_output + _SEND_CYCLES + last_burst + write_cycles + _DONE_CYCLES


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
