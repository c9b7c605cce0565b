"""Calls into a process of their own: where OR-tools lives, apart from the planner's other solvers.

A worker that crashes, hangs or cannot load its library costs one call, which ends with a `SolverError`;
callers fall back on another way and say so.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from hw.errors import InputError
from hw.scheduler.planner.solvers import SolverError
from hw.scheduler.planner.solvers.worker import frame_length, frame_message, write_frame

#: Seconds a worker gets to end by itself once its input is closed.
_FAREWELL_S = 2.0

#: Bytes taken from a pipe at once.
_READ_BYTES = 1 << 16

#: Processes in a row that may crash before no other one is started.
CRASHES = 3

#: Characters of a crashed worker's last words that an error repeats.
_TAIL = 300


class Worker:
    """A process that calls functions, started at the first call and kept for further ones.

    A context manager: leaving it ends the process.  After a call that failed the next one starts a new
    process; but after `CRASHES` in a row, or one that did not even answer in time, all calls fail at once, so
    that whoever asks often does not wait as often.

    Parameters
    ----------
    python : str
        Interpreter of the process.
    """

    def __init__(self, *, python: str = sys.executable) -> None:
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None
        self._last_words = b""
        self._crashes = 0
        self._given_up = ""

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def call(self, target: str, payload: Any, *, seconds: float) -> Any:
        """Call ``module:function`` with one argument and give what it returns.

        Parameters
        ----------
        target : str
        payload : plain data
            What JSON can say; so is the result.
        seconds : float
            Safety net of wall-clock time; limits that decide results belong into the payload.

        Raises
        ------
        SolverError
            When the function raises, its module or a library it needs is missing, the process ends, or the
            time is up.
        """
        module, colon, function = target.partition(":")
        if not (module and colon and function):
            raise InputError("target of a call", target, "module:function")
        if not seconds > 0:
            raise InputError("seconds of a call", seconds, "above 0")
        if self._given_up:
            raise SolverError(self._given_up)
        try:
            process = self._running()
            answer = self._exchange(process, {"target": target, "payload": payload}, seconds, target)
        except BaseException as error:
            # Half an exchange leaves the process in an unknown state, whatever interrupted it.
            self._kill()
            if isinstance(error, SolverError):
                self._crashes += 1
                if self._crashes == CRASHES:
                    self._given_up = str(error)
            raise
        self._crashes = 0
        if "error" in answer:
            raise SolverError(f"{target} failed: {answer['error']}")
        return answer["result"]

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_FAREWELL_S)
        self._kill()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._kill()
        root = str(Path(__file__).resolve().parents[4])
        path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
        self._last_words = b""
        try:
            self._process = subprocess.Popen(
                [self._python, "-m", "hw.scheduler.planner.solvers.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # an interrupt is the planner's to handle
            )
        except OSError as error:
            raise SolverError(f"solver process does not start: {error}") from None
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], request: Any, seconds: float, target: str) -> Any:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        deadline = time.monotonic() + seconds
        try:
            write_frame(process.stdin, request)
        except BrokenPipeError:
            raise SolverError(self._obituary(target)) from None
        received = bytearray()
        while (length := frame_length(received)) is None or len(received) < length:
            left = deadline - time.monotonic()
            ready = select.select([process.stdout, process.stderr], [], [], max(left, 0))[0]
            if not ready:
                self._given_up = f"{target} did not answer within {seconds:g} s"
                raise SolverError(self._given_up)
            if process.stderr in ready:
                words = os.read(process.stderr.fileno(), _READ_BYTES)
                self._last_words = (self._last_words + words)[-_READ_BYTES:]
            if process.stdout in ready:
                part = os.read(process.stdout.fileno(), _READ_BYTES)
                if not part:
                    raise SolverError(self._obituary(target))
                received += part
        return frame_message(received)

    def _obituary(self, target: str) -> str:
        """Say how the process ended."""
        assert self._process is not None
        status = self._process.wait()
        how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        assert self._process.stderr is not None
        words = self._last_words + self._process.stderr.read()
        tail = " ".join(words.decode(errors="replace").split())[-_TAIL:]
        return f"{target}: the solver process {how}" + (f": {tail}" if tail else "")

    def _kill(self) -> None:
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            self._process = None


def call(target: str, payload: Any, *, seconds: float, worker: Worker | None = None) -> Any:
    """Call ``module:function`` in a worker: the one given, or one for this call; see `Worker.call`."""
    if worker is not None:
        return worker.call(target, payload, seconds=seconds)
    with Worker() as own:
        return own.call(target, payload, seconds=seconds)
