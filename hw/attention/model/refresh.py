"""When a channel of memory refreshes, and how long requests wait for it."""

import math
from collections.abc import Iterable

from hw.attention.config import AttentionConfig
from hw.attention.walk.descriptor import SCALARS
from hw.board import Board

#: Cycles from memory's start to the kernel's.  A host writes words of arguments, 105 for the default of a
#: U55C, in `_WORD_CYCLES` each. Accesses that every kernel needs take `_HOST_CYCLES`.
_WORD_CYCLES, _HOST_CYCLES = 4, 40
#: Pointers to bitmaps, slopes, page tables and descriptors; each has two words.
_TABLE_POINTERS = 4


def host_cycles(config: AttentionConfig) -> int:
    """Return the cycles from memory's start to the kernel's."""
    tensors = 2 * config.streams * config.ports + config.query_port_count + config.result_ports
    words = 2 * (tensors + _TABLE_POINTERS) + len(SCALARS) + 1  # and the number of jobs
    return _HOST_CYCLES + _WORD_CYCLES * words


class Refreshes:
    """Refreshes of all channels, one after another, as in the calibrated memory.

    On a card the kernel starts at any time between two refreshes.  Here, and in co-simulation, memory starts
    with the host's first write.

    ``start``: cycles from memory's start to cycle 0.
    """

    def __init__(self, board: Board, *, start: int) -> None:
        timing = board.dram_timing
        self._request = board.cycles(timing.request_ns)
        self._interval = board.cycles(timing.refresh_interval_ns)
        self._blocked = board.cycles(timing.refresh_ns)
        self._channels = board.memory.channels
        self._begun = start

    @property
    def share(self) -> float:
        """Return the share of the time in which a channel refreshes."""
        return self._blocked / self._interval

    def since(self, channel: int, cycle: float) -> tuple[int, float]:
        """Return the refreshes of a channel before a request of this cycle, and the time since the last one
        began.
        """
        first = self._interval * ((channel % self._channels + 1) / self._channels + 0.5) - self._begun
        count, since = divmod(cycle + self._request - first, self._interval)
        return int(count) + 1, since

    def transferred(self, channel: int, cycle: float, cycles: float) -> float:
        """Return when a channel ends a transfer that begins in this cycle and takes ``cycles`` without
        refreshes.
        """
        count, since = self.since(channel, cycle)
        if count > 0 and since < self._blocked:
            cycle, since = cycle + self._blocked - since, self._blocked
        since += min(count, 0) * self._interval  # no refresh precedes the first one
        refreshes = max(0, math.ceil((since + cycles - self._interval) / (self._interval - self._blocked)))
        return cycle + cycles + refreshes * self._blocked

    def following(self, channel: int, cycle: float) -> tuple[float, float]:
        """Return the begin and the end of a channel's next refresh after this cycle."""
        count, since = self.since(channel, cycle)
        begins = cycle - since + self._interval * (1 - min(count, 0))
        return begins, begins + self._blocked

    def wait(self, channels: Iterable[int], cycle: float) -> int:
        """Return the longest wait of a request of this cycle for a refresh, over the channels."""
        found = (self.since(channel, cycle) for channel in channels)
        return max((int(max(0.0, self._blocked - since)) for count, since in found if count > 0), default=0)
