"""When maps, weights and offsets come from memory: latencies of idle memory, and its realistic bandwidth."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping

from hw.board import Board
from hw.conv.config import ConvConfig
from hw.conv.core.depthwise.offset_store import OffsetStore
from hw.conv.core.packets import RECORD_BITS
from hw.conv.model.flow import Passed, Piece
from hw.conv.model.latency import Latency
from hw.conv.movers.movers import side_port
from hw.lib.dma.read import ReadDMA
from hw.lib.skid import Skid

#: Words that wait between a port's queue and where they go.
_WAITING = 3 * Skid.CAPACITY


class Ports:
    """The memory ports: how long each takes for a beat, and when those of maps are free.

    Parameters
    ----------
    config, board
        The engine and where it runs.
    """

    def __init__(self, config: ConvConfig, board: Board) -> None:
        self.width_bytes = config.port_width(board.memory.port_data_width) // 8
        sharing = -(-(side_port(config) + 1) // board.memory.channels)
        self.beat = max(1.0, sharing * self.width_bytes / board.channel_bytes_per_cycle)
        self._channel = board.channel_bytes_per_cycle / sharing
        self.refresh = board.refresh_wait_cycles
        self.channels = board.memory.channels
        self.free = 0.0
        self.user: object = None  # whose words come last
        self.side: str | None = None  # of what these are
        self.left = 0.0  # when they have left the port's queue
        self.asked = 0  # when the last piece of a map was asked for

    def beat_of(self, config: ConvConfig, fields: Mapping[str, int]) -> float:
        """Give the cycles that a beat read takes in a job: what it writes comes between.

        That shows where a channel has more to move in both directions than there are words to wait for.
        """
        pixels = {
            "in": fields["in_total_words"] // fields["in_words"],
            "bypass": fields.get("bypass_total_pixels", 0),
            "out": fields["out_total_words"] // fields["out_map_words"],
        }
        slowest = self.beat
        for port in range(config.ports):
            moved = {side: count * fields.get(f"{side}_units_{port}", 0) for side, count in pixels.items()}
            cycles = sum(moved.values()) / self._channel
            read = (moved["in"] + moved["bypass"]) / self.width_bytes
            words = max(fields["in_total_words"], fields["out_total_words"])
            if read and cycles > words:
                slowest = max(slowest, cycles / read)
        return slowest


class MapSource:
    """The words of a map, chunk by chunk.

    Parameters
    ----------
    side
        "in" or "bypass".
    fields
        Of the job.
    token
        Gives the cycle of each token; None while it is not known.
    into
        Cycles from the reader to the unit.

    Members
    -------
    beside
        What is read through the same ports with it: a map's bypass, or the bypass' map.
    """

    def __init__(
        self,
        config: ConvConfig,
        ports: Ports,
        latency: Latency,
        fields: Mapping[str, int],
        *,
        side: str,
        token: Callable[[int], int | None],
        into: int,
    ) -> None:
        self._ports, self._latency = ports, latency
        self._side = side
        self._way = latency.cut + into  # from the port's queue
        self._token = token
        words = fields[f"{side}_in_words" if side == "bypass" else "in_words"]
        units = [fields[f"{side}_units_{port}"] for port in range(config.ports)]
        # Any of the channels may be at a refresh when a chunk is asked for.
        self._refresh = ports.refresh * min(sum(size > 0 for size in units), ports.channels)
        self._beat = ports.beat_of(config, fields)
        self._covered = fields[f"{side}_token_chunks"]
        part_bytes = config.lanes // config.ports
        self._first_beats = max(1, -(-min(part_bytes, max(units)) // ports.width_bytes))

        def chunks() -> Iterator[tuple[int, int]]:
            for _ in range(fields[f"{side}_rows"]):
                for n in range(count := fields[f"{side}_chunks"]):
                    pixels = fields[f"{side}_pixels" if n < count - 1 else f"{side}_last_pixels"]
                    yield pixels * words, -(-pixels * max(units) // ports.width_bytes)

        self._chunks = chunks()
        self._left = fields[f"{side}_rows"] * fields[f"{side}_chunks"]
        self._number = 0
        # A map, and the bypass with it, comes behind the map before.
        self._asked = ports.asked
        self._granted: deque[Piece] = deque()
        self._piece = Piece(0, 0, 0)
        self.beside: MapSource | None = None

    def offer(self, most: int) -> Piece:
        """Give words of the chunk at hand."""
        if not self._piece.words:
            self._piece = self._next()
        words, first, last = self._piece
        if most >= words:
            return self._piece
        return Piece(most, first, first + (most - 1) * (last - first) // (words - 1))

    def took(self, piece: Piece) -> None:
        """Go on behind it."""
        self._ports.left = max(self._ports.left, piece.last - self._way - _WAITING)
        words, first, last = self._piece
        left = words - piece.words
        if left:
            first += piece.words * (last - first) // (words - 1)
        self._piece = Piece(left, first, last)

    def _next(self) -> Piece:
        """Give the next chunk, behind those that are asked for before it beside this map."""
        while not self._granted:
            asks = {source: source._ask() for source in (self, self.beside) if source is not None}
            known = {source: asked for source, asked in asks.items() if asked is not None}
            # Of two that ask at once the one that came last before gives way; the map comes first of all.
            source = min(known, key=lambda each: (known[each], each._side == self._ports.side, each._side != "in"))
            source._grant(known[source])
        return self._granted.popleft()

    def _ask(self) -> int | None:
        """Give when the next chunk is asked for; None if that is not known, or there is none."""
        if self._number == self._left:
            return None
        asked = self._asked + self._latency.chunk
        if self._number % self._covered == 0:
            token = self._token(self._number // self._covered)
            if token is None:
                return None
            asked = max(asked, token + self._latency.request)
        return asked

    def _grant(self, asked: int) -> None:
        """Read the next chunk: behind all that was asked for before."""
        ports = self._ports
        words, beats = next(self._chunks)
        self._asked, self._number = asked, self._number + 1
        ports.asked = max(ports.asked, asked)
        start = max(asked + self._latency.read - self._latency.cut + self._refresh, ports.free)
        if ports.user is not self:
            start = max(start, ports.left)
        ports.user, ports.side = self, self._side
        ports.free = start + beats * self._beat
        # Words leave the port's queue in order, all but those of the last beat, which the cutter has.
        ports.left = max(ports.free, start + words * (beats - 1) // beats)
        first = math.ceil(start + (self._first_beats - 1) * ports.beat) + self._way
        self._granted.append(
            Piece(words, first, max(first + words - 1, math.ceil(ports.free) - 1 + self._way))
        )


class Weights:
    """The beats of all jobs in order, for both units."""

    def __init__(self, ports: Ports, latency: Latency) -> None:
        self._beat = ports.beat
        self._per_beat = 8 * ports.width_bytes // RECORD_BITS
        self._latency = latency
        self._arrives = 0.0  # the next one that was not taken
        self._count = 0
        self._last = 0  # when the last one was taken
        self._taken: deque[tuple[int, int]] = deque()  # beats, and when the last of them was taken

    def ask(self, cycle: int) -> None:
        """Say that a job's descriptor is there."""
        self._arrives = max(self._arrives, cycle + self._latency.weights)

    def tile(self, beats: int, *, free: int) -> int:
        """Give when the last beat of the next tile is taken by a loader that is free from ``free`` on."""
        return self._take(beats, free, beats - 1)

    def packet(self, records: int, *, free: int) -> int:
        """Give when the last record of the next packet of the depthwise unit is taken."""
        return self._take(1 - (-records // self._per_beat), free, records)

    def _take(self, beats: int, free: int, cycles: int) -> int:
        self._count += beats
        while self._taken and self._taken[0][0] <= self._count - ReadDMA.FIFO_BEATS:
            self._arrives = max(
                self._arrives, self._taken.popleft()[1] + self._latency.weights - (beats - 1) * self._beat
            )
        # A header waits for a cycle until it is known where its packet goes.
        first = max(free, math.ceil(self._arrives), self._last + 2)
        last = max(first + cycles, math.ceil(self._arrives + (beats - 1) * self._beat))
        self._arrives += beats * self._beat
        self._last = last
        self._taken.append((self._count, last))
        return last


class OffsetQueue:
    """The store of offsets, which takes those of one job after the other, and keeps each until it is used.

    Members
    -------
    fetched, arrived
        When the last entry came from memory, and when it came into the store.
    """

    def __init__(self, config: ConvConfig, latency: Latency) -> None:
        # One entry a cycle: one more passes before it is seen that there is no room.
        self._places = config.offset_entries - OffsetStore.LATE_ENTRIES + 1
        self._latency = latency
        self._released = Passed()
        self._asked = 0  # entries of the jobs before
        self.fetched = 0.0
        self.arrived = -(1 << 40)

    def begin(self, entries: int) -> int:
        """Begin with a job of so many entries; gives how many were before."""
        before = self._asked
        self._asked += entries
        return before

    def room(self, first: int, end: int) -> int:
        """Give when entry ``end - 1`` comes if those from ``first`` on wait for nothing but places.

        All that they wait for must be known; they follow each other cycle by cycle.
        """
        came, entry = 0, max(first, self._places)
        while entry < end:
            # Entries whose places become free together, or at an even pace.
            behind = min(end, self._released.end(entry - self._places) + self._places)
            for each in (entry, behind - 1):
                free = self._released.at(each - self._places) + self._latency.offset_room
                came = max(came, free + end - 1 - each)
            entry = behind
        return came

    def release(self, entries: int, first: int, last: int) -> None:
        """Hear when the pixels of so many entries were sampled."""
        self._released.add(Piece(entries, first, last))

    def compute(self, entries: int, arrived: int, first: int, last: int) -> None:
        """Hear of a job whose offsets were computed: when the last one came, and when pixels were sampled."""
        self.begin(entries)
        self.release(entries, first, last)
        self.arrived = max(self.arrived, arrived)


class OffsetSupply:
    """The offsets of a job's pixels, read from memory.

    Parameters
    ----------
    queue
        Where they wait for their pixels, behind those of earlier jobs.
    known
        When they can be asked for.
    free
        When their port has given the descriptors that were asked for before.
    """

    def __init__(
        self,
        ports: Ports,
        latency: Latency,
        fields: Mapping[str, int],
        queue: OffsetQueue,
        *,
        known: int,
        free: int,
        taps: int,
    ) -> None:
        self._entries = fields["offset_entries"]
        self._pixel = self._entries * 2 * fields["offset_units"] / ports.width_bytes * ports.beat
        self._queue = queue
        self._latency = latency
        self._next = queue.begin(fields["offset_total_entries"])
        # Before the first one.
        start = max(known + latency.offsets, free + latency.offset_cut)
        self._fetched = max(start - 1, queue.fetched)
        self._came = max(start, queue.arrived + latency.offset_turn(taps)) - 1

    def pixel(self) -> int:
        """Give when the walker can take the next pixel: all of its entries are in the store.

        Earlier pixels must have been sampled as far as their places are needed; a pixel leaves all at once.
        """
        self._fetched += self._pixel
        end = self._next + self._entries
        room = self._queue.room(self._next, end)
        self._came = max(self._came + self._entries, math.ceil(self._fetched), room)
        self._next = end
        self._queue.fetched, self._queue.arrived = self._fetched, self._came
        return self._came + self._latency.pixel

    def sampled(self, last: int) -> None:
        """Hear of the last step of a pixel."""
        self._queue.release(self._entries, last, last)
