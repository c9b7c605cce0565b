"""Who answers the questions of a sweep: a Ray cluster."""

import contextlib
from collections.abc import Sequence
from typing import Any

from hw.errors import InputError
from sim.sweep.executor import Answered
from sim.sweep.points import Evaluation
from sim.sweep.task import Task, evaluate

#: Seconds after which a cluster that does not answer is given up.
_CONNECT_SECONDS = 20


class RayExecutor:
    """The processors of a Ray cluster, whose machines have the same Loomwork.

    ``address``: of the cluster, ``HOST:PORT``; empty for one of this machine, made for the purpose.
    ``slots``: questions at a time; 0 for as many as the cluster has processors. ``memory_bytes``: memory that
    Ray reserves for each; 0 for none.

    Raises `InputError` when there is no cluster at the address.
    """

    def __init__(self, address: str, *, slots: int, memory_bytes: int) -> None:
        import ray

        self._ray = ray
        try:
            _check_reachable(address)
            ray.init(
                address=address or "local",
                log_to_driver=False,
                logging_level="error",
                configure_logging=False,
            )
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError("--address", address, f"that of a Ray cluster that runs ({why})") from error
        self.slots = slots or max(1, int(ray.cluster_resources().get("CPU", 1)))
        options = {"memory": memory_bytes} if memory_bytes else {}
        # Who asks retries, and counts how often.
        self._evaluate = ray.remote(num_cpus=1, max_retries=0, **options)(_evaluate_all)
        self._tasks: dict[Any, Sequence[Task]] = {}

    def submit(self, tasks: Sequence[Task]) -> None:
        """See `sim.sweep.executor.Executor.submit`."""
        self._tasks[self._evaluate.remote(tasks)] = tasks

    def answered(self, timeout_seconds: float) -> list[Answered]:
        """See `sim.sweep.executor.Executor.answered`."""
        done, _ = self._ray.wait(list(self._tasks), num_returns=1, timeout=timeout_seconds)
        found = []
        for reference in done:
            tasks = self._tasks.pop(reference)
            try:
                found.append(Answered(tasks, self._ray.get(reference)))
            except self._ray.exceptions.RayError as error:
                why = type(error).__name__
                found.append(Answered(tasks, death=f"its process on the cluster ended ({why})"))
        return found

    def close(self) -> None:
        """See `sim.sweep.executor.Executor.close`."""
        for reference in self._tasks:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._ray.cancel(reference, force=True)
        self._ray.shutdown()


def _evaluate_all(tasks: Sequence[Task]) -> list[Evaluation]:
    return [evaluate(task) for task in tasks]


def _check_reachable(address: str) -> None:
    """Knock first: Ray itself tries for minutes, and then ends the process."""
    import socket

    host, _, port = address.rpartition(":")
    if not address:
        return
    if not host or not port.isdigit():
        raise ValueError("it is written HOST:PORT")
    socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
