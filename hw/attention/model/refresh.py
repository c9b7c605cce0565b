"""When a channel of memory refreshes, and how long what is asked for then waits."""

from __future__ import annotations

from collections.abc import Iterable

from hw.board import Board
from hw.board.dram_timing import DramTiming

#: Cycles from memory's start to the kernel's: a host writes 105 words of arguments for the default of a U55C.
HOST_CYCLES = 460


class Refreshes:
    """Refreshes of all channels, one after another, as the calibrated memory has them.

    On a card the kernel starts at any time between them; here, and in co-simulation, memory starts with the
    host's first write.

    Parameters
    ----------
    board
        Where the engine runs.
    """

    def __init__(self, board: Board) -> None:
        timing = board.memory.timing
        assert isinstance(timing, DramTiming)  # a board's own memory is one: `hw.board.Board`
        self._request = board.cycles(timing.request_ns)
        self._interval = board.cycles(timing.refresh_interval_ns)
        self._blocked = board.cycles(timing.refresh_ns)
        self._channels = board.memory.channels

    def since(self, channel: int, cycle: float) -> tuple[int, float]:
        """Give how many refreshes of a channel a request of this cycle has behind it, and the time since the
        last one's beginning.
        """
        first = self._interval * ((channel % self._channels + 1) / self._channels + 0.5) - HOST_CYCLES
        count, since = divmod(cycle + self._request - first, self._interval)
        return int(count) + 1, since

    def wait(self, channels: Iterable[int], cycle: float) -> int:
        """Give for how long the slowest of the channels holds requests of this cycle."""
        found = (self.since(channel, cycle) for channel in channels)
        return max((int(max(0.0, self._blocked - since)) for count, since in found if count > 0), default=0)
