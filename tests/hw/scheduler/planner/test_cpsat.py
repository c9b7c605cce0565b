import importlib
import os
import signal
import sys
import time

import pytest

from hw.errors import InputError
from hw.scheduler.planner.solvers import SolverError, cpsat
from hw.scheduler.planner.solvers.cpsat import Worker, call

HERE = "tests.hw.scheduler.planner.test_cpsat"


# What the worker calls ----


def echo(payload):
    """Prints what must not be taken for an answer."""
    print("\0\0\0\0\0\0\0\4 not an answer", flush=True)
    os.write(1, b"nor this\n")
    return {"got": payload, "process": os.getpid()}


def fail(payload):
    raise ValueError(f"no\nsuch thing as {payload}")


def die(payload):
    sys.stderr.write("out of memory, they say\n")
    sys.stderr.flush()
    os.kill(os.getpid(), payload)


def leave(payload):
    sys.exit(payload)


def chatter(payload):
    sys.stderr.write("x" * payload)
    return len("x" * payload)


def sleep(payload):
    time.sleep(payload)


def versions(payload):
    importlib.import_module("ortools.sat.python.cp_model")
    return sorted(name for name in ("pulp", "highspy", "ortools") if name in sys.modules)


# Tests ----


def test_a_worker_answers_many_calls_in_one_process():
    with Worker() as worker:
        answers = [worker.call(f"{HERE}:echo", {"n": [1, "ä"]}, seconds=60) for _ in range(3)]
    assert [answer["got"] for answer in answers] == [{"n": [1, "ä"]}] * 3
    assert len({answer["process"] for answer in answers}) == 1
    assert answers[0]["process"] != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(answers[0]["process"], 0)


def test_large_payloads_and_much_chatter_pass():
    with Worker() as worker:
        assert worker.call(f"{HERE}:echo", "y" * 1_000_000, seconds=60)["got"] == "y" * 1_000_000
        assert worker.call(f"{HERE}:chatter", 1_000_000, seconds=60) == 1_000_000


def test_or_tools_and_highs_do_not_meet():
    import pulp

    assert pulp.HiGHS().available()
    assert call(f"{HERE}:versions", None, seconds=60) == ["ortools"]
    assert "ortools" not in sys.modules


def test_what_a_function_raises_is_said_and_the_worker_lives_on():
    with Worker() as worker:
        first = worker.call(f"{HERE}:echo", 1, seconds=60)["process"]
        with pytest.raises(SolverError, match=r"test_cpsat:fail failed: ValueError: no such thing as 7$"):
            worker.call(f"{HERE}:fail", 7, seconds=60)
        assert worker.call(f"{HERE}:echo", 1, seconds=60)["process"] == first


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("hw.no_such_module:pack", "ModuleNotFoundError: No module named 'hw.no_such_module'"),
        (f"{HERE}:no_such_function", "has no attribute 'no_such_function'"),
    ],
)
def test_missing_functions_and_libraries_are_said(target, message):
    with pytest.raises(SolverError, match=message):
        call(target, None, seconds=60)


@pytest.mark.parametrize(
    ("function", "payload", "message"),
    [
        (
            "die",
            int(signal.SIGKILL),
            "die: the solver process was killed by SIGKILL: out of memory, they say",
        ),
        ("leave", 3, "leave: the solver process ended with status 3"),
    ],
)
def test_a_worker_that_crashed_is_said_and_not_started_again(function, payload, message):
    with Worker() as worker:
        for _ in range(2):
            with pytest.raises(SolverError, match=message):
                worker.call(f"{HERE}:{function}", payload, seconds=60)
            function, payload = "echo", 1


def test_a_worker_that_takes_too_long_is_ended():
    with Worker() as worker:
        process = worker.call(f"{HERE}:echo", 1, seconds=60)["process"]
        with pytest.raises(SolverError, match=r"sleep did not answer within 0\.2 s"):
            worker.call(f"{HERE}:sleep", 60, seconds=0.2)
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
        begin = time.monotonic()
        with pytest.raises(SolverError, match=r"sleep did not answer within 0\.2 s"):
            worker.call(f"{HERE}:echo", 1, seconds=60)
        assert time.monotonic() - begin < 0.1


def test_an_interpreter_that_is_not_there():
    with Worker(python="no-such-interpreter") as worker, pytest.raises(SolverError, match="does not start"):
        worker.call(f"{HERE}:echo", 1, seconds=60)


@pytest.mark.parametrize(
    ("target", "seconds", "message"),
    [
        ("os.getpid", 60, "target of a call must be module:function"),
        (":f", 60, "target of a call must be module:function"),
        (f"{HERE}:echo", 0, "seconds of a call must be above 0"),
    ],
)
def test_wrong_calls(target, seconds, message):
    with pytest.raises(InputError, match=message):
        cpsat.call(target, None, seconds=seconds)
