"""A lock on a file, held by one process until it ends."""

import fcntl
import os
from pathlib import Path
from typing import Self

from hw.oram.client.errors import JournalError


class FileLock:
    """A lock that the system frees when the process ends, by whatever signal.

    ``wait``: wait for another process; else it is refused with `JournalError`.
    """

    def __init__(self, path: Path, *, wait: bool = False) -> None:
        self._path, self._wait = path, wait
        self._descriptor = -1

    def __enter__(self) -> Self:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | (0 if self._wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            self.__exit__()
            raise JournalError(f"{self._path.parent} is in use by another process") from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
