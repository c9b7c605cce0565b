"""A server of one map for several clients of this machine: it owns the session."""

import contextlib
import selectors
import socket
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hw.errors import InputError, LoomworkError
from hw.oram.client import messages
from hw.oram.client.client import OWN, Client
from hw.oram.client.errors import LostMapError, NoAnswerError
from hw.oram.client.events import pack_outcomes, unpack_operations
from hw.oram.client.operation import LOADING, Call, Operation, Outcome
from hw.oram.client.session import Session
from hw.oram.core.layouts import Code

#: Seconds between two looks at the ring, and at an idle server's end.
_POLL_S, _IDLE_S = 5e-5, 0.05
#: Seconds that a client may take to receive.
_SEND_S = 5.0


@dataclass(eq=False)
class _Connection:
    """A client: its origin, the call it asked for, and whether that is in the journal."""

    socket: socket.socket
    inbox: messages.Inbox = field(default_factory=messages.Inbox)
    origin: int | None = None
    asked: bytes | None = None
    call: Call | None = None


class MapServer:
    """Answers the calls of clients at a socket of this machine.

    ``source``: the keys and values of the map as its owner knows them; a lost map is loaded from it at once.
    Without it clients get `LostMapError`.

    Behaviour
    ---------
    Calls enter one queue in the order of their arrival, and share the journal's writes. Nothing depends on
    their keys. Clients are not separated: each may read and write every key.
    """

    def __init__(
        self,
        session: Session,
        path: Path,
        *,
        source: Callable[[], Iterable[tuple[int, bytes]]] | None = None,
        timeout_s: float = 60,
    ) -> None:
        self._session, self._source, self._timeout_s = session, source, timeout_s
        self._connections: list[_Connection] = []
        path.unlink(missing_ok=True)  # of a server that was killed: the session's lock is ours
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        path.chmod(0o600)
        self._listener.listen()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)

    def serve(self, ends: Callable[[], bool]) -> None:
        """Answer clients until ``ends`` returns true; then close the socket, not the session."""
        since = time.monotonic()
        while not ends():
            waits = self._session.loaded and bool(self._session.state.calls)
            self._read(_POLL_S if waits else _IDLE_S)
            for connection in list(self._connections):
                self._accept(connection)
            progress = self._step()
            if progress or not any(connection.asked for connection in self._connections):
                since = time.monotonic()
            elif time.monotonic() - since > self._timeout_s:
                self._fail(NoAnswerError(f"no response for {self._timeout_s} s; the call is unfinished"))
            for connection in list(self._connections):
                if connection.call is not None and connection.call.missing == 0:
                    self._answer(connection, connection.call.outcomes)
        for connection in list(self._connections):
            self._drop(connection)
        self._selector.close()
        self._listener.close()

    def _read(self, timeout_s: float) -> None:
        """Accept clients, and read messages that are there."""
        for key, _ in self._selector.select(timeout_s):
            if key.data is None:
                accepted, _ = self._listener.accept()
                accepted.settimeout(_SEND_S)
                connection = _Connection(accepted)
                self._connections.append(connection)
                self._selector.register(accepted, selectors.EVENT_READ, connection)
                continue
            connection = key.data
            try:
                connection.inbox.add(connection.socket.recv(1 << 16))
            except OSError:
                self._drop(connection)

    def _accept(self, connection: _Connection) -> None:
        """Take a client's next message, and its call once the earlier one ended and the journal has room."""
        if connection.asked is None:
            connection.asked = connection.inbox.take()
        asked, session = connection.asked, self._session
        if asked is None or connection.call is not None:
            return
        try:
            if asked[:1] == b"H":
                self._send(connection, self._greet(connection, asked))
            elif connection.origin is None:
                raise InputError("first message", asked[:1], "a hello")
            elif asked[:1] == b"Q":
                session.forget(connection.origin)
                self._drop(connection)
            elif asked[:1] != b"C":
                raise InputError("message", asked[:1], "a call")
            else:
                _, number = messages.CALL.unpack_from(asked)
                busy = session.loaded and session.state.is_busy(connection.origin)
                if session.full or (busy and session.state.highest(connection.origin) != number):
                    return
                operations = self._operations(asked[messages.CALL.size :])
                found = session.request(connection.origin, operations, number=number)
                if isinstance(found, Call):
                    connection.call = found
                else:
                    self._answer(connection, found.outcomes)
        except LoomworkError as error:
            self._send(connection, messages.pack_error(error))
        except (struct.error, ValueError):  # no message of this format
            self._drop(connection)

    def _operations(self, content: bytes) -> Sequence[Operation]:
        config = self._session.config
        operations = unpack_operations(content, config.value_bytes)
        for code, key, value in operations:
            if code not in (Code.GET, Code.PUT, Code.DELETE) or key >> config.key_bits:
                raise InputError("operation", f"{code.name} of key {key}", "one of a client")
            if len(value) != config.value_bytes:
                raise InputError("bytes of a value", len(value), str(config.value_bytes))
        if not operations:
            raise InputError("operations", 0, "at least 1")
        return operations

    def _greet(self, connection: _Connection, asked: bytes) -> bytes:
        _, origin = messages.HELLO.unpack(asked)
        if origin in (OWN, LOADING):
            raise InputError("origin", origin, f"from 1 to {LOADING - 1}")
        for other in [other for other in self._connections if other.origin == origin]:
            self._drop(other)  # its client is back before the end of its connection is seen
        connection.origin = origin
        config, highest = self._session.config, self._session.state.highest(origin)
        return messages.WELCOME.pack(b"W", config.value_bytes, config.key_bits, highest)

    def _step(self) -> bool:
        """Let the session go on; a lost map is loaded again, and unfinished calls are executed on it."""
        try:
            if self._session.loaded:
                return self._session.step()
            if self._source is None:
                return False
        except LostMapError as error:
            if self._source is None:
                self._fail(error)
                return False
        Client(self._session, timeout_s=self._timeout_s).load(self._source())
        for connection in self._connections:
            connection.call = None  # found again in the new journal
        return True

    def _answer(self, connection: _Connection, outcomes: Iterable[Outcome | None]) -> None:
        self._send(connection, b"O" + pack_outcomes(outcome for outcome in outcomes if outcome is not None))

    def _fail(self, error: LoomworkError) -> None:
        """Send an error to all clients that wait. Their calls stay in the journal."""
        for connection in list(self._connections):
            if connection.asked is not None:
                self._send(connection, messages.pack_error(error))

    def _send(self, connection: _Connection, message: bytes) -> None:
        """Send the answer to the client's message."""
        connection.asked = connection.call = None
        try:
            messages.send(connection.socket, message)
        except OSError:
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            with contextlib.suppress(KeyError):
                self._selector.unregister(connection.socket)
            connection.socket.close()
