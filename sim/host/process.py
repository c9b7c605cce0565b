"""Running a program: when the caller is interrupted or terminated, the program ends too."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

#: Between asking a program to end and making it.
_GRACE_SECONDS = 1.0


class Terminated(BaseException):
    """Raised on SIGTERM, so that unfinished work is undone before the program ends."""


@contextlib.contextmanager
def undone_when_terminated() -> Iterator[None]:
    """Have SIGTERM raise `Terminated` in the main thread during the ``with`` block.

    Outside of such blocks SIGTERM ends the program at once: compiled searches of the planner would see an
    exception only at their end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def output_of(*command: str, seconds: float = 60) -> str | None:
    """Return a command's output, or None when it is missing, fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def supervise(
    command: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    output: IO[Any] | int | None,
    tick: Callable[[], None] = lambda: None,
    interval_seconds: float = 0.1,
) -> int:
    """Run ``command`` with its output and errors to ``output``; call ``tick`` meanwhile; return its exit
    status.

    The program gets a process group of its own.  Ctrl-C, SIGTERM or an error in ``tick`` also end the whole
    group, so that make does not go on compiling.
    """
    with undone_when_terminated():
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
