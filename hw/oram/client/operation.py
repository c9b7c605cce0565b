"""Operations of a client, their outcomes, and calls of several operations."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hw.oram.core.layouts import Code, Status

#: Origin of the calls that load a new map; no client has it.
LOADING = (1 << 64) - 1


class Operation(NamedTuple):
    """A requested operation."""

    code: Code
    key: int
    value: bytes  #: V bytes: zeros for operations without a value.


class Outcome(NamedTuple):
    """A response."""

    status: Status
    value: bytes  #: The value before the operation, zeros if none.


@dataclass(eq=False)
class Call:
    """Operations that are requested together; they have no order among each other.

    ``origin``: number of the client. ``number``: of its call; a client's numbers rise. ``checksum``: of the
    operations.
    """

    origin: int
    number: int
    operations: Sequence[Operation]
    checksum: int
    #: By operation: None until it is answered for good.
    outcomes: list[Outcome | None] = field(init=False)
    missing: int = field(init=False)  #: Operations without an outcome.
    #: By operation: how often its command was rejected.
    rejections: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.missing = len(self.operations)
        self.outcomes = [None] * self.missing


class Finished(NamedTuple):
    """The last finished call of a client."""

    number: int
    checksum: int
    outcomes: tuple[Outcome, ...]
