"""Workers of a sweep: processes of this machine, each with a limit of memory."""

import contextlib
import os
import pickle
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hw.child import module_path, python_command
from sim.host.tree import Process, kill, tree
from sim.sweep.points import Evaluation
from sim.sweep.task import Task

#: Seconds between two checks of the workers' memory.
_GLANCE_SECONDS = 0.5
_GRACE_SECONDS = 2.0


@dataclass(frozen=True)
class Answered:
    """Finished tasks: their evaluations, or the reason that their worker died."""

    tasks: Sequence[Task]
    outcomes: Sequence[Evaluation] = ()
    death: str = ""
    #: Whether a second attempt would die as well.
    final: bool = False


class Executor(Protocol):
    """Evaluates tasks, several at a time."""

    slots: int  #: Tasks evaluated at a time.

    def submit(self, tasks: Sequence[Task]) -> None:
        """Order tasks, evaluated one after the other."""

    def answered(self, timeout_seconds: float) -> list[Answered]:
        """Wait for finished tasks, at most so long."""

    def close(self) -> None:
        """End all work."""


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    tasks: Sequence[Task] = ()
    members: list[Process] = field(default_factory=list)


class LocalExecutor:
    """Processes of this machine.

    ``memory_bytes``: most memory of a worker and its children; 0 for any.
    ``directory``: for the files of failed simulations.
    """

    def __init__(self, slots: int, *, memory_bytes: int, directory: Path) -> None:
        self.slots = slots
        self._memory_bytes = memory_bytes
        self._directory = directory
        self._idle: list[_Worker] = []
        self._busy: dict[int, _Worker] = {}
        self._selector = selectors.DefaultSelector()
        self._glanced = 0.0

    def submit(self, tasks: Sequence[Task]) -> None:
        """See `Executor.submit`."""
        worker = self._idle.pop() if self._idle else self._started()
        worker.tasks = tasks
        assert worker.process.stdin is not None
        assert worker.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # its output shows its end
            pickle.dump((tasks, str(self._directory)), worker.process.stdin)
            worker.process.stdin.flush()
        handle = worker.process.stdout.fileno()
        self._busy[handle] = worker
        self._selector.register(handle, selectors.EVENT_READ)

    def answered(self, timeout_seconds: float) -> list[Answered]:
        """See `Executor.answered`."""
        found = self._over_memory()
        ends = time.monotonic() + timeout_seconds
        while not found and self._busy and (left := ends - time.monotonic()) > 0:
            for key, _ in self._selector.select(min(left, _GLANCE_SECONDS)):
                found.append(self._collected(key.fd))
            if not found:
                found = self._over_memory()
        return found

    def close(self) -> None:
        """See `Executor.close`."""
        workers = [*self._busy.values(), *self._idle]
        members = [member for worker in workers for member in tree(worker.process.pid)]
        for worker in workers:
            worker.process.send_signal(signal.SIGTERM)
        for worker in workers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(_GRACE_SECONDS)
        kill(members)
        for worker in workers:
            self._dropped(worker)
        self._selector.close()

    def _started(self) -> _Worker:
        # A session of its own: Ctrl-C reaches only the parent.
        return _Worker(
            subprocess.Popen(
                python_command(["-m", "sim.sweep.worker"]),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=os.environ | {"PYTHONPATH": module_path()},
            )
        )

    def _collected(self, handle: int) -> Answered:
        self._selector.unregister(handle)
        worker = self._busy.pop(handle)
        assert worker.process.stdout is not None
        try:
            outcomes = pickle.load(worker.process.stdout)
        except (EOFError, pickle.UnpicklingError):
            kill(worker.members)
            status = self._dropped(worker)
            return Answered(worker.tasks, death=f"its process ended with status {status}")
        self._idle.append(worker)
        return Answered(worker.tasks, outcomes)

    def _over_memory(self) -> list[Answered]:
        """End workers above the limit of memory."""
        if time.monotonic() - self._glanced < _GLANCE_SECONDS:
            return []
        self._glanced = time.monotonic()
        found = []
        for handle, worker in list(self._busy.items()):
            worker.members = tree(worker.process.pid)
            taken = sum(member.resident_bytes for member in worker.members)
            if self._memory_bytes and taken > self._memory_bytes:
                self._selector.unregister(handle)
                del self._busy[handle]
                kill(worker.members)
                self._dropped(worker)
                death = f"it took more than {self._memory_bytes / 2**30:.1f} GiB of memory"
                found.append(Answered(worker.tasks, death=death, final=True))
        return found

    def _dropped(self, worker: _Worker) -> int:
        status = worker.process.wait()
        for stream in (worker.process.stdin, worker.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        return status
