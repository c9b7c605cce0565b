"""What the host's memory does to a bus: as it likes, steadily, or as it was seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


class HostTimes(Protocol):
    """What the host's memory does, by port; asked in the order of bursts on each channel of a port."""

    def address_handshake(self, port: str, write: bool, valid: int) -> int:
        """Return the cycle of the handshake of an address that is valid from cycle ``valid`` on."""

    def read_handshakes(self, port: str, accepted: int, beats: int) -> Sequence[int]:
        """Return the cycles of the handshakes of a read burst's beats."""

    def write_handshake(self, port: str, valid: int) -> int:
        """Return the cycle of the handshake of a beat that is valid from cycle ``valid`` on."""

    def write_answer(self, port: str, accepted: int, last: int) -> int:
        """Return the cycle of the handshake of a write burst's response."""

    def has_command(self, number: int, accepted: int) -> bool:
        """Tell whether a read of command ``number`` finds it written."""


@dataclass
class RecordedHost:
    """A host as it was seen on the bus: what it did, without what the engine did."""

    #: By port and whether it writes: cycles each address was valid before its handshake.
    address_waits: dict[tuple[str, bool], Iterator[int]]
    data: dict[str, Iterator[Sequence[int]]]  #: By port: cycles of the handshakes of each read burst's beats.
    beat_waits: dict[str, Iterator[int]]  #: By port: cycles each written beat was valid before its handshake.
    answers: dict[str, Iterator[int]]  #: By port: cycles of the handshakes of write responses.
    found: Iterator[bool]  #: For each read of a command whether it was written, in order.

    def address_handshake(self, port: str, write: bool, valid: int) -> int:
        """As long after it became valid as it was."""
        return valid + next(self.address_waits[port, write])

    def read_handshakes(self, port: str, accepted: int, beats: int) -> Sequence[int]:
        """When they were."""
        return next(self.data[port])

    def write_handshake(self, port: str, valid: int) -> int:
        """As long after it became valid as it was."""
        return valid + next(self.beat_waits[port])

    def write_answer(self, port: str, accepted: int, last: int) -> int:
        """When it was."""
        return next(self.answers[port])

    def has_command(self, number: int, accepted: int) -> bool:
        """As it was."""
        return next(self.found)
