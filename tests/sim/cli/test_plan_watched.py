"""Planning that someone waits for: a time it may take, Ctrl-C, progress in a log, and the curve after it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hw.scheduler.check.check import check
from hw.scheduler.graph.documents import graph_to_json
from tests.sim.cli.test_plan import diamond
from tests.support.command_line import call, refused

#: A network whose search takes minutes.
LONG = ("plan", "rw120", "--scratchpad", "714KiB")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("g.json").write_text(graph_to_json(diamond()))


def stopped(path):
    """Return the stages of a plan that say that it was stopped; the plan must be true."""
    document = json.loads(Path(path).read_text())
    assert check(document) == []
    return [stage for stage in document["certificate"]["stages"] if stage["status"] == "stopped"]


def test_the_best_plan_within_a_time():
    call("plan", "g.json", "--scratchpad", "M_R", "-o", "compiled.json")
    began = time.monotonic()
    shown = call(*LONG, "--within", "4s", "-o", "p.json").stdout
    assert time.monotonic() - began < 20
    assert [stage["stage"] for stage in stopped("p.json")] == ["search"]
    assert "stopped before its end" in shown
    assert "bound, any order" in shown


def test_a_time_that_is_enough_changes_nothing():
    call("plan", "g.json", "--scratchpad", "M_R", "-o", "p.json")
    call("plan", "g.json", "--scratchpad", "M_R", "--within", "5m", "-o", "q.json")
    assert stopped("p.json") == []
    assert Path("p.json").read_bytes() == Path("q.json").read_bytes()


@pytest.mark.parametrize(
    "text", ["", "0", "0s", "-3s", "soon", "3 days", "1e3", "nan", "inf", "60 s s", "99999999"]
)
def test_wrong_times(text):
    message = refused("plan", "g.json", "--scratchpad", "M_R", "--within", text, "-o", "p.json")
    assert message == f"--within must be a time above 0 such as 60s, 2m, 1.5h or 90, not {text!r}"
    assert not Path("p.json").exists()


def started(*words):
    """Run the command with a line of progress every second."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1"}
    code = "from sim.host import progress; progress._FIRST_SECONDS = progress._NEXT_SECONDS = 1\n"
    code += "from sim.cli.main import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)], env=environ,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.soak
def test_an_interrupt_gives_the_best_plan_so_far():
    call("plan", "g.json", "--scratchpad", "M_R", "-o", "compiled.json")
    process = started(*LONG, "-o", "p.json")
    line = process.stderr.readline()
    while line and "so far" not in line:  # searches may have to be compiled first
        line = process.stderr.readline()
    assert re.match(r"Planning rw120: stage 1 of 4, whole operators: .* \(\d+ s\)$", line), line
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    shown, errors = process.communicate(timeout=60)
    assert time.monotonic() - began < 20
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert errors.rstrip().endswith("loomwork: interrupted")
    assert [stage["stage"] for stage in stopped("p.json")] == ["search"]
    assert "stopped before its end" in shown
    assert shown.rstrip().endswith("p.json")


def test_the_curve_can_be_left_out_and_comes_after_the_plan():
    asked = ("plan", "g.json", "--scratchpad", "M_R", "-o", "p.json", "--html", "p.html")
    call(*asked, "--no-curve")
    assert "Traffic against scratchpad size" not in Path("p.html").read_text()
    shown = call(*asked, "--curve-points", 3).stdout
    assert "Traffic against scratchpad size" in Path("p.html").read_text()
    assert shown.index("planned in") < shown.index("p.json") < shown.index("p.html")


def test_an_interrupted_curve_leaves_the_plan_and_the_page():
    process = started("plan", "rw40", "--scratchpad", "898KiB", "-o", "p.json", "--html", "p.html")
    shown = process.stdout.readline()
    while "p.json" not in shown:
        shown = process.stdout.readline()
    assert check(json.loads(Path("p.json").read_text())) == []
    assert not Path("p.html").exists()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert stopped("p.json") == []
    assert "rw40" in Path("p.html").read_text()
