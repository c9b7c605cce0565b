"""Integer programs: a PuLP problem solved by HiGHS, or by CBC when HiGHS is missing or fails.

Every answer is put into the model's rows again, in exact integer arithmetic: a solver that answers wrong
counts as one that failed.
"""

from __future__ import annotations

import importlib.metadata
import math
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pulp

from hw.errors import InputError
from hw.scheduler.planner.solvers import SolverError

#: Branch-and-bound nodes after which a solver stops: the limit is counted, not timed, so that a slow machine
#: gives the same plan.
DEFAULT_NODE_LIMIT = 20_000


@dataclass(frozen=True, kw_only=True)
class MilpResult:
    """What a solver found.

    Members
    -------
    status : str
        ``optimal``, ``feasible`` (a limit was met), ``infeasible``, or ``unknown`` (a limit was met before
        anything was found).
    values : mapping of str to int
        By variable name; empty when nothing was found.
    objective : int
        Of ``values``; 0 when nothing was found.
    bound : float
        No solution is below it (minimisation); minus infinity when the solver proved nothing.
    solver : str
        Name and version.
    note : str
        Solvers that failed before this one, or the limit that stopped it; empty when there is nothing to say.
    """

    status: str
    values: Mapping[str, int]
    objective: int
    bound: float
    solver: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When a solver stops without a proof.

    Parameters
    ----------
    nodes : int
        Branch-and-bound nodes.
    seconds : float or None
        Safety net of wall-clock time; None for none. A result that met it says so.
    """

    nodes: int = DEFAULT_NODE_LIMIT
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise InputError("node limit", self.nodes, "at least 1")
        if self.seconds is not None and not self.seconds > 0:
            raise InputError("time limit in seconds", self.seconds, "above 0")


def solve(
    problem: pulp.LpProblem,
    *,
    limits: Limits | None = None,
    start: Mapping[str, int] | None = None,
    solvers: Sequence[str] = ("highs", "cbc"),
) -> MilpResult:
    """Minimise a problem whose variables and coefficients are all integers.

    Parameters
    ----------
    problem : pulp.LpProblem
    limits : Limits
    start : mapping of str to int
        A known solution, by variable name; may be incomplete.
    solvers : sequence of str
        Tried in this order: the next one when one is missing, raises, or answers against the model.

    Raises
    ------
    SolverError
        When none of them gave an answer, with each one's reason.
    """
    failures: list[str] = []
    for name in solvers:
        if name not in _SOLVERS:
            raise InputError("solver", name, "one of " + ", ".join(_SOLVERS))
        try:
            result = _SOLVERS[name](problem, limits or Limits(), start or {})
            _verify(problem, result)
        # Whatever a solver's binding raises means the same: this solver did not answer.
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            failures.append(f"{name} failed ({reason})")
            continue
        note = "; ".join(part for part in (*failures, result.note) if part)
        return replace(result, note=note)
    raise SolverError("no integer programming solver answered: " + "; ".join(failures))


def integer_bound(bound: float) -> int:
    """Give the least value of an integer objective of at least 0 that a solver's bound allows."""
    return max(0, math.ceil(bound - 1e-6)) if math.isfinite(bound) else 0


def _highs(problem: pulp.LpProblem, limits: Limits, start: Mapping[str, int]) -> MilpResult:
    solver = pulp.HiGHS(
        msg=False,
        threads=1,
        timeLimit=limits.seconds,
        gapRel=0.0,
        gapAbs=0.99,  # objectives are integers: closer than 1 is equal
        mip_max_nodes=limits.nodes,
        random_seed=0,
        mip_feasibility_tolerance=1e-9,
        primal_feasibility_tolerance=1e-9,
    )
    if not solver.available():
        raise SolverError("not installed")
    # PuLP's own reading of the answer knows neither the bound nor the node limit, so only its model is used.
    solver.createAndConfigureSolver(problem)
    solver.buildSolverModel(problem)
    model = problem.solverModel
    names = [variable.name for variable in problem.variables()]
    known = [index for index, name in enumerate(names) if name in start]
    if known:
        model.setSolution(len(known), known, [float(start[names[index]]) for index in known])
    solver.callSolver(problem)
    status = model.modelStatusToString(model.getModelStatus())
    info = model.getInfo()
    version = f"HiGHS {importlib.metadata.version('highspy')}"
    if status == "Infeasible":
        return _nothing("infeasible", math.inf, version)
    proven = status in ("Optimal", "Empty")
    limited = status in ("Time limit reached", "Solution limit reached", "Iteration limit reached")
    if not proven and not limited:
        raise SolverError(f"stopped with status {status!r}")
    note = "" if proven else _limit_note(limits, timed=status.startswith("Time"))
    bound = info.mip_dual_bound if problem.isMIP() else info.objective_function_value
    if info.primal_solution_status != 2:
        return _nothing("unknown", bound, version, note)
    values = {name: round(value) for name, value in zip(names, model.getSolution().col_value, strict=True)}
    return _found(problem, values, None if proven else bound, version, note)


