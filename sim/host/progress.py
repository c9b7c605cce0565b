"""Progress of slow work: a live line on a terminal, a line every ten seconds in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, TextIO

from sim.host.plain import plain

#: Seconds between two lines where there is no terminal.
_LOG_INTERVAL_SECONDS = 10.0


class ProgressLine:
    """One thing being done (``"Building the simulator"``), shown until the ``with`` block ends.

    On a terminal: a spinner with the time passed, gone at the end.  Elsewhere nothing in the first seconds,
    then a line whenever ten more have passed, so that a log shows life without filling up.
    """

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self._title = plain(title)
        self._stream = stream or sys.stderr
        self._began = self._said = time.monotonic()
        self._status: Any = None

    def __enter__(self) -> ProgressLine:
        if self._stream.isatty():
            # rich takes a fifth of a second to import: only where it shows.
            from rich.console import Console

            self._status = Console(file=self._stream).status(self._title)
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    @property
    def seconds(self) -> float:
        """Time since the activity began."""
        return time.monotonic() - self._began

    def update(self, detail: str) -> None:
        """Show ``detail`` beside the title; cheap enough for several calls a second."""
        line = f"{self._title}: {detail} ({self.seconds:.0f} s)"
        if self._status is not None:
            self._status.update(line)
        elif time.monotonic() - self._said >= _LOG_INTERVAL_SECONDS:
            self._said = time.monotonic()
            print(line, file=self._stream, flush=True)
