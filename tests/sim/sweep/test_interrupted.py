"""Sweeps that are killed, stopped, joined, and whose workers die: the results are those of one left alone."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from sim.sweep.input.spec_file import read_spec
from sim.sweep.results import load_sweep
from sim.sweep.sweep import run_sweep
from tests.support.processes import ROOT, running, told
from tests.support.sweep.specs import Inline, essence, plain, write

WIDE = {"heads": 4, "queries": [512], "keys": [512], "query_size": 32, "value_size": 32, "causal": True}


@pytest.fixture(name="place")
def _place(tmp_path):
    """A folder with a sweep that takes some seconds."""
    document = plain()
    attention = document["engines"]["attention"]
    attention["workloads"]["wide"] = {"shape": WIDE}
    attention["parameters"] |= {"rows": list(range(1, 9)), "lanes": [32]}
    write(tmp_path / "a.yaml", document)
    return tmp_path


def start(place, database, *words):
    command = [sys.executable, "-m", "sim.cli.main", "sweep", "a.yaml", "-o", database, "--workers", "1"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "SWEEP_TEST": str(place)}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*command, *words], cwd=place, env=environ, **streams)


def finish(process, status=0):
    said = process.communicate(timeout=600)
    assert process.returncode == status, said
    return said


def left_alone(place):
    return essence(run_sweep(read_spec(place / "a.yaml"), place / "alone.db", Inline()))


def workers(place):
    return [
        int(folder.name)
        for folder in running(f"SWEEP_TEST={place}")
        if b"sim.sweep.worker" in (folder / "cmdline").read_bytes()
    ]


def ended(place):
    ends = time.monotonic() + 20
    while running(f"SWEEP_TEST={place}"):
        assert time.monotonic() < ends
        time.sleep(0.1)


def some_work_is_done(place):
    """Wait until workers are at it."""
    ends = time.monotonic() + 120
    while not workers(place):
        assert time.monotonic() < ends
        time.sleep(0.02)


def killed_at_random(place, kills, longest_seconds):
    rng = random.Random(kills)
    done = 0
    while done < kills:
        process = start(place, "a.db")
        try:
            process.wait(timeout=rng.uniform(0.2, longest_seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            done += 1
        process.communicate()
        if process.returncode == 0:  # all done: from the beginning
            (place / "a.db").unlink()
    ended(place)
    finish(start(place, "a.db"))
    return essence(load_sweep(place / "a.db"))


@pytest.mark.soak
@pytest.mark.parametrize("strategy", ["grid", "nsga2"])
def test_a_sweep_killed_twenty_times_gives_the_same(place, strategy):
    """With simulations in it."""
    document = plain(
        fidelities={"control": {"of": "front", "at_most": 2}, "full": {"of": "front", "at_most": 1}}
    )
    document["strategy"] = {"name": strategy, "designs": 40, "batch": 10}
    write(place / "a.yaml", document)
    alone = left_alone(place)
    assert killed_at_random(place, kills=20, longest_seconds=12) == alone


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.soak)]
)
def test_a_sweep_that_is_stopped_leaves_nothing_running(place, number, status):
    """Nor does it begin while another works on the database."""
    process = start(place, "a.db")
    some_work_is_done(place)
    _, refused = finish(start(place, "a.db"), status=2)
    assert told(refused).count("\n") == 1
    assert "or joined with --join" in refused
    process.send_signal(number)
    _, said = finish(process, status)
    assert "Traceback" not in said
    assert "loomwork: " in said
    ended(place)


@pytest.mark.soak
def test_processes_share_a_sweep_though_one_is_killed(place):
    """A local cluster: one process is killed, and a worker of another; none is lost, none counted twice."""
    first = start(place, "a.db", "--join")
    others = [start(place, "a.db", "--join") for _ in range(2)]
    some_work_is_done(place)
    first.kill()
    first.communicate()
    for pid in workers(place)[:1]:
        os.kill(pid, signal.SIGKILL)
    for process in others:
        finish(process)
    results = load_sweep(place / "a.db")
    assert essence(results) == left_alone(place)
    assert len({result.number for result in results.points}) == len(results.points) == 16