def _cbc(problem: pulp.LpProblem, limits: Limits, start: Mapping[str, int]) -> MilpResult:
    with tempfile.TemporaryDirectory(prefix="loomwork-cbc-") as folder:
        log = Path(folder) / "log"
        # The CBC that PuLP brings; its own class for it warns that a later PuLP will not bring it.
        solver = pulp.COIN_CMD(
            path=pulp.PULP_CBC_CMD.pulp_cbc_path,
            msg=False,
            threads=1,
            timeLimit=limits.seconds,
            gapRel=0.0,
            gapAbs=0.99,
            maxNodes=limits.nodes,
            warmStart=bool(start),
            logPath=str(log),
            options=["randomCbcSeed 1"],
        )
        solver.tmpDir = folder
        if not solver.available():
            raise SolverError("not installed")
        for variable in problem.variables():
            if variable.name in start:
                variable.setInitialValue(start[variable.name])
        problem.solve(solver)
        text = log.read_text(errors="replace")
    version = re.search(r"Version:\s*(\S+)", text)
    label = f"CBC {version[1]}" if version else "CBC"
    # PuLP calls a search that was stopped "infeasible" at times: only the log's own words count.
    if re.search(r"proven infeasible|Problem is infeasible|infeasible or unbounded", text, re.IGNORECASE):
        return _nothing("infeasible", math.inf, label)
    stopped = "Stopped on" in text
    found = problem.sol_status in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible)
    if not found and not stopped:
        raise SolverError(f"stopped with status {pulp.LpStatus[problem.status]!r}")
    note = _limit_note(limits, timed="Stopped on time" in text) if stopped else ""
    proven_bound = re.search(r"^Lower bound:\s*(\S+)", text, re.MULTILINE)
    bound = float(proven_bound[1]) if proven_bound else -math.inf
    if not found:
        return _nothing("unknown", bound, label, note)
    values = {variable.name: round(variable.varValue or 0) for variable in problem.variables()}
    return _found(problem, values, bound if stopped else None, label, note)


_SOLVERS: Mapping[str, Callable[[pulp.LpProblem, Limits, Mapping[str, int]], MilpResult]] = {
    "highs": _highs,
    "cbc": _cbc,
}


def _nothing(status: str, bound: float, solver: str, note: str = "") -> MilpResult:
    return MilpResult(status=status, values={}, objective=0, bound=bound, solver=solver, note=note)


def _found(
    problem: pulp.LpProblem, values: Mapping[str, int], bound: float | None, solver: str, note: str
) -> MilpResult:
    """Give a solution: an optimal one without a bound of its own."""
    objective = _value(problem.objective, values)
    status = "optimal" if bound is None else "feasible"
    bound = objective if bound is None else bound
    return MilpResult(
        status=status, values=values, objective=objective, bound=bound, solver=solver, note=note
    )


def _limit_note(limits: Limits, *, timed: bool) -> str:
    if timed:
        return f"stopped by the time limit of {limits.seconds:g} s: may differ from run to run"
    return f"stopped by the limit of {limits.nodes} nodes"


def _value(expression: pulp.LpAffineExpression, values: Mapping[str, int]) -> int:
    return round(expression.constant) + sum(
        round(factor) * values[variable.name] for variable, factor in expression.items()
    )


def _verify(problem: pulp.LpProblem, result: MilpResult) -> None:
    """Raise SolverError when the values break a bound or a row."""
    if not result.values:
        return
    for variable in problem.variables():
        value = result.values[variable.name]
        low, high = variable.lowBound, variable.upBound
        if (low is not None and value < low) or (high is not None and value > high):
            raise SolverError(f"answered {variable.name} = {value}, outside {low} to {high}")
    for row in problem.constraints():
        value = _value(row, result.values)
        held = {
            pulp.LpConstraintLE: value <= 0,
            pulp.LpConstraintGE: value >= 0,
            pulp.LpConstraintEQ: value == 0,
        }
        if not held[row.sense]:
            raise SolverError(f"its answer breaks the row {row.name}")
