"""The far side of `hw.scheduler.planner.solvers.cpsat`: a process that calls functions for another one.

Requests come in on standard input, answers leave on standard output, each a frame: eight bytes of length,
then JSON.  What a library prints goes to standard error, so that it cannot be taken for an answer.
"""

from __future__ import annotations

import importlib
import json
import os
import struct
import sys
from typing import IO, Any

_LENGTH = struct.Struct(">Q")


def write_frame(stream: IO[bytes], message: Any) -> None:
    """Send one message."""
    data = json.dumps(message).encode()
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _read_frame(stream: IO[bytes]) -> Any:
    """Receive one message; None at the end of the stream."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    return json.loads(stream.read(length))


def frame_length(head: bytes | bytearray) -> int | None:
    """Give the whole length of the frame that begins so, or None when its head is incomplete."""
    if len(head) < _LENGTH.size:
        return None
    return _LENGTH.size + int(_LENGTH.unpack(head[: _LENGTH.size])[0])


def frame_message(frame: bytes | bytearray) -> Any:
    """Decode a whole frame."""
    return json.loads(frame[_LENGTH.size :])


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """Call what the request names; what it raises is an answer, too."""
    module, _, function = request["target"].partition(":")
    try:
        return {"result": getattr(importlib.import_module(module), function)(request["payload"])}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"}


def main() -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while (request := _read_frame(sys.stdin.buffer)) is not None:
        write_frame(answers, _answer(request))


if __name__ == "__main__":
    main()
