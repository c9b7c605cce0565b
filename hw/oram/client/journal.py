"""The journal of a session: its state, and the file that it follows from after a crash."""

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from hw.oram.client import events
from hw.oram.client.errors import JournalError
from hw.oram.client.frames import FrameFile
from hw.oram.client.operation import Call
from hw.oram.client.state import Header, SessionState


class Journal:
    """A state, changed by events that are written first.

    Why
    ---
    An event that was interrupted may be in the file or not. The journal is refused from then on: opened
    again, its file decides. A child that a process forks is refused too, as both would take the same numbers.
    """

    def __init__(self, file: FrameFile, bodies: list[bytes]) -> None:
        self._file = file
        self._process = os.getpid()
        self._broken = False
        first, *others = bodies or [b""]
        self.state = SessionState(events.read_header(first))
        for event in others:
            events.apply(self.state, event)

    @classmethod
    def create(cls, path: Path, header: Header, calls: Iterable[Call]) -> "Journal":
        """Replace the file by a new journal with calls that are not sent."""
        return cls._write(path, [events.begin(header), *map(events.requested, calls)])

    @classmethod
    def open(cls, path: Path) -> "Journal":
        """Open a journal after the end of a process.

        Raises `JournalError` for a damaged file.
        """
        return cls(*FrameFile.open(path))

    @property
    def size_bytes(self) -> int:
        """Bytes of the file."""
        return self._file.size_bytes

    def record(self, *recorded: bytes, sync: bool) -> None:
        """Write events, and change the state by them; with ``sync`` they are on the disk before.

        Raises `JournalError` in a forked process, or after a write that was interrupted.
        """
        self.check()
        self._broken = True
        self._file.append(recorded, sync=sync)
        for event in recorded:
            events.apply(self.state, event)
        self._broken = False

    def check(self) -> None:
        """Raise `JournalError` if this process may not write."""
        if self._process != os.getpid():
            raise JournalError("the session belongs to the process that opened it, not to its child")
        if self._broken:
            raise JournalError("a write was interrupted: open the session again")

    def compacted(self) -> "Journal":
        """Return the journal without its past. No command may be unanswered."""
        state = self.state
        assert not state.sent
        assert not state.unsent
        kept = [events.begin(replace(state.header, first=state.next))]
        kept += [events.loaded()] * state.loaded
        kept += [events.remembered(origin, finished) for origin, finished in state.last.items()]
        kept += map(events.requested, state.calls)
        self.retire()
        return self._write(self._file.path, kept)

    def retire(self) -> None:
        """Write no more: another journal takes the place of this one."""
        self.check()
        self._broken = True
        self._file.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @classmethod
    def _write(cls, path: Path, kept: list[bytes]) -> "Journal":
        return cls(FrameFile.create(path, kept), kept)
