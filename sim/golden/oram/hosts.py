"""Times of the host's memory on the bus: the interface, and a recorded host."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


class HostTimes(Protocol):
    """Cycles of the host's handshakes, by port, queried in the order of bursts on each channel."""

    def address_handshake(self, port: str, write: bool, valid: int) -> int:
        """Return the cycle in which an address valid from cycle ``valid`` on is taken."""

    def read_handshakes(self, port: str, accepted: int, beats: int) -> Sequence[int]:
        """Return the cycles of a read burst's beats."""

    def write_handshake(self, port: str, valid: int) -> int:
        """Return the cycle in which a beat valid from cycle ``valid`` on is taken."""

    def write_answer(self, port: str, accepted: int, last: int) -> int:
        """Return the cycle of a write burst's response."""

    def has_command(self, number: int, accepted: int) -> bool:
        """Return whether a read of command ``number`` finds it written."""


@dataclass
class RecordedHost:
    """A recorded host: its delays on the bus, without the engine's actions."""

    #: By port and direction: cycles that each address waited.
    address_waits: dict[tuple[str, bool], Iterator[int]]
    data: dict[str, Iterator[Sequence[int]]]  #: By port: cycles of each read burst's beats.
    beat_waits: dict[str, Iterator[int]]  #: By port: cycles that each written beat waited.
    answers: dict[str, Iterator[int]]  #: By port: cycles of write responses.
    found: Iterator[bool]  #: For each read of a command, in order: whether it was written.

    def address_handshake(self, port: str, write: bool, valid: int) -> int:
        """Add the recorded wait."""
        return valid + next(self.address_waits[port, write])

    def read_handshakes(self, port: str, accepted: int, beats: int) -> Sequence[int]:
        """Return the recorded cycles."""
        return next(self.data[port])

    def write_handshake(self, port: str, valid: int) -> int:
        """Add the recorded wait."""
        return valid + next(self.beat_waits[port])

    def write_answer(self, port: str, accepted: int, last: int) -> int:
        """Return the recorded cycle."""
        return next(self.answers[port])

    def has_command(self, number: int, accepted: int) -> bool:
        """Return the recorded result."""
        return next(self.found)
