"""CP-SAT in a process of its own, apart from HiGHS; `hw.scheduler.planner.solvers.packing` runs there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from select import select
from typing import Any

from hw.child import module_path, python_command
from hw.scheduler.planner.solvers import SolverError
from hw.scheduler.planner.watch import STOPPED, current

#: Module that the process runs.
_MODULE = "hw.scheduler.planner.solvers.packing"

#: Seconds between two checks whether an answer is still wanted.
_GLANCE_S = 0.2

#: Last characters of a crashed process's output that an error repeats.
_TAIL = 300


class Worker:
    """A process that packs, started at the first request and kept for further ones.

    A context manager: leaving it ends the process.  A process that crashed or timed out is not started again.
    Further requests then fail at once, without another wait.
    """

    def __init__(self, *, python: str = "") -> None:
        self._python = python
        self._process: subprocess.Popen[str] | None = None
        self._failed = ""

    def __enter__(self) -> Worker:
        self._said = tempfile.TemporaryFile()
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._said.close()

    def pack(self, payload: dict[str, Any], *, seconds: float) -> dict[str, Any]:
        """Return the answer of `hw.scheduler.planner.solvers.packing.pack`.

        ``seconds``: safety net of wall-clock time; limits that decide results belong in the payload.

        Raises `SolverError` when OR-tools is missing, the process ends, or the time is up.
        """
        if self._failed:
            raise SolverError(self._failed)
        try:
            return self._exchange(payload, seconds)
        except BaseException as error:
            # An interrupted exchange leaves the process in an unknown state.
            self._failed = str(error) or "interrupted"
            raise

    def _exchange(self, payload: dict[str, Any], seconds: float) -> dict[str, Any]:
        if self._process is None:
            try:
                self._process = subprocess.Popen(
                    python_command(["-m", _MODULE], python=self._python),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._said,
                    text=True,
                    env=os.environ | {"PYTHONPATH": module_path()},
                    start_new_session=True,  # the planner handles interrupts
                )
            except OSError as error:
                raise SolverError(f"solver process does not start: {error}") from None
        process, watch = self._process, current()
        assert process.stdin is not None
        assert process.stdout is not None
        late, end, answer = False, time.monotonic() + seconds, ""
        with suppress(OSError):
            print(json.dumps(payload), file=process.stdin, flush=True)
            while not select([process.stdout], [], [], _GLANCE_S)[0]:
                late = time.monotonic() > end
                if late or watch.stopped:
                    process.kill()
            answer = process.stdout.readline()
        if watch.stopped and not answer:
            raise SolverError(STOPPED)
        if answer:
            found: dict[str, Any] = json.loads(answer)
            return found
        if late:
            raise SolverError(f"the solver process did not answer within {seconds:g} s")
        code = process.wait()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        self._said.seek(0)
        tail = " ".join(self._said.read().decode(errors="replace").split())[-_TAIL:]
        raise SolverError(f"the solver process {how}" + (f": {tail}" if tail else ""))
