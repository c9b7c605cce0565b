"""Whole plans when a solver is missing, crashes or hangs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hw.scheduler.check.check import check
from hw.scheduler.graph.documents import graph_to_json
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan.options import OrderChoice, PlanOptions, When
from hw.scheduler.planner.address import address
from hw.scheduler.planner.planner import make_plan
from tests.support.planner.orders import wide_problem
from tests.support.processes import told

ROOT = Path(__file__).parents[4]
WHOLE = {"streaming": When.NEVER, "tiling": When.NEVER, "pipelining": When.NEVER}


def crowded():
    """A network whose residency needs a solver, and a scratchpad for it."""
    problem = wide_problem(0, 20)
    return problem.graph, max(problem.working_set) * problem.word_bytes


def stage(plan, name):
    return next(each for each in plan.certificate.stages if each.stage == name)


def test_the_command_without_highs(tmp_path):
    """The library is missing, in a process of its own."""
    graph, scratchpad = crowded()
    (tmp_path / "g.json").write_text(graph_to_json(graph))
    words = ["plan", "g.json", "--scratchpad", str(scratchpad), "--order", "default", "-o", "p.json"]
    words += [text for name in WHOLE for text in (f"--{name}", "never")]
    code = "import sys; sys.modules['highspy'] = None\nfrom sim.cli.main import main\n"
    code += f"sys.argv = {['loomwork', *words]!r}\nmain()"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert told(run.stderr) == "loomwork: HiGHS is not installed\n"
    assert not (tmp_path / "p.json").exists()


#: Replacements of OR-tools in the solver's process, and their messages.
BROKEN = {
    "missing": ("raise ImportError('no OR-tools here')", "no OR-tools here"),
    "crashing": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL"),
    "hanging": ("import time; time.sleep(600)", "did not answer within"),
}


@pytest.fixture(params=BROKEN)
def broken(request, tmp_path, monkeypatch):
    """Words of the certificate of a plan made without OR-tools."""
    code, said = BROKEN[request.param]
    package = tmp_path / "ortools"
    package.mkdir()
    (package / "__init__.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    return said


@pytest.mark.sample(1)
def test_addresses_are_found_without_cpsat(broken, monkeypatch):
    # Searches that would find or refute a packing before CP-SAT is asked are left out.
    monkeypatch.setattr(address, "SEARCHES", 0)
    problem = wide_problem(1, 14)
    scratchpad = max(problem.working_set) * problem.word_bytes * 9 // 8
    options = PlanOptions(scratchpad_bytes=scratchpad, order=OrderChoice.DEFAULT, time_limit_s=0.1, **WHOLE)
    plan = make_plan(problem.graph, options)
    assert check(json.loads(plan_to_json(plan))) == []
    assert "CP-SAT was not available" in stage(plan, "address").note
    assert broken in stage(plan, "address").note
