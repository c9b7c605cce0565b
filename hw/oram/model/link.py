"""The link to the host's memory: its latencies, its rates, and its bursts in flight."""

import math

from hw.board import Board
from hw.board.memory_timing import HostTiming
from hw.oram.config import BURST_BYTES
from hw.oram.driver.capacity import host_memory

#: From a write's address to its first beat, and from its answer to the next address.
_HANDSHAKE_CYCLES = 3


def block_bursts(block_bytes: int) -> float:
    """Return the average bursts of a block among many consecutive ones."""
    return 1 + (block_bytes - math.gcd(block_bytes, BURST_BYTES)) / BURST_BYTES


class Link:
    """`HostTiming` of a board, in cycles of the kernel.

    ``used_bytes``: bytes of all buffers in the host's memory. Bytes beyond the host's cache are slower, and
    share a rate between both directions.

    Raises `InputError` when the board has no host memory.
    """

    def __init__(self, board: Board, *, used_bytes: int) -> None:
        timing = host_memory(board).timing
        assert isinstance(timing, HostTiming)
        self.timing = timing
        missed = max(0.0, 1 - timing.cached_bytes / used_bytes) if used_bytes else 0.0
        slow = min(timing.large_bytes_per_second, timing.bytes_per_second)
        second = board.clock_mhz * 1e6
        #: Cycles a byte takes each way, and of both ways together; 0 without a shared rate.
        self.byte_cycles = second * ((1 - missed) / timing.bytes_per_second + missed / slow)
        self.shared_byte_cycles = second * missed / timing.large_shared_bytes_per_second
        #: Cycles from a read's address to its first beat, and from a write's last byte to its answer.
        self.read_cycles = board.cycles(timing.first_data_ns)
        self.write_cycles = board.cycles(timing.write_response_ns)

    def least_cycles(self, *, read_bytes: float, write_bytes: float, write_bursts: float) -> float:
        """Return the least cycles of a transfer with as many bursts in flight as possible."""
        return max(
            max(read_bytes, write_bytes) * self.byte_cycles,
            (read_bytes + write_bytes) * self.shared_byte_cycles,
            (write_bursts * (self.write_cycles + _HANDSHAKE_CYCLES) + write_bytes * self.byte_cycles)
            / self.timing.write_bursts,
        )
