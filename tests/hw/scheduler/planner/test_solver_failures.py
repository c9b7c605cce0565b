"""Whole plans when a solver is missing, crashes or hangs: another takes its place, and the plan says so."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pulp
import pytest

from hw.scheduler.check.check import check
from hw.scheduler.graph.documents import graph_to_json
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan.options import OrderChoice, PlanOptions, When
from hw.scheduler.planner.address import address
from hw.scheduler.planner.planner import make_plan
from hw.scheduler.planner.solvers import SolverError
from tests.support.planner.orders import wide_problem

ROOT = Path(__file__).parents[4]
WHOLE = {"streaming": When.NEVER, "tiling": When.NEVER, "pipelining": When.NEVER}


def crowded():
    """A network whose residency needs a solver, and a scratchpad for it."""
    problem = wide_problem(0, 20)
    return problem.graph, max(problem.working_set) * problem.word_bytes


def planned(**options):
    """A plan that the checker accepts."""
    graph, scratchpad = crowded()
    plan = make_plan(graph, PlanOptions(scratchpad_bytes=scratchpad, **WHOLE, **options))
    assert check(json.loads(plan_to_json(plan))) == []
    return plan


def stage(plan, name):
    return next(each for each in plan.certificate.stages if each.stage == name)


# Integer programs ----


def missing(*args, **kwargs):
    return False


def crashing(*args, **kwargs):
    raise RuntimeError("out\nof memory")


@pytest.mark.parametrize(
    ("method", "failure", "message"),
    [
        ("available", missing, "highs failed (not installed)"),
        ("callSolver", crashing, "highs failed (out of memory)"),
    ],
)
@pytest.mark.parametrize("order", [OrderChoice.DEFAULT, OrderChoice.FREE])
def test_cbc_takes_the_place_of_highs(order, method, failure, message, monkeypatch):
    expected = planned(order=order)
    assert stage(expected, "residency").solver.startswith("HiGHS")
    monkeypatch.setattr(pulp.HiGHS, method, failure)
    plan = planned(order=order)
    decided = stage(plan, "residency")
    assert decided.solver.startswith("CBC")
    assert message in decided.note
    assert plan.totals.avoidable_bytes == expected.totals.avoidable_bytes
    assert plan.certificate.claim == expected.certificate.claim


def test_without_any_solver_there_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(pulp.HiGHS, "available", missing)
    monkeypatch.setattr(pulp.COIN_CMD, "available", missing)
    message = r"no integer .* answered: highs failed \(not installed\); cbc failed \(not installed\)"
    with pytest.raises(SolverError, match=message):
        planned(order=OrderChoice.DEFAULT)


def test_the_command_without_highs(tmp_path):
    """The library is not there at all, in a process of its own."""
    graph, scratchpad = crowded()
    (tmp_path / "g.json").write_text(graph_to_json(graph))
    words = ["plan", "g.json", "--scratchpad", str(scratchpad), "--order", "default", "-o", "p.json"]
    words += [text for name in WHOLE for text in (f"--{name}", "never")]
    run = ran(words, ["highspy"], tmp_path)
    assert run.returncode == 0, run.stderr
    document = json.loads((tmp_path / "p.json").read_text())
    assert check(document) == []
    decided = next(each for each in document["certificate"]["stages"] if each["stage"] == "residency")
    assert decided["solver"].startswith("CBC")
    assert "highs failed (not installed)" in decided["note"]


def test_the_command_without_any_solver(tmp_path):
    graph, scratchpad = crowded()
    (tmp_path / "g.json").write_text(graph_to_json(graph))
    words = ["plan", "g.json", "--scratchpad", str(scratchpad), "--order", "default", "-o", "p.json"]
    words += [text for name in WHOLE for text in (f"--{name}", "never")]
    run = ran(words, ["highspy"], tmp_path, before="pulp.COIN_CMD.available = lambda self: False")
    assert run.returncode == 2
    assert run.stdout == ""
    (line,) = run.stderr.splitlines()
    assert line.startswith("loomwork: no integer programming solver answered: highs failed (not installed)")
    assert not (tmp_path / "p.json").exists()


def ran(words, absent, folder, before=""):
    """The command in a process in which some libraries cannot be imported."""
    code = f"import sys; sys.modules.update(dict.fromkeys({absent!r}))\n"
    code += (
        f"import pulp\n{before}\nfrom sim.cli.main import main\nsys.argv = {['loomwork', *words]!r}\nmain()"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )


# CP-SAT ----

#: What the solver's process finds in the place of OR-tools, and what is said then.
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
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return said


def test_addresses_are_found_without_cpsat(broken, monkeypatch):
    # Searches that would find or refute a packing before CP-SAT is asked are left out.
    monkeypatch.setattr(address, "SEARCHES", 0)
    problem = wide_problem(1, 14)
    scratchpad = max(problem.working_set) * problem.word_bytes * 9 // 8
    options = PlanOptions(scratchpad_bytes=scratchpad, order=OrderChoice.DEFAULT, time_limit_s=0.5, **WHOLE)
    plan = make_plan(problem.graph, options)
    assert check(json.loads(plan_to_json(plan))) == []
    assert "CP-SAT was not available" in stage(plan, "address").note
    assert broken in stage(plan, "address").note
