"""The tree of a process: its members, their memory, and an end to all."""

import contextlib
import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Process:
    """A process of this machine."""

    pid: int
    began: str  #: In the clock's ticks: another process of the same number began at another time.
    parent: int
    resident_bytes: int


def available_bytes() -> int:
    """Return the memory a program could get without swapping; Linux says so, elsewhere all there is."""
    try:
        found = re.search(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
    except OSError:
        found = None
    return 1024 * int(found[1]) if found else _PAGE_BYTES * os.sysconf("SC_PHYS_PAGES")


def process(pid: int) -> Process | None:
    """Return a running process; None for an ended one."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    if fields[0] == "Z":
        return None
    return Process(pid, fields[19], int(fields[1]), int(fields[21]) * _PAGE_BYTES)


def tree(pid: int) -> list[Process]:
    """Return a process and all below it; none where it has ended, or the machine does not say."""
    if not Path("/proc/self/stat").exists():
        return []
    every = [process(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdigit()]
    below: dict[int, list[Process]] = {}
    for found in every:
        if found is not None:
            below.setdefault(found.parent, []).append(found)
    first = process(pid)
    members = [first] if first is not None else []
    for member in members:
        members += below.get(member.pid, [])
    return members


def kill(members: list[Process]) -> None:
    """Kill those of ``members`` that still run."""
    for member in members:
        now = process(member.pid)
        if now is not None and now.began == member.began:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(member.pid, signal.SIGKILL)
