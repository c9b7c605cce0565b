"""Messages between a server and its clients: a length of 4 bytes, a kind, fixed fields.

| kind | from | fields |
|---|---|---|
| H, hello | client | origin 8 |
| W, welcome | server | value bytes 2, key bits 2, highest number of the origin 8 |
| C, call | client | number 8, operations as in `hw.oram.client.events` |
| O, outcomes | server | outcomes, idem |
| E, error | server | name of its class, a zero, its text |
| Q, quit | client | none: the origin is forgotten |
"""

import socket
import struct

from hw.errors import LoomworkError
from hw.oram.client import errors

_LENGTH = struct.Struct("<I")
#: Most bytes of a message: a call of 2^16 operations with values of 512 bytes, and its fields.
_MOST_BYTES = (1 << 16) * (9 + 512) + 64
HELLO = struct.Struct("<cQ")
WELCOME = struct.Struct("<cHHQ")
CALL = struct.Struct("<cQ")


def send(connection: socket.socket, message: bytes) -> None:
    """Send a message."""
    connection.sendall(_LENGTH.pack(len(message)) + message)


def receive(connection: socket.socket) -> bytes:
    """Wait for a message.

    Raises `ConnectionError` at the end of the connection.
    """
    inbox = Inbox()
    while (message := inbox.take()) is None:
        inbox.add(connection.recv(min(inbox.missing, 1 << 16)))
    return message


class Inbox:
    """Bytes received, taken as messages."""

    def __init__(self) -> None:
        self._content = bytearray()

    @property
    def missing(self) -> int:
        """Bytes until the end of the next message, or of its length."""
        return self._end() - len(self._content)

    def add(self, content: bytes) -> None:
        """Add bytes.

        Raises `ConnectionError` for none, which is the end, and for a message that is too long.
        """
        self._content += content
        if not content or self._end() > _MOST_BYTES:
            raise ConnectionError("the connection ended")

    def take(self) -> bytes | None:
        """Return the next message, or None while it is not whole."""
        end = self._end()
        if len(self._content) < max(end, _LENGTH.size):
            return None
        message = bytes(self._content[_LENGTH.size : end])
        del self._content[:end]
        return message

    def _end(self) -> int:
        if len(self._content) < _LENGTH.size:
            return _LENGTH.size
        length: int = _LENGTH.unpack_from(self._content)[0]
        return _LENGTH.size + length


def pack_error(error: LoomworkError) -> bytes:
    """Return an error as a message."""
    return b"E" + type(error).__name__.encode() + b"\0" + str(error).encode()


def unpack_error(message: bytes) -> errors.SessionError:
    """Return the error of a message: of its class if that is one of the client's, else a `SessionError`."""
    name, _, text = message[1:].decode().partition("\0")
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, errors.SessionError):
        return kind(text)
    return errors.SessionError(text)
