"""The host's memory as a launch's bursts meet it, one after the other in time."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from hw.oram.config import BEAT_BYTES, BURST_BYTES
from hw.oram.model.link import Link

#: The bridge keeps room for one longest burst.
_LONGEST_BURST_BYTES = 4096

#: Takes the cycles of a read's first and last beat; of a write's last beat and its answer.
Done = Callable[[int, int], None]


class _Burst(NamedTuple):
    size: int
    done: Done | None  # of a block's last burst


class Port:
    """A direction of an AXI port: its bursts in order, one address a cycle, one beat a cycle."""

    def __init__(self, way: _Way) -> None:
        self.way = way
        self.waiting: deque[_Burst] = deque()
        self.address_free = self.free = 0  # first cycle without an address, without a beat


class _Way:
    """A direction of all ports: bursts and bytes under way, which are limited, and what was sent."""

    def __init__(self, bursts: int, bytes_: float) -> None:
        self._limits = bursts, bytes_
        self._under_way: deque[tuple[int, int]] = deque()  # when there is room again, and for how much
        self._bytes = 0
        self._begun = (0, 0)  # a cycle, and how many began in it: one of each port may
        self.free = 0.0  # when all that was sent has gone through

    def room(self, cycle: int) -> int:
        """Return the first cycle in which a burst may begin."""
        bursts, bytes_ = self._limits
        while self._under_way and self._under_way[0][0] <= cycle:
            self._bytes -= self._under_way.popleft()[1]
        before = len(self._under_way) - (self._begun[1] if self._begun[0] == cycle else 0)
        return self._under_way[0][0] if before >= bursts or self._bytes > bytes_ else cycle

    def begin(self, cycle: int, end: int, size: int) -> None:
        """Take a burst whose last handshake is in cycle ``end``."""
        self._under_way.append((end + 1, size))
        self._bytes += size
        self._begun = (cycle, self._begun[1] + 1 if self._begun[0] == cycle else 1)


class Host:
    """Carries bursts in the order of time: what is done of one may ask for others, which come later.

    ``link``: whose rates and limits hold, as in ``sim/memory/pipe.cpp``, of whole bursts.
    """

    def __init__(self, link: Link) -> None:
        timing = link.timing
        self._link = link
        self._reads = _Way(timing.read_bursts, timing.read_in_flight_bytes - _LONGEST_BURST_BYTES)
        self._writes = _Way(timing.write_bursts, math.inf)
        self._shared_free = 0.0
        self._buffer_cycles = timing.write_buffer_bytes * link.byte_cycles
        self._beat_cycles = BEAT_BYTES * link.byte_cycles
        self._events: list[tuple[int, int, Port, _Burst | None]] = []  # without one: a port's first
        self._number = itertools.count()

    def port(self, *, write: bool) -> Port:
        """Make a port."""
        return Port(self._writes if write else self._reads)

    def ask(self, port: Port, cycle: int, address: int, size: int, done: Done) -> None:
        """Offer the bursts of a block from ``cycle`` on; its last one counts."""
        end = address + size
        while address < end:
            stop = min(end, (address // BURST_BYTES + 1) * BURST_BYTES)
            self._push(cycle, port, _Burst(stop - address, done if stop == end else None))
            address, cycle = stop, cycle + 1

    def run(self) -> None:
        """Carry all bursts, those that are asked for meanwhile too."""
        while self._events:
            cycle, _, port, burst = heapq.heappop(self._events)
            if burst is not None:
                port.waiting.append(burst)
                if len(port.waiting) > 1:
                    continue
            start = max(port.way.room(cycle), port.address_free)
            if start == cycle:
                self._carry(port, cycle, *port.waiting.popleft())
                start = port.address_free = cycle + 1
            if port.waiting:
                self._push(start, port, None)

    def _push(self, cycle: int, port: Port, burst: _Burst | None) -> None:
        heapq.heappush(self._events, (cycle, next(self._number), port, burst))

    def _carry(self, port: Port, cycle: int, size: int, done: Done | None) -> None:
        """Move a burst whose address is taken in ``cycle``."""
        write = port.way is self._writes
        first, last = (self._write if write else self._read)(port, cycle, size)
        port.way.begin(cycle, last, size)
        if done is not None:
            done(first, last)

    def _through(self, way: _Way, cycle: int, latency: float, size: int) -> float:
        """Send bytes through a direction, and through what both share: give when the last have gone."""
        way.free = max(way.free, cycle + latency) + size * self._link.byte_cycles
        if self._link.shared_byte_cycles:
            self._shared_free = max(self._shared_free, cycle) + size * self._link.shared_byte_cycles
            way.free = max(way.free, self._shared_free + latency)
        return way.free

    def _read(self, port: Port, cycle: int, size: int) -> tuple[int, int]:
        end = self._through(port.way, cycle, self._link.read_cycles, size)
        first = max(math.ceil(end - size * self._link.byte_cycles) + 1, port.free)
        last = max(math.ceil(end - self._beat_cycles) + 1, first + size // BEAT_BYTES - 1)
        port.free = last + 1
        return first, last

    def _write(self, port: Port, cycle: int, size: int) -> tuple[int, int]:
        first = max(cycle + 1, port.free, math.ceil(port.way.free - self._buffer_cycles))
        end = self._through(port.way, first, 0, size)
        last = max(first + size // BEAT_BYTES - 1, math.ceil(end - self._buffer_cycles))
        port.free = last + 1
        gone = max(end, last + self._beat_cycles)
        return last, math.ceil(gone + self._link.write_cycles) + 1
