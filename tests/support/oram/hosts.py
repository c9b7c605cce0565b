"""A host without contention."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class SteadyHost:
    """A host that takes everything at once, and gives the beats of a port one a cycle."""

    #: ``read_latency``, ``write_latency``: cycles from a read's address to its first beat, from a write's
    #: last beat to its answer.
    read_latency: int = 150
    write_latency: int = 200
    commands: Sequence[int] = ()  #: Cycle from which a read finds each command.
    _busy: dict[str, int] = field(default_factory=dict)

    def address_handshake(self, port: str, write: bool, valid: int) -> int:
        """At once."""
        return valid

    def read_handshakes(self, port: str, accepted: int, beats: int) -> Sequence[int]:
        """After the latency, and after what was asked for before."""
        first = max(accepted + self.read_latency, self._busy.get(port, -1) + 1)
        self._busy[port] = first + beats - 1
        return range(first, first + beats)

    def write_handshake(self, port: str, valid: int) -> int:
        """At once."""
        return valid

    def write_answer(self, port: str, accepted: int, last: int) -> int:
        """After the latency."""
        return max(accepted, last) + self.write_latency

    def has_command(self, number: int, accepted: int) -> bool:
        """Tell whether the command was written by then, at once if nothing is said of it."""
        return number >= len(self.commands) or self.commands[number] <= accepted
