"""Progress of slow work: a live line on a terminal; in a log a line in any five seconds."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, TextIO

from sim.host.plain import plain

#: Seconds until the first line where there is no terminal, and from one line to the next: together five, so
#: that a log shows life from one activity to the next, too.
_FIRST_SECONDS, _NEXT_SECONDS = 2.0, 3.0
#: Seconds without a word of a command in a log, after Python's own start.
SILENT_SECONDS = 4.0
#: Seconds between two looks at the clock on a terminal.
_GLANCE_SECONDS = 0.5
#: The innermost activity, which alone is shown.
_CURRENT: ContextVar[ProgressLine | None] = ContextVar("current", default=None)


class ProgressLine:
    """One thing being done (``"Building the simulator"``), shown until the ``with`` block ends.

    On a terminal: a spinner with the time passed, gone at the end.  Elsewhere nothing in the first seconds,
    then a line again and again.  A thread writes it: work that tells nothing is not silent.  An activity
    within another is shown in its place.

    ``first_seconds``: until the first line in a log, where it is not `_FIRST_SECONDS`.
    """

    def __init__(
        self, title: str, stream: TextIO | None = None, *, first_seconds: float | None = None
    ) -> None:
        self._title = plain(title)
        self._first_seconds = first_seconds
        self._detail = ""
        self._stream = stream or sys.stderr
        self._began = time.monotonic()
        self._status: Any = None
        self._ended, self._covered = threading.Event(), threading.Event()
        self._outer: ProgressLine | None = None
        self._token: Token[ProgressLine | None] | None = None
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> ProgressLine:
        self._outer = _CURRENT.get()
        self._token = _CURRENT.set(self)
        if self._outer is not None:
            self._outer._cover()
        self._uncover()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._cover()
        if self._token is not None:
            _CURRENT.reset(self._token)
        if self._outer is not None:
            self._outer._uncover()

    @property
    def seconds(self) -> float:
        """Time since the activity began."""
        return time.monotonic() - self._began

    def update(self, detail: str) -> None:
        """Show ``detail`` beside the title; cheap enough for several calls a second."""
        self._detail = detail
        self._show()

    @property
    def _line(self) -> str:
        return f"{self._title}{f': {self._detail}' if self._detail else ''} ({self.seconds:.0f} s)"

    def _show(self) -> None:
        status = self._status
        if status is not None:
            status.update(self._line)

    def _cover(self) -> None:
        """Show nothing until `_uncover`."""
        self._covered.set()
        status, self._status = self._status, None
        if status is not None:
            status.stop()

    def _uncover(self) -> None:
        self._covered.clear()
        if self._stream.isatty():
            # rich takes a fifth of a second to import: only where it shows.
            from rich.console import Console

            self._status = Console(file=self._stream).status(self._line)
            self._status.start()

    def _beat(self) -> None:
        if self._stream.isatty():
            while not self._ended.wait(_GLANCE_SECONDS):
                self._show()
            return
        wait = _FIRST_SECONDS if self._first_seconds is None else self._first_seconds
        while not self._ended.wait(wait):
            wait = _NEXT_SECONDS
            if not self._covered.is_set():
                with contextlib.suppress(OSError, ValueError):  # nobody reads any more
                    print(self._line, file=self._stream, flush=True)
