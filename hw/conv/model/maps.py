"""The reads of a map, and of its bypass, chunk by chunk through shared ports."""

import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from hw.board import Board
from hw.conv.config import ConvConfig
from hw.conv.model.flow import WordSpan
from hw.conv.model.latency import Latency
from hw.conv.movers.movers import side_port
from hw.lib.skid import Skid

#: Words queued between a port's queue and their destination.
_WAITING = 3 * Skid.CAPACITY


class Ports:
    """The memory ports: cycles of a beat, and when the ports of maps are free.

    ``first``: nothing was read since a reset; otherwise a map was read last.
    """

    def __init__(self, config: ConvConfig, board: Board, *, first: bool) -> None:
        self.width_bytes = config.port_width(board.memory.port_data_width) // 8
        sharing = -(-(side_port(config) + 1) // board.memory.channels)
        self.beat = max(1.0, sharing * self.width_bytes / board.channel_bytes_per_cycle)
        self._channel = board.channel_bytes_per_cycle / sharing
        self.refresh = board.refresh_wait_cycles
        self.channels = board.memory.channels
        self.free = 0.0
        self.user: object = None  # the source of the last words
        self.side = None if first else "in"  # the side of that source, "in" or "bypass"
        self.left = 0.0  # when that source's words have left the port's queue
        self.asked = 0  # when the last chunk of a map was requested

    def beat_of(self, config: ConvConfig, fields: Mapping[str, int]) -> float:
        """Return the cycles of a beat read in a job, with the bytes that it writes in between.

        They matter where a channel moves more bytes in both directions than words take cycles.
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


class _Chunk(NamedTuple):
    """``words`` in ``beats``, the first word within the first ``first_beats``."""

    words: int
    beats: int
    first_beats: int


class MapSource:
    """The words of a map, chunk by chunk.

    ``side``: "in" or "bypass". ``fields``: of the job. ``token``: returns the cycle of each token; None while
    it is not known. ``into``: cycles from the reader to the unit.
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
        self._ports, self._latency, self._fields = ports, latency, fields
        self._side = side
        self._path = latency.cut + into  # from the port's queue
        self._token = token
        self._words = fields[f"{side}_in_words" if side == "bypass" else "in_words"]
        self._units = [fields[f"{side}_units_{port}"] for port in range(config.ports)]
        #: Of each port with bytes of the map: bytes of a pixel, the first address, bytes from row to row and
        #: from chunk to chunk.
        self._slices = [
            (size, *(fields[f"{side}_{name}_{port}"] for name in ("address", "pitch", "bytes")))
            for port, size in enumerate(self._units)
            if size
        ]
        # Any of the channels may be refreshing when a chunk is requested.
        self._refresh = ports.refresh * min(sum(size > 0 for size in self._units), ports.channels)
        self._beat = ports.beat_of(config, fields)
        self._part_bytes = config.lanes // config.ports
        self._covered = fields[f"{side}_token_chunks"]
        self._of_row = fields[f"{side}_chunks"]
        self._left = fields[f"{side}_rows"] * self._of_row
        self._number = 0
        # A map, and the bypass with it, follows the previous map.
        self._asked = ports.asked
        self._granted: deque[WordSpan] = deque()
        self._piece = WordSpan(0, 0, 0)
        #: The source that shares the ports: a map's bypass, or the bypass' map.
        self.beside: MapSource | None = None

    def offer(self, most: int) -> WordSpan:
        """Return words of the current chunk."""
        if not self._piece.words:
            self._piece = self._next()
        words, first, last = self._piece
        if most >= words:
            return self._piece
        return WordSpan(most, first, first + (most - 1) * (last - first) // (words - 1))

    def accept(self, piece: WordSpan) -> None:
        """Accept them; the next offer is of the words after them."""
        self._ports.left = max(self._ports.left, piece.last - self._path - _WAITING)
        words, first, last = self._piece
        left = words - piece.words
        if left:
            first += piece.words * (last - first) // (words - 1)
        self._piece = WordSpan(left, first, last)

    def _next(self) -> WordSpan:
        """Return the next chunk, after chunks of either source that are requested before it."""
        while not self._granted:
            asks = {source: source._ask() for source in (self, self.beside) if source is not None}
            requests = {source: asked for source, asked in asks.items() if asked is not None}
            # Of two requests at once the source served last waits; after a reset the map is first.
            source = min(
                requests,
                key=lambda each: (requests[each], each._side == self._ports.side, each._side != "in"),
            )
            source._grant(requests[source])
        return self._granted.popleft()

    def _ask(self) -> int | None:
        """Return when the next chunk is requested; None if that is not known, or there is none."""
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
        """Read the next chunk, after all earlier requests."""
        ports = self._ports
        words, beats, first_beats = self._chunk(*divmod(self._number, self._of_row))
        self._asked, self._number = asked, self._number + 1
        ports.asked = max(ports.asked, asked)
        start = max(asked + self._latency.read - self._latency.cut + self._refresh, ports.free)
        if ports.user is not self:
            start = max(start, ports.left)
        ports.user, ports.side = self, self._side
        ports.free = start + beats * self._beat
        # Words leave the port's queue in order; those of the last beat are in the cutter.
        ports.left = max(ports.free, start + words * (beats - 1) // beats)
        first = math.ceil(start + (first_beats - 1) * ports.beat) + self._path
        self._granted.append(
            WordSpan(words, first, max(first + words - 1, math.ceil(ports.free) - 1 + self._path))
        )

    def _chunk(self, row: int, n: int) -> _Chunk:
        """Return a chunk of a row; beats are read whole, so a chunk that begins within one may need
        one more.
        """
        fields, side, width = self._fields, self._side, self._ports.width_bytes
        pixels = fields[f"{side}_pixels" if n < self._of_row - 1 else f"{side}_last_pixels"]
        beats, first_beats = 1, 1
        for size, begin, pitch, step in self._slices:
            skipped = (begin + row * pitch + n * step) % width
            first = min(pixels * size, -(-min(self._part_bytes, size) // width) * width)
            beats = max(beats, -(-(skipped + pixels * size) // width))
            first_beats = max(first_beats, -(-(skipped + first) // width))
        return _Chunk(pixels * self._words, beats, first_beats)
