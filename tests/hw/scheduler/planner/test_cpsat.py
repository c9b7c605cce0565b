import importlib.util
import os
import signal
import subprocess
import sys
import time

import pytest

from hw.scheduler.planner.solvers import SolverError, cpsat
from hw.scheduler.planner.solvers.cpsat import Worker
from tests.support.planner.packing_blocks import full_blocks
from tests.support.processes import ROOT, running

#: A module in place of the packing one: prints its request and carries it out.
STAND_IN = """
import json, os, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if "say" in asked:
        sys.stderr.write(asked["say"])
        sys.stderr.flush()
    if "signal" in asked:
        os.kill(os.getpid(), asked["signal"])
    if "status" in asked:
        sys.exit(asked["status"])
    time.sleep(asked.get("sleep", 0))
    print(json.dumps({"got": asked, "process": os.getpid()}), flush=True)
"""


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(cpsat, "_MODULE", "stand_in")


def test_a_worker_packs_apart_from_highs():
    assert importlib.util.find_spec("highspy")
    attempt = {"order": [0, 1], "presolve": False, "conflicts": 10, "work": 1.0}
    payload = {"blocks": [[0, 1, 3], [1, 2, 4]], "capacity": 7, "attempts": [attempt], "seconds": 60}
    with Worker() as worker:
        answer = worker.pack(payload, seconds=60)
        assert worker.pack(payload | {"capacity": 6}, seconds=60)["status"] == "infeasible"
    assert (answer["status"], sorted(answer["addresses"])[0]) == ("placed", 0)
    assert "ortools" not in sys.modules


def test_a_worker_answers_many_calls_in_one_process(stand_in):
    payload = {"n": [1, "ä"], "long": "y" * 1_000_000, "say": "x" * 1_000_000}
    with Worker() as worker:
        answers = [worker.pack(payload, seconds=60) for _ in range(3)]
    assert [answer["got"] for answer in answers] == [payload] * 3
    assert len({answer["process"] for answer in answers}) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(answers[0]["process"], 0)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (
            {"say": "out of memory,\nthey say", "signal": int(signal.SIGKILL)},
            "the solver process was killed by SIGKILL: out of memory, they say",
        ),
        ({"status": 3}, "the solver process ended with status 3"),
    ],
)
def test_a_worker_that_crashed_is_said_and_not_started_again(payload, message, stand_in):
    with Worker() as worker:
        for asked in (payload, {}):
            with pytest.raises(SolverError, match=message):
                worker.pack(asked, seconds=60)


def test_a_worker_that_takes_too_long_is_ended(stand_in):
    with Worker() as worker:
        process = worker.pack({}, seconds=60)["process"]
        with pytest.raises(SolverError, match=r"did not answer within 0\.2 s"):
            worker.pack({"sleep": 60}, seconds=0.2)
        begin = time.monotonic()
        with pytest.raises(SolverError, match=r"did not answer within 0\.2 s"):
            worker.pack({}, seconds=60)
        assert time.monotonic() - begin < 0.1
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_an_interpreter_that_is_not_there():
    with Worker(python="no-such-interpreter") as worker, pytest.raises(SolverError, match="does not start"):
        worker.pack({}, seconds=60)


def test_a_worker_does_not_outlive_who_asks(tmp_path):
    """Also while it searches: this takes it minutes."""
    drawn = full_blocks(1, steps=60, words=60, most=7)
    blocks = [[block.first, block.last, block.size] for block in drawn]
    attempt = {"order": list(range(len(blocks))), "presolve": False, "conflicts": 10**9, "work": 1e9}
    payload = {"blocks": blocks, "capacity": 60, "attempts": [attempt], "seconds": 600}
    program = (
        "from hw.scheduler.planner.solvers.cpsat import Worker\n"
        f"with Worker() as worker: worker.pack({payload}, seconds=600)\n"
    )
    mark = f"LOOMWORK_TEST_MARK={tmp_path}"
    environ = {**os.environ, "LOOMWORK_TEST_MARK": str(tmp_path), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", program], env=environ) as planner:
        limit = time.monotonic() + 60
        while not any("ortools" in (process / "maps").read_text() for process in running(mark)):
            assert time.monotonic() < limit
            time.sleep(0.05)
        time.sleep(0.5)  # searching
        assert len(running(mark)) == 2
        planner.terminate()
    limit = time.monotonic() + 2
    while running(mark):
        assert time.monotonic() < limit
        time.sleep(0.05)
