"""The reads of weights and offsets: latencies of idle memory, and its realistic bandwidth."""

import math
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np

from hw.conv.config import ConvConfig
from hw.conv.core.depthwise.offset_store import OffsetStore
from hw.conv.core.packets import RECORD_BITS
from hw.conv.model.flow import Departures, WordSpan
from hw.conv.model.latency import Latency
from hw.conv.model.maps import Ports
from hw.lib.dma.read import ReadDMA

#: More than the rounding errors of sums of cycles, and less than a cycle.
_ROUNDING = 1e-3


class TileBeats:
    """The beats of each tile of a layer's block."""

    def __init__(self, beats: Sequence[int]) -> None:
        self.beats = np.array(beats, np.int64)
        self.ends = np.cumsum(self.beats)  #: Beats up to the end of each tile.


class Weights:
    """The beats of all jobs in order, for both units."""

    def __init__(self, ports: Ports, latency: Latency) -> None:
        self._beat = ports.beat
        self._per_beat = 8 * ports.width_bytes // RECORD_BITS
        self._latency = latency
        self._arrives = 0.0  # arrival of the next beat
        self._count = 0
        self._last = 0  # when the last one was taken
        self._taken: deque[tuple[int, int]] = deque()  # beats, and when the last of them was taken

    def ask(self, cycle: int) -> None:
        """Start reading a job's weights: its descriptor has arrived."""
        self._arrives = max(self._arrives, cycle + self._latency.weights)

    def tile(self, beats: int, *, free: int) -> int:
        """Return when the last beat of the next tile is taken by a loader that is free from ``free`` on."""
        return self._take(beats, free, beats - 1)

    def sweeps(self, tiles: Sequence[int], begin: int, *, pitch: int, reload: int, ready: int) -> list[int]:
        """Return when the sweep of each tile begins: ``pitch`` cycles after the previous one, or later.

        ``begin``: of the previous tile.  A tile loads ``reload`` cycles after that at the earliest, and its
        sweep begins at least ``ready`` cycles after its last beat.  This is `tile` called in turn, with its
        state in local names: most of a prediction's time is spent here.
        """
        beat, delay, taken = self._beat, self._latency.weights, self._taken
        arrives, count, last = self._arrives, self._count, self._last
        found = []
        for beats in tiles:
            count += beats
            rest = (beats - 1) * beat
            while taken and taken[0][0] <= count - ReadDMA.FIFO_BEATS:
                asked = taken.popleft()[1] + delay - rest
                if asked > arrives:
                    arrives = asked
            first = begin + reload
            if last + 2 > first:
                first = last + 2
            if arrives > first:
                first = math.ceil(arrives)
            last = first + beats - 1
            if arrives + rest > last:
                last = math.ceil(arrives + rest)
            arrives += beats * beat
            taken.append((count, last))
            begin += pitch
            if last + ready > begin:
                begin = last + ready
            found.append(begin)
        self._arrives, self._count, self._last = arrives, count, last
        return found

    def steady(self, tiles: TileBeats, start: int, *, free: int, pitch: int, room: int) -> int:
        """Take tiles from number ``start`` on while none is late; returns how many were taken.

        The loader is free for the first of them at ``free``, for each of the others ``pitch`` cycles later.
        A tile is late if its last beat is taken more than ``room`` cycles after that.  The state is that
        after as many calls of `tile`; where rounding could decide, tiles are left to those.
        """
        beats = tiles.beats[start:]
        ends = tiles.ends[start:] - tiles.ends[start - 1]
        frees = free + pitch * np.arange(len(beats))
        taken = frees + beats - 1
        in_time = beats - 1 <= room
        in_time[0] &= self._last + 2 <= free
        in_time[1:] &= beats[:-1] + 1 <= pitch
        # A tile is requested when the reader's queue has room: when an earlier tile was taken.
        before = np.array(self._taken, np.int64).reshape(-1, 2)
        counts = np.concatenate([before[:, 0], self._count + ends])
        times = np.concatenate([before[:, 1], taken])
        left = np.searchsorted(counts, self._count + ends - ReadDMA.FIFO_BEATS, side="right")
        leaves = np.diff(left, prepend=0) > 0
        asked = np.where(leaves, times[left - 1] + self._latency.weights - (beats - 1) * self._beat, -np.inf)
        earlier = (ends - beats) * self._beat
        arrives = np.maximum.accumulate(np.maximum(asked - earlier, self._arrives)) + earlier
        in_time &= arrives < frees - _ROUNDING
        in_time &= arrives + (beats - 1) * self._beat < taken - _ROUNDING
        count = len(beats) if in_time.all() else int(np.argmin(in_time))
        if not count:
            return 0
        # From the last tile that certainly waited for room on, arrivals are added up exactly as in `_take`.
        ready = np.concatenate([[self._arrives], (arrives + beats * self._beat)[:-1]])
        certain = np.flatnonzero(asked[:count] > ready[:count] + _ROUNDING)
        for n in range(certain[-1] if certain.size else 0, count):
            self._arrives = max(self._arrives, float(asked[n])) + float(beats[n] * self._beat)
        self._count += int(ends[count - 1])
        self._last = int(taken[count - 1])
        alive = slice(int(left[count - 1]), len(before) + count)
        self._taken = deque(zip(counts[alive].tolist(), times[alive].tolist(), strict=True))
        return count

    def packet(self, records: int, *, free: int) -> int:
        """Return when the last record of the next packet of the depthwise unit is taken."""
        return self._take(1 - (-records // self._per_beat), free, records)

    def _take(self, beats: int, free: int, cycles: int) -> int:
        self._count += beats
        while self._taken and self._taken[0][0] <= self._count - ReadDMA.FIFO_BEATS:
            self._arrives = max(
                self._arrives, self._taken.popleft()[1] + self._latency.weights - (beats - 1) * self._beat
            )
        # A header stalls for a cycle until its packet is routed.
        first = max(free, math.ceil(self._arrives), self._last + 2)
        last = max(first + cycles, math.ceil(self._arrives + (beats - 1) * self._beat))
        self._arrives += beats * self._beat
        self._last = last
        self._taken.append((self._count, last))
        return last


class OffsetQueue:
    """The offset store: takes the entries of one job after another, and holds each until it is used."""

    def __init__(self, config: ConvConfig, latency: Latency) -> None:
        # One entry a cycle: one more passes before the lack of room is seen.
        self._places = config.offset_entries - OffsetStore.LATE_ENTRIES + 1
        self._latency = latency
        self._released = Departures()
        self._asked = 0  # entries of the jobs before
        #: ``fetched``, ``arrived``: when the last entry was read from memory, and when it entered the store.
        self.fetched = 0.0
        self.arrived = -(1 << 40)

    def begin(self, entries: int) -> int:
        """Begin a job of ``entries``; returns the number of earlier entries."""
        before = self._asked
        self._asked += entries
        return before

    def room(self, first: int, end: int) -> int:
        """Return when entry ``end - 1`` enters if those from ``first`` on wait only for places.

        All places must be known; entries follow each other cycle by cycle.
        """
        entered, entry = 0, max(first, self._places)
        while entry < end:
            # Entries whose places become free together, or at an even pace.
            behind = min(end, self._released.end(entry - self._places) + self._places)
            for each in (entry, behind - 1):
                free = self._released.at(each - self._places) + self._latency.offset_room
                entered = max(entered, free + end - 1 - each)
            entry = behind
        return entered

    def release(self, entries: int, first: int, last: int) -> None:
        """Release the places of ``entries`` whose pixels were sampled."""
        self._released.add(WordSpan(entries, first, last))

    def compute(self, entries: int, arrived: int, first: int, last: int) -> None:
        """Add a job whose offsets were computed: the last arrived at ``arrived``, pixels were sampled from
        ``first`` to ``last``.
        """
        self.begin(entries)
        self.release(entries, first, last)
        self.arrived = max(self.arrived, arrived)


class OffsetSupply:
    """The offsets of a job's pixels, read from memory.

    ``queue``: the store, after the entries of earlier jobs. ``issued``: the earliest request. ``free``: when
    their port has returned the descriptors requested before.
    """

    def __init__(
        self,
        ports: Ports,
        latency: Latency,
        fields: Mapping[str, int],
        queue: OffsetQueue,
        *,
        issued: int,
        free: int,
        taps: int,
    ) -> None:
        self._entries = fields["offset_entries"]
        self._pixel = self._entries * 2 * fields["offset_units"] / ports.width_bytes * ports.beat
        self._queue = queue
        self._latency = latency
        self._next = queue.begin(fields["offset_total_entries"])
        # Before the first one.
        start = max(issued + latency.offsets, free + latency.offset_cut)
        self._fetched = max(start - 1, queue.fetched)
        self._entered = max(start, queue.arrived + latency.offset_turn(taps)) - 1

    def pixel(self) -> int:
        """Return when the walker can take the next pixel: all of its entries are in the store.

        Earlier pixels whose places it needs must have been sampled; the entries of a pixel leave at once.
        """
        self._fetched += self._pixel
        end = self._next + self._entries
        room = self._queue.room(self._next, end)
        self._entered = max(self._entered + self._entries, math.ceil(self._fetched), room)
        self._next = end
        self._queue.fetched, self._queue.arrived = self._fetched, self._entered
        return self._entered + self._latency.pixel

    def sampled(self, last: int) -> None:
        """Release the entries of a pixel after its last step."""
        self._queue.release(self._entries, last, last)
