"""Workers: answers, deaths, memory."""

import os
import signal
import sys

import pytest

from sim.host.tree import tree
from sim.sweep.executor import LocalExecutor
from sim.sweep.input.spec_file import read_spec
from sim.sweep.spec import WorkloadSpec
from sim.sweep.sweep import run_sweep
from sim.sweep.task import Task, legal_config
from tests.support.sweep.specs import SMALL, Inline, essence, plain, write


def tasks(count):
    config = legal_config("attention", "ultra96v2", {"rows": 2})
    given = {"engine": "attention", "board": "ultra96v2", "config": config, "workload": "small"}
    asked = WorkloadSpec(**SMALL)
    return [Task(fidelity="prediction", asked=asked, seed=seed, **given) for seed in range(count)]


@pytest.fixture(name="executor")
def _executor(tmp_path):
    executor = LocalExecutor(2, memory_bytes=0, directory=tmp_path)
    yield executor
    executor.close()
    below = [member.pid for member in tree(os.getpid())]
    assert below == [os.getpid()] or "xdist" in sys.modules


def all_answered(executor, count):
    found = []
    while len(found) < count:
        found += executor.answered(1.0)
    return found


def test_tasks_are_answered(executor):
    one, two = tasks(2)
    executor.submit([one, two])
    executor.submit([two])
    found = all_answered(executor, 2)
    assert sorted(len(answered.outcomes) for answered in found) == [1, 2]
    cycles = {outcome.figures["cycles"] for answered in found for outcome in answered.outcomes}
    assert len(cycles) == 1


def test_a_worker_that_dies_is_told_of_and_replaced(executor):
    one, two = tasks(2)
    executor.submit([one, two])
    (worker,) = executor._busy.values()
    os.kill(worker.process.pid, signal.SIGKILL)
    (answered,) = all_answered(executor, 1)
    assert answered.death == "its process ended with status -9"
    assert not answered.final
    assert list(answered.tasks) == [one, two]
    executor.submit([one])
    (answered,) = all_answered(executor, 1)
    assert answered.outcomes[0].figures


def test_a_worker_that_takes_too_much_is_ended(tmp_path):
    executor = LocalExecutor(1, memory_bytes=1 << 20, directory=tmp_path)
    executor.submit(tasks(2000))  # more than it answers before anyone looks
    (answered,) = all_answered(executor, 1)
    assert answered.final
    assert "more than 0.0 GiB of memory" in answered.death
    executor.close()


def test_what_dies_again_and_again_fails_and_the_others_do_not(tmp_path):
    """The worker of a design dies whenever it is asked for."""
    spec = read_spec(write(tmp_path / "a.yaml", plain()))

    class Deadly(Inline):
        def submit(self, asked):
            super().submit(asked)
            if any(task.config["rows"] == 3 for task in asked):
                last = self._found.pop()
                self._found.append(type(last)(last.tasks, death="its process ended with status -9"))

    results = run_sweep(spec, tmp_path / "a.db", Deadly())
    found = {result.point.parameters["attention.rows"]: result.failure for result in results.points[::4]}
    assert found == {1: "", 2: "", 3: "small: its process ended with status -9"}
    undisturbed = run_sweep(spec, tmp_path / "b.db", Inline())
    assert essence(results)[:8] == [
        (*one[:3], two[3], *one[4:])
        for one, two in zip(essence(undisturbed)[:8], essence(results)[:8], strict=True)
    ]
