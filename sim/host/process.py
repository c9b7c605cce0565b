"""Running a program: if the caller is interrupted, nothing that the program started keeps running."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

_GRACE_SECONDS = 2.0


def supervise(
    command: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    output: IO[Any] | int | None,
    tick: Callable[[], None] = lambda: None,
    interval_seconds: float = 0.1,
) -> int:
    """Run ``command``, its output and errors to ``output``, and give its exit status; call ``tick``
    meanwhile.

    The program gets a process group of its own.  Whatever ends this function early (Ctrl-C, an error in
    ``tick``) also ends the whole group: make does not go on compiling behind the user's back.
    """
    process = subprocess.Popen(
        list(command),
        cwd=cwd,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        while True:
            try:
                return process.wait(timeout=interval_seconds)
            except subprocess.TimeoutExpired:
                tick()
    except BaseException:
        _end(process)
        raise


def _end(process: subprocess.Popen[Any]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(timeout=_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    process.wait()
