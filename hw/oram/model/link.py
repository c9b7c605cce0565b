"""The host's memory as the map's ports see it: a latency, a rate each way, and bursts under way at once."""

from __future__ import annotations

from collections import deque

from hw.board import Memory
from hw.board.memory_timing import HostTiming
from hw.errors import InputError
from hw.oram.config import BEAT_BYTES

#: The bridge keeps room for one longest burst.
_LONGEST_BURST_BYTES = 4096


class Link:
    """Bursts in the order they are asked for; times are cycles, of parts of one too.

    Parameters
    ----------
    memory
        The host's.
    clock_mhz
        Of the kernel.

    Raises
    ------
    InputError
        When the memory is another kind than a host's.
    """

    def __init__(self, memory: Memory, clock_mhz: float) -> None:
        timing = memory.timing
        if not isinstance(timing, HostTiming):
            raise InputError("memory of the host", memory.name, "one behind a link")
        self._timing = timing
        #: Cycles a byte takes, each way.
        self.byte_cycles = clock_mhz * 1e6 / timing.bytes_per_second
        #: Cycles from a read's address to its first beat, and from a write's last beat to its answer.
        self.read_cycles, self.write_cycles = (
            nanoseconds * clock_mhz / 1e3 for nanoseconds in (timing.first_data_ns, timing.write_response_ns)
        )
        #: Cycles from a write burst to the next at least, where many are under way.
        self.write_burst_cycles = self.write_cycles / timing.write_bursts
        self._read_free = self._write_free = 0.0
        self._reads: deque[tuple[float, int]] = deque()  # when each under way ends, and its bytes
        self._writes: deque[float] = deque()
        self._asked_bytes = 0

    def read(self, cycle: float, size: int) -> float:
        """Give the cycle of the last beat of a burst that is asked for at ``cycle``."""
        timing, reads = self._timing, self._reads
        while reads and (
            reads[0][0] <= cycle
            or len(reads) == timing.read_bursts
            or self._asked_bytes + _LONGEST_BURST_BYTES > timing.read_in_flight_bytes
        ):
            ended, bytes_ = reads.popleft()
            cycle = max(cycle, ended)
            self._asked_bytes -= bytes_
        self._read_free = max(self._read_free, cycle + self.read_cycles) + size * self.byte_cycles
        last = self._read_free - BEAT_BYTES * self.byte_cycles + 1
        reads.append((last, size))
        self._asked_bytes += size
        return last

    def write(self, cycle: float, size: int) -> tuple[float, float]:
        """Give the cycles of a burst's last beat, whose address comes at ``cycle``, and of its answer."""
        timing, writes = self._timing, self._writes
        while writes and (writes[0] <= cycle or len(writes) == timing.write_bursts):
            cycle = max(cycle, writes.popleft())
        taken = max(cycle, self._write_free - timing.write_buffer_bytes * self.byte_cycles)
        self._write_free = max(self._write_free, cycle) + size * self.byte_cycles
        left = max(
            taken + size / BEAT_BYTES - 1,
            self._write_free - timing.write_buffer_bytes * self.byte_cycles,
        )
        answered = max(self._write_free, left) + self.write_cycles
        writes.append(answered)
        return left, answered
