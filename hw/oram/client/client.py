"""The client of a map, in the process that owns its session."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Self

from hw.oram.client.errors import NoAnswerError
from hw.oram.client.methods import MapMethods, check_outcomes
from hw.oram.client.operation import LOADING, Call, Finished, Operation, Outcome
from hw.oram.client.session import Session
from hw.oram.core.layouts import Code

#: Origin of the calls of a client that owns its session.
OWN = 0
#: Operations of a call while a map is loaded.
_LOAD_OPERATIONS = 4096
#: Seconds between two looks at the ring.
_POLL_S = 5e-5


class Client(MapMethods):
    """A map whose session belongs to this process.

    ``timeout_s``: seconds without a response after which a call is left unfinished.

    Behaviour
    ---------
    A call first finishes the one before, if that was left unfinished or its process was killed.
    """

    def __init__(self, session: Session, *, timeout_s: float = 60) -> None:
        self.session = session
        self.value_bytes, self.key_bits = session.config.value_bytes, session.config.key_bits
        self._timeout_s = timeout_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    @property
    def unfinished(self) -> Sequence[Operation]:
        """Operations of the call that was left unfinished; none if there is no such call."""
        calls = [call for call in self.session.state.calls if call.origin == OWN]
        return calls[0].operations if calls else ()

    @property
    def last_number(self) -> int:
        """The number of the last call, or 0."""
        return self.session.state.highest(OWN)

    def execute(self, operations: Sequence[Operation], number: int | None = None) -> Sequence[Outcome]:
        """See `MapMethods`.

        Raises `LostMapError` without a map, `NoAnswerError` after the time.
        """
        if number is None or number != self.last_number:
            self.finish()
        return self._outcomes(self.session.request(OWN, operations, number=number))

    def finish(self) -> None:
        """Finish the call that was left unfinished, if any."""
        self._wait(lambda: not self.session.state.calls)

    def load(self, items: Iterable[tuple[int, bytes]]) -> None:
        """Make a new map of these keys and values: the first one, or one in place of a lost one.

        Its epoch is new. The call that was left unfinished is executed on the new map.

        Raises `MapFullError` when a key finds no room, `InputError` for a key that occurs twice.
        """
        self.session.begin()
        self._wait(lambda: not self.session.state.is_busy(LOADING))
        for chunk in _chunks(items):
            operations = [self._operation(Code.LOAD, key, value) for key, value in chunk]
            call = self.session.request(LOADING, operations)
            check_outcomes(operations, self._outcomes(call))
        self.session.finish_load()
        self.finish()

    def _outcomes(self, call: Call | Finished) -> Sequence[Outcome]:
        """Wait for the end of a call."""
        if isinstance(call, Call):
            self._wait(lambda: call.missing == 0)
        return [outcome for outcome in call.outcomes if outcome is not None]

    def _wait(self, ends: Callable[[], bool]) -> None:
        since = time.monotonic()
        while not ends():
            if self.session.step():
                since = time.monotonic()
            elif time.monotonic() - since > self._timeout_s:
                raise NoAnswerError(f"no response for {self._timeout_s} s; the call is left unfinished")
            else:
                time.sleep(_POLL_S)


def _chunks(items: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    rest = iter(items)
    while chunk := list(islice(rest, _LOAD_OPERATIONS)):
        yield chunk
