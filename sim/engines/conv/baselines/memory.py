"""The timing of a memory port, from the constants of the board's memory alone."""

from __future__ import annotations

from dataclasses import dataclass

from hw.board import Board


@dataclass(frozen=True, kw_only=True)
class BaselinePort:
    """A memory port that has a channel of its own."""

    beat_bytes: int  #: Of a beat; at most one a cycle in each direction.
    bytes_per_cycle: float  #: Bandwidth of the channel, both directions together.
    #: ``read_latency``, ``write_latency``: cycles from an address to its first data, and from the last data
    #: to the response, of an idle channel.
    read_latency: int
    write_latency: int
    outstanding: int  #: Most outstanding requests.

    @classmethod
    def of(cls, board: Board, *, beat_bytes: int, outstanding: int, sharing: int = 1) -> BaselinePort:
        """Return a port of ``beat_bytes`` on ``board``, where ``sharing`` ports share a channel."""
        return cls(
            beat_bytes=min(beat_bytes, board.memory.port_data_width // 8),
            bytes_per_cycle=board.channel_bytes_per_cycle / sharing,
            read_latency=board.idle_read_cycles,
            write_latency=board.idle_write_cycles,
            outstanding=outstanding,
        )

    @property
    def beat_cycles(self) -> float:
        """Cycles of a beat at full rate."""
        return max(1.0, self.beat_bytes / self.bytes_per_cycle)

    def read_cycles(self, requests: int, beats: int) -> float:
        """Return the cycles from the first address to the last of ``beats`` of ``requests``, all much alike.

        Either beats arrive at full rate, or the most outstanding requests arrive once in a latency.
        """
        if not requests:
            return 0.0
        waiting = (requests - 1) // self.outstanding
        length = beats / requests * self.beat_cycles
        return self.read_latency + max(
            beats * self.beat_cycles, (waiting + 1) * length + waiting * self.read_latency
        )

    def shared_cycles(self, read_beats: int, write_beats: int) -> float:
        """Return the fewest cycles of the channel for both directions."""
        return (read_beats + write_beats) * self.beat_bytes / self.bytes_per_cycle
