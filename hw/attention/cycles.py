"""How many cycles a job takes, computed: the schedule of the core, tile by tile, and what memory adds.

In the core only a few places may wait, with fixed times between them, so its schedule is a short list of "not
before": queries not before the pass before has begun in all streams; a key not before its queries, not before
its entry of the logit buffer is free; a value not before its tile is complete; the end of a tile not before
the merge of the tile before, nor before there is room for sums or results; a division not before all streams
have closed the pass.  `core_cycles` follows these exactly.  `predict_cycles` adds when the streams begin and
how fast they can come.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hw.attention.command import UNIT_ELEMENTS
from hw.attention.config import AttentionConfig
from hw.attention.maximum import LOGIT_TILES
from hw.attention.movers import port_count
from hw.attention.row import Timing
from hw.attention.shapes import JobShape, PassShape
from hw.attention.values import BANKS, spacing
from hw.board import Board
from hw.memory_timing import DramTiming, HbmTiming, HostTiming

#: From a beat's place in the schedule of results to its transfer: the buffers' latch, the register on ``o``.
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


@dataclass(frozen=True)
class _Tile:
    """When the parts of a tile were taken: first and last of its keys and of its values.

    Its logits are numbers ``start`` and on of its stream.  Its values come without gaps from ``value_first``
    on, but for the very last part, which comes at ``value_last``.
    """

    start: int
    keys: int
    value_parts: int
    key_first: int
    key_last: int
    value_first: int
    value_last: int
    spacing: int

    def moved(self, *, cycles: int, keys: int) -> _Tile:
        """Give the same tile later."""
        return replace(
            self,
            start=self.start + keys,
            key_first=self.key_first + cycles,
            key_last=self.key_last + cycles,
            value_first=self.value_first + cycles,
            value_last=self.value_last + cycles,
        )

    def freed(self, first: int, end: int) -> list[tuple[int, int]]:
        """Give (number, cycle of its last read) for logits ``first`` to ``end - 1``.

        In between reads come at a constant pace, so that only the ends of such a stretch are given.
        """
        last = self.start + self.keys - 1
        steady = (max(first, self.start), min(end, last) - 1)  # those before the tile's last one
        found = [
            (n, self.value_first + (n - self.start + 1) * self.value_parts - 1)
            for n in (steady if steady[0] <= steady[1] else ())
        ]
        return [*found, (last, self.value_last)] if first <= last < end else found


class StreamSchedule:
    """The schedule of one stream's two sides.

    Parameters
    ----------
    config
        Shape of the engine.
    keys, values
        What the streams of parts give at most.

    Members
    -------
    taken : int
        Cycle in which the last pass became the current one.
    closed : int
        Cycle in which the last part of its values was taken.
    """

    def __init__(self, config: AttentionConfig, *, keys: Supply, values: Supply) -> None:
        self._config = config
        self._ready = Timing(config).ready
        self._keys, self._values = keys, values
        self._key_parts = self._value_parts = self._logits = 0  # so far
        self._tiles: list[_Tile] = []  # the last ones
        self.taken = 0

    @property
    def closed(self) -> int:
        """Give the cycle in which the last part of the values of the last pass was taken."""
        return self._tiles[-1].value_last

    def add(self, shape: PassShape, keys: int, *, loaded: int, bank: int) -> None:
        """Schedule a pass of ``keys`` keys: queries are there after ``loaded``, a bank from ``bank`` on."""
        self.taken = max(loaded + 1, self._tiles[-1].key_last if self._tiles else 0)
        tile_keys = self._config.tile_keys
        left, rest = divmod(keys - 1, tile_keys)  # the last tile has 1 to T keys
        while left:
            before = list(self._tiles)
            self._add_tile(shape, tile_keys)
            left -= 1
            left -= self._skip(shape, before, left)
        self._add_tile(shape, rest + 1, bank=bank)

    def _add_tile(self, shape: PassShape, keys: int, *, bank: int | None = None) -> None:
        """Schedule a tile; ``bank`` is given for one that closes."""
        previous = self._tiles[-1] if self._tiles else None
        first = max(self.taken + 1, self._keys.time(self._key_parts))
        if previous:
            first = max(first, previous.key_last + 1)
        if len(self._tiles) == LOGIT_TILES:
            first = max(first, self._tiles[0].value_last + 1)
        last = max(
            first + keys * shape.key_parts - 1, self._keys.time(self._key_parts + keys * shape.key_parts - 1)
        )
        # A key waits for its entry, which the key a buffer's length before it had; those behind it follow.
        start, behind = self._logits, self._config.logit_entries
        for tile in self._tiles:
            for number, cycle in tile.freed(start - behind, start - behind + keys):
                key = number + behind - start
                first = max(first, cycle + 1 - key * shape.key_parts)
                last = max(last, cycle + (keys - key) * shape.key_parts)

        # A part taken now is on the row's port in the next cycle.
        parts = keys * shape.value_parts
        value_first = max(last + 1 + self._ready, self._values.time(self._value_parts))
        if previous:
            value_first = max(value_first, previous.value_last + 1)
        late = math.ceil(max(0, parts - 1 - _ITEMS_READY) * self._values.gap)
        value_last = max(
            value_first + max(parts - 1, late), self._values.time(self._value_parts + parts - 1), bank or 0
        )
        if previous:
            value_last = max(value_last, previous.value_last + previous.spacing)

        self._key_parts += keys * shape.key_parts
        self._value_parts += parts
        self._logits += keys
        space = spacing(self._config, parts=shape.value_parts, closes=bank is not None)
        tile = _Tile(start, keys, shape.value_parts, first, last, value_first, value_last, space)
        self._tiles = [*self._tiles[1 - LOGIT_TILES :], tile]

    def _skip(self, shape: PassShape, before: list[_Tile], left: int) -> int:
        """Jump over whole tiles that only repeat what the last one did; give how many."""
        if len(before) < LOGIT_TILES or left < 2:
            return 0
        keys = self._config.tile_keys
        step = self._tiles[-1].key_last - before[-1].key_last
        moved = [tile.moved(cycles=step, keys=keys) for tile in before]
        paces = keys * max(
            shape.key_parts * self._keys.interval,
            shape.value_parts * max(self._values.interval, self._values.gap),
        )
        if moved != self._tiles or step < paces:
            return 0
        self._tiles = [tile.moved(cycles=step * left, keys=keys * left) for tile in self._tiles]
        self._key_parts += keys * shape.key_parts * left
        self._value_parts += keys * shape.value_parts * left
        self._logits += keys * left
        return left


class Schedule:
    """The core's schedule, pass after pass.

    Parameters
    ----------
    config
        Shape of the engine.
    beat_width
        Bits of a beat of results.
    queries, keys, values
        What the streams of parts give at most.  Cycle 0 is the first in which the core has a command.

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
        self._beat_width = beat_width
        self._queries = queries
        self._streams = [StreamSchedule(config, keys=keys, values=values) for _ in range(config.streams)]
        self._query_parts = 0
        self._loaded = -1
        # Of the last passes: when their results had left, and when the streams' sums were needed no more.
        self._drained: list[int] = []
        self._read: list[int] = []
        self._divisor_free = 0
        self.last_output = 0

    def add(self, shape: PassShape) -> None:
        """Schedule one pass."""
        config, timing = self._config, self._timing
        parts = shape.rows * shape.key_parts
        self._query_parts += parts
        taken = max(stream.taken for stream in self._streams)
        self._loaded = max(
            max(self._loaded + 1, taken) + parts - 1, self._queries.time(self._query_parts - 1)
        )
        banks = self._drained if config.streams == 1 else self._read
        bank = banks[-BANKS] + 1 if len(banks) >= BANKS else 0
        for stream, keys in zip(self._streams, shape.keys, strict=True):
            stream.add(shape, keys, loaded=self._loaded, bank=bank)

        begins = max(stream.closed for stream in self._streams) + timing.final
        steps = shape.value_units * UNIT_ELEMENTS // config.merge_lanes
        if config.streams > 1:
            free = self._drained[-BANKS] + 1 if len(self._drained) >= BANKS else 0
            begins = max(begins, self._divisor_free, free)
            self._divisor_free = begins + max(timing.interval, steps)
            self._read = [*self._read[1 - BANKS :], begins + timing.normalize]
        complete = begins + timing.drained - config.merge_steps + steps
        start = max(complete, self._drained[-1] + 1 if self._drained else 0)
        beats = -(-shape.value_units * UNIT_ELEMENTS * config.result_bits // self._beat_width)
        self._drained = [*self._drained[1 - BANKS :], start + shape.rows * beats - 1]
        self.last_output = self._drained[-1] + _DRAIN_LATENCY


def core_cycles(config: AttentionConfig, passes: Iterable[PassShape], *, beat_width: int = 256) -> int:
    """Give the cycles of the core alone, exactly, when no stream ever makes it wait.

    Parameters
    ----------
    config
        Shape of the engine.
    passes
        See `hw.attention.shapes.pass_shapes`.
    beat_width
        Bits of a beat of results.

    Returns
    -------
    int
        From the first cycle with a command to the transfer of the last beat of results, both included.
    """
    stream = Supply()
    schedule = Schedule(config, beat_width=beat_width, queries=stream, keys=stream, values=stream)
    for shape in passes:
        schedule.add(shape)
    return schedule.last_output + 1


def predict_cycles(config: AttentionConfig, board: Board, *, queries: int, keys: int, heads: int) -> int:
    """Predict ``cycles_total`` of a dense launch of heads of D elements; see `predict_launch`."""
    job = JobShape(queries=queries, keys=keys, heads=heads, query_size=config.lanes, value_size=config.lanes)
    return predict_launch(config, board, [job])


def predict_launch(config: AttentionConfig, board: Board, jobs: Sequence[JobShape]) -> int:
    """Predict ``cycles_total`` of a launch, from ``start`` to ``done``.

    Parameters
    ----------
    config, board
        The engine and where it runs, with idle memory latency and realistic bandwidth.
    jobs
        All jobs of the launch in order.
    """
    memory = board.memory
    width = config.port_bits or memory.port_data_width
    read_cycles, write_cycles = _latencies(memory.timing, board.clock_mhz)
    first_item = _REQUEST_CYCLES + read_cycles + _RECEIVE_CYCLES

    # How many cycles an item takes on its port, and on its channel of the memory.
    beats = 8 * config.lanes / width
    slice_beats = beats / config.ports_per_stream
    channel_bytes = memory.realistic_bytes_per_second / memory.channels / (board.clock_mhz * 1e6)
    ports_a_channel = -(-port_count(config) // memory.channels)
    slice_bytes = config.lanes // config.ports_per_stream
    interval = max(1.0, slice_beats)
    if ports_a_channel == 1:
        interval = max(interval, slice_bytes / channel_bytes)
    else:
        rows = min(max(job.queries for job in jobs), config.rows)
        shared_bytes = 2 * config.lanes + 3 * rows * config.lanes / max(1, max(job.keys for job in jobs))
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
    last_beats = 0
    for job in jobs:
        for this in job.passes(config):
            schedule.add(this.shape)
            last_beats = this.shape.rows * -(-job.value_size * config.result_bits // width)
    last_burst = min(memory.burst_beats, last_beats)
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
