"""A client of a map that a server of this machine owns."""

import contextlib
import secrets
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from hw.oram.client import messages
from hw.oram.client.errors import NoAnswerError
from hw.oram.client.events import pack_operations, unpack_outcomes
from hw.oram.client.methods import MapMethods
from hw.oram.client.operation import Operation, Outcome

#: Seconds between two attempts to reach a server.
_RETRY_S = 0.02


class RemoteClient(MapMethods):
    """A map behind a `hw.oram.client.server.MapServer`.

    ``origin``: a number of the client's own, so that it can repeat a call after its own end; 1 to 2^64 - 2.
    Without one a random number is drawn, and forgotten by `close`. ``timeout_s``: seconds that a server may
    be away.

    Behaviour
    ---------
    A call that a server's end interrupts is repeated when the server is back. It is executed once.
    """

    def __init__(self, path: Path, *, origin: int | None = None, timeout_s: float = 60) -> None:
        self._path, self._timeout_s = path, timeout_s
        self._random = origin is None
        self._origin = 1 + secrets.randbelow((1 << 64) - 2) if origin is None else origin
        self._socket: socket.socket | None = None
        #: Number of the last call, or 0.
        self.last_number = 0
        try:
            self._until_answered(None)
        except BaseException:
            self._disconnect()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the server; it forgets a random origin."""
        if self._socket is not None and self._random:
            with contextlib.suppress(OSError):
                messages.send(self._socket, b"Q")
        self._disconnect()

    def execute(self, operations: Sequence[Operation], number: int | None = None) -> Sequence[Outcome]:
        """See `MapMethods`.

        Raises the errors of `hw.oram.client.client.Client.execute`, as the server sends them.
        """
        self.last_number = self.last_number + 1 if number is None else number
        call = messages.CALL.pack(b"C", self.last_number) + pack_operations(operations)
        return unpack_outcomes(self._until_answered(call)[1:], self.value_bytes)

    def _until_answered(self, message: bytes | None) -> bytes:
        """Return the answer to a message, or to the hello; reach the server again if it ended."""
        until = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._exchange(message)
            except OSError as error:
                self._disconnect()
                if time.monotonic() > until:
                    raise NoAnswerError(f"no server at {self._path} for {self._timeout_s} s") from error
                time.sleep(_RETRY_S)

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _exchange(self, message: bytes | None) -> bytes:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(str(self._path))
            welcome = self._ask(messages.HELLO.pack(b"H", self._origin))
            _, self.value_bytes, self.key_bits, number = messages.WELCOME.unpack(welcome)
            self.last_number = max(self.last_number, number)
            if message is None:
                return welcome
        assert message is not None
        return self._ask(message)

    def _ask(self, message: bytes) -> bytes:
        assert self._socket is not None
        messages.send(self._socket, message)
        answer = messages.receive(self._socket)
        if answer[:1] == b"E":
            raise messages.unpack_error(answer)
        return answer
