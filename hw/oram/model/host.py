"""The host's memory as a queue of a launch's bursts in order of time."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable

from hw.oram.config import BEAT_BYTES, BURST_BYTES
from hw.oram.model.link import Link

#: The bridge reserves room for one burst of this size.
_LONGEST_BURST_BYTES = 4096

#: Called with the cycles of a read's first and last beat, or of a write's last beat and its answer.
Done = Callable[[int, int], None]


#: Bytes of a burst; of a block's last one, the caller to notify.
_Burst = tuple[int, Done | None]


class HostPort:
    """A direction of an AXI port: its bursts in order, one address a cycle, one beat a cycle."""

    def __init__(self, direction: _HostDirection) -> None:
        self.direction = direction
        self.waiting: deque[_Burst] = deque()
        self.address_free = self.free = 0  # first free cycle for an address, for a beat


class _HostDirection:
    """A direction of all ports: bursts and bytes in flight, within their limits, and the rate."""

    def __init__(self, bursts: int, bytes_: float) -> None:
        self._limits = bursts, bytes_
        self._in_flight: deque[tuple[int, int]] = deque()  # end, bytes
        self._bytes = 0
        self._begun = (0, 0)  # a cycle, and the bursts begun in it: at most one of each port
        self.free = 0.0  # end of the last byte sent

    def room(self, cycle: int) -> int:
        """Return the first cycle in which a burst may begin."""
        bursts, bytes_ = self._limits
        in_flight = self._in_flight
        while in_flight and in_flight[0][0] <= cycle:
            self._bytes -= in_flight.popleft()[1]
        before = len(in_flight) - (self._begun[1] if self._begun[0] == cycle else 0)
        return in_flight[0][0] if before >= bursts or self._bytes > bytes_ else cycle

    def begin(self, cycle: int, end: int, size: int) -> None:
        """Take a burst whose last handshake is in cycle ``end``."""
        self._in_flight.append((end + 1, size))
        self._bytes += size
        self._begun = (cycle, self._begun[1] + 1 if self._begun[0] == cycle else 1)


class HostMemory:
    """Carries bursts in order of time; the end of one may request later ones.

    ``link``: its rates and limits hold as in ``sim/memory/pipe.cpp``, for whole bursts.
    """

    def __init__(self, link: Link) -> None:
        timing = link.timing
        self._reads = _HostDirection(timing.read_bursts, timing.read_in_flight_bytes - _LONGEST_BURST_BYTES)
        self._writes = _HostDirection(timing.write_bursts, math.inf)
        self._byte_cycles, self._shared_byte_cycles = link.byte_cycles, link.shared_byte_cycles
        self._read_cycles, self._write_cycles = link.read_cycles, link.write_cycles
        self._shared_free = 0.0
        self._buffer_cycles = timing.write_buffer_bytes * link.byte_cycles
        self._beat_cycles = BEAT_BYTES * link.byte_cycles
        # None: the port's first waiting burst
        self._events: list[tuple[int, int, HostPort, _Burst | None]] = []
        self._number = itertools.count()

    def port(self, *, write: bool) -> HostPort:
        """Make a port."""
        return HostPort(self._writes if write else self._reads)

    def ask(self, port: HostPort, cycle: int, address: int, size: int, done: Done) -> None:
        """Request a block's bursts from ``cycle`` on; ``done`` is called for the last."""
        end = address + size
        while address < end:
            stop = min(end, (address // BURST_BYTES + 1) * BURST_BYTES)
            self._push(cycle, port, (stop - address, done if stop == end else None))
            address, cycle = stop, cycle + 1

    def run(self) -> None:
        """Carry all bursts, including those requested meanwhile."""
        events, pop = self._events, heapq.heappop
        while events:
            cycle, _, port, burst = pop(events)
            waiting = port.waiting
            if burst is not None:
                waiting.append(burst)
                if len(waiting) > 1:
                    continue
            start = port.direction.room(cycle)
            if port.address_free > start:
                start = port.address_free
            if start == cycle:
                self._carry(port, cycle, *waiting.popleft())
                start = port.address_free = cycle + 1
            if waiting:
                self._push(start, port, None)

    def _push(self, cycle: int, port: HostPort, burst: _Burst | None) -> None:
        heapq.heappush(self._events, (cycle, next(self._number), port, burst))

    def _carry(self, port: HostPort, cycle: int, size: int, done: Done | None) -> None:
        """Carry a burst whose address is taken in ``cycle``."""
        write = port.direction is self._writes
        first, last = (self._write if write else self._read)(port, cycle, size)
        port.direction.begin(cycle, last, size)
        if done is not None:
            done(first, last)

    def _through(self, direction: _HostDirection, cycle: int, latency: float, size: int) -> float:
        """Send bytes through a direction and through the shared rate; return the end of the last byte."""
        direction.free = max(direction.free, cycle + latency) + size * self._byte_cycles
        if self._shared_byte_cycles:
            self._shared_free = max(self._shared_free, cycle) + size * self._shared_byte_cycles
            direction.free = max(direction.free, self._shared_free + latency)
        return direction.free

    def _read(self, port: HostPort, cycle: int, size: int) -> tuple[int, int]:
        end = self._through(port.direction, cycle, self._read_cycles, size)
        first = max(math.ceil(end - size * self._byte_cycles) + 1, port.free)
        last = max(math.ceil(end - self._beat_cycles) + 1, first + size // BEAT_BYTES - 1)
        port.free = last + 1
        return first, last

    def _write(self, port: HostPort, cycle: int, size: int) -> tuple[int, int]:
        first = max(cycle + 1, port.free, math.ceil(port.direction.free - self._buffer_cycles))
        end = self._through(port.direction, first, 0, size)
        last = max(first + size // BEAT_BYTES - 1, math.ceil(end - self._buffer_cycles))
        port.free = last + 1
        sent = max(end, last + self._beat_cycles)
        return last, math.ceil(sent + self._write_cycles) + 1
