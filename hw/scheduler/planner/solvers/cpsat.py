"""Calls into a process of their own: where OR-tools lives, apart from the planner's other solvers.

A worker that crashes, hangs or cannot load its library costs one call, which ends with a `SolverError`;
callers fall back on another way and say so.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from hw.errors import InputError
from hw.scheduler.planner.solvers import SolverError

#: Seconds a worker gets to end by itself once its input is closed.
_FAREWELL_S = 2.0

#: Characters of a crashed worker's last words that an error repeats.
_TAIL = 300

#: What the process runs. `multiprocessing` would import the planner's main module there, and HiGHS with it.
_PROGRAM = "import sys; from hw.scheduler.planner.solvers.cpsat import serve; serve(int(sys.argv[1]))"


def serve(handle: int) -> None:
    """Answer requests on a connection until it ends; what a called function raises is an answer, too."""
    requests = Connection(handle)
    with contextlib.suppress(EOFError):
        while True:
            target, payload = requests.recv()
            module, _, function = target.partition(":")
            try:
                answer = {"result": getattr(importlib.import_module(module), function)(payload)}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"}
            requests.send(answer)


class Worker:
    """A process that calls functions, started at the first call and kept for further ones.

    A context manager: leaving it ends the process.  One that crashed or did not answer in time is not started
    again: all further calls fail at once, so that whoever asks often does not wait as often.

    Parameters
    ----------
    python : str
        Interpreter of the process.
    """

    def __init__(self, *, python: str = sys.executable) -> None:
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: Connection | None = None
        self._said = -1  # file of what the process prints
        self._failed = ""

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None and self._requests is not None:
            self._requests.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=_FAREWELL_S)
        self._kill()

    def call(self, target: str, payload: Any, *, seconds: float) -> Any:
        """Call ``module:function`` with one argument and give what it returns.

        Parameters
        ----------
        target : str
        payload : plain data
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
        if self._failed:
            raise SolverError(self._failed)
        try:
            answer = self._exchange(target, payload, seconds)
        except BaseException as error:
            # Half an exchange leaves the process in an unknown state, whatever interrupted it.
            self._failed = str(error) or "interrupted"
            self._kill()
            raise
        if "error" in answer:
            raise SolverError(f"{target} failed: {answer['error']}")
        return answer["result"]

    def _exchange(self, target: str, payload: Any, seconds: float) -> Any:
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._requests is not None
        try:
            self._requests.send((target, payload))
            if self._requests.poll(seconds):
                return self._requests.recv()
        except (EOFError, OSError):
            code = self._process.wait()
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
            words = os.pread(self._said, os.fstat(self._said).st_size, 0).decode(errors="replace")
            tail = " ".join(words.split())[-_TAIL:]
            raise SolverError(f"{target}: the solver process {how}" + (f": {tail}" if tail else "")) from None
        raise SolverError(f"{target} did not answer within {seconds:g} s")

    def _start(self) -> None:
        path = [str(Path(__file__).resolve().parents[4]), os.environ.get("PYTHONPATH", "")]
        self._said = os.memfd_create("solver")
        self._requests, theirs = Pipe()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [self._python, "-c", _PROGRAM, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=self._said,
                    stderr=self._said,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,  # an interrupt is the planner's to handle
                )
            except OSError as error:
                raise SolverError(f"solver process does not start: {error}") from None

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._requests is not None:
            self._requests.close()
        if self._said >= 0:
            os.close(self._said)
        self._process, self._requests, self._said = None, None, -1


def call(target: str, payload: Any, *, seconds: float, worker: Worker | None = None) -> Any:
    """Call ``module:function`` in a worker: the one given, or one for this call; see `Worker.call`."""
    if worker is not None:
        return worker.call(target, payload, seconds=seconds)
    with Worker() as own:
        return own.call(target, payload, seconds=seconds)
