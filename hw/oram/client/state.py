"""The state of a session as its journal tells it: sequence numbers, and calls that are not finished."""

import hmac
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from hw.oram.client.operation import LOADING, Call, Finished, Outcome
from hw.oram.core.layouts import Status
from hw.oram.driver.keys import KEY_BYTES, Secrets


def secrets_of(master: bytes, epoch: int) -> Secrets:
    """Return the keys of an epoch. They are as good as random, and no other epoch has them.

    ``master``: the client's own key, which never reaches the card.
    """
    session_key, seed = (_keyed(master, name, epoch)[:KEY_BYTES] for name in (b"session key", b"seed"))
    return Secrets(session_key=session_key, seed=seed, epoch=epoch)


def mark_of(master: bytes, epoch: int) -> bytes:
    """Return 8 bytes that tell whether a master key and an epoch are those of a journal."""
    return _keyed(master, b"journal", epoch)[:8]


def _keyed(master: bytes, name: bytes, epoch: int) -> bytes:
    return hmac.digest(master, b"loomwork " + name + epoch.to_bytes(8, "little"), "sha256")


@dataclass(frozen=True, kw_only=True)
class Header:
    """The beginning of a journal: constants of the session."""

    epoch: int
    mark: bytes  #: `mark_of` its key.
    slots: int  #: Of the rings.
    value_bytes: int
    key_bits: int
    #: Commands of an operation that may be rejected before the operation is.
    attempts: int
    first: int = 0  #: Its first sequence number.


class Sent(NamedTuple):
    """An operation of a call."""

    call: Call
    place: int


class SessionState:
    """State after all events so far. The same events always lead to the same state.

    A sequence number belongs to one operation of one call for good. A rejected operation returns to the
    operations without a number.
    """

    def __init__(self, header: Header) -> None:
        self.header = header
        self.loaded = False  #: Whether the map was loaded to its end.
        #: ``next``: the next sequence number. ``answered``: the number of answered commands.
        self.next = self.answered = header.first
        self.calls: list[Call] = []  #: Not finished, in the order of their requests.
        self.last: dict[int, Finished] = {}  #: The last finished call of each origin.
        #: ``sent``: operations with the numbers from ``answered`` to ``next`` - 1. ``unsent``: in the order
        #: in which they take numbers. ``held``: calls that wait for the map to be loaded.
        self.sent: deque[Sent] = deque()
        self.unsent: deque[Sent] = deque()
        self.held: list[Call] = []

    def request(self, call: Call) -> None:
        """Add a call."""
        self.calls.append(call)
        if self.loaded or call.origin == LOADING:
            self._queue(call)
        else:
            self.held.append(call)

    def load(self) -> None:
        """Note that the map is loaded: other calls follow."""
        self.loaded = True
        for call in self.held:
            self._queue(call)
        self.held.clear()

    def send(self, count: int) -> None:
        """Assign the next sequence numbers to operations without one."""
        self.sent.extend(self.unsent.popleft() for _ in range(count))
        self.next += count

    def answer(self, outcomes: Iterable[Outcome]) -> None:
        """Note the responses to the next sequence numbers."""
        for outcome in outcomes:
            operation = self.sent.popleft()
            self.answered += 1
            call, place = operation
            if outcome.status == Status.REJECTED:
                call.rejections[place] = call.rejections.get(place, 0) + 1
                if call.rejections[place] < self.header.attempts:
                    self.unsent.appendleft(operation)
                    continue
            call.outcomes[place] = outcome
            call.missing -= 1
            if call.missing == 0:
                self._finish(call)

    def remember(self, origin: int, finished: Finished) -> None:
        """Note the last finished call of an origin."""
        self.last[origin] = finished

    def forget(self, origin: int) -> None:
        """Drop the last finished call of an origin that is done."""
        self.last.pop(origin, None)

    def find(self, origin: int, number: int) -> Call | None:
        """Return a client's call if it is not finished."""
        calls = (call for call in self.calls if (call.origin, call.number) == (origin, number))
        return next(calls, None)

    def is_busy(self, origin: int) -> bool:
        """Return whether a call of an origin is not finished."""
        return any(call.origin == origin for call in self.calls)

    def highest(self, origin: int) -> int:
        """Return the highest number of a client's calls, or 0."""
        numbers = [call.number for call in self.calls if call.origin == origin]
        return max(numbers, default=self.last[origin].number if origin in self.last else 0)

    def _queue(self, call: Call) -> None:
        self.unsent.extend(Sent(call, place) for place in range(len(call.operations)))

    def _finish(self, call: Call) -> None:
        self.calls.remove(call)
        if call.origin != LOADING:
            outcomes = tuple(outcome for outcome in call.outcomes if outcome is not None)
            self.remember(call.origin, Finished(call.number, call.checksum, outcomes))
