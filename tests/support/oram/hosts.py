"""A host without contention."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class SteadyHost:
    """A host that takes everything at once, and returns the beats of a port one a cycle."""

    #: ``read_latency``, ``write_latency``: cycles from a read's address to its first beat, from a write's
    #: last beat to its answer.
    read_latency: int = 150
    write_latency: int = 200
    commands: Sequence[int] = ()  #: Cycle from which a read finds each command.
    _busy: dict[str, int] = field(default_factory=dict)

    def address_handshake(self, port: str, write: bool, valid: int) -> int:
        """Return ``valid``."""
        return valid

    def read_handshakes(self, port: str, accepted: int, beats: int) -> Sequence[int]:
        """Return the cycles after the latency and after earlier beats."""
        first = max(accepted + self.read_latency, self._busy.get(port, -1) + 1)
        self._busy[port] = first + beats - 1
        return range(first, first + beats)

    def write_handshake(self, port: str, valid: int) -> int:
        """Return ``valid``."""
        return valid

    def write_answer(self, port: str, accepted: int, last: int) -> int:
        """Return the cycle after the latency."""
        return max(accepted, last) + self.write_latency

    def has_command(self, number: int, accepted: int) -> bool:
        """Return whether the command was written by then; at once if ``commands`` does not list it."""
        return number >= len(self.commands) or self.commands[number] <= accepted
