"""Integer programs: a PuLP problem solved by HiGHS."""

import importlib.metadata
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulp

from hw.scheduler.planner.solvers import SolverError
from hw.scheduler.planner.watch import STOPPED, current

#: Branch-and-bound nodes after which the solver stops: counted, not timed, so that a slow machine makes the
#: same plan.
NODE_LIMIT = 20_000

#: Final states of HiGHS, and their meaning.
_ENDS = {
    "Optimal": "optimal",
    "Empty": "optimal",
    "Infeasible": "infeasible",
    "Time limit reached": "limited",
    "Solution limit reached": "limited",
    "Iteration limit reached": "limited",
    "Interrupted by user": "limited",
}


@dataclass(frozen=True, kw_only=True)
class MilpResult:
    """The solver's result."""

    #: ``optimal``, ``feasible`` (a limit was met), ``infeasible``, or ``unknown`` (a limit was met before a
    #: solution was found).
    status: str
    values: Mapping[str, int]  #: By variable name; empty without a solution.
    objective: int  #: Of ``values``; 0 without a solution.
    bound: int  #: No solution is below it; 0 without a proof.
    solver: str  #: Name and version.
    note: str = ""  #: The limit that stopped it, or empty.


def solve(
    problem: pulp.LpProblem,
    *,
    nodes: int = NODE_LIMIT,
    seconds: float | None = None,
    start: Mapping[str, int] | None = None,
) -> MilpResult:
    """Minimise a problem with integer variables and coefficients, and an objective of at least 0.

    ``nodes``: most branch-and-bound nodes. ``seconds``: safety net of wall-clock time, or None; a result that
    met it says so. ``start``: a known solution, by variable name; may be incomplete.

    Raises `SolverError` when HiGHS is missing or returns no answer.
    """
    solver = pulp.HiGHS(
        msg=False,
        threads=1,
        timeLimit=seconds,
        gapRel=0.0,
        gapAbs=0.99,  # objectives are integers: closer than 1 is equal
        mip_max_nodes=nodes,
        random_seed=0,
        mip_feasibility_tolerance=1e-9,
        primal_feasibility_tolerance=1e-9,
    )
    if not solver.available():
        raise SolverError("HiGHS is not installed")
    # PuLP's own result has neither the bound nor the node limit, so only its model is used.
    solver.createAndConfigureSolver(problem)
    solver.buildSolverModel(problem)
    model = problem.solverModel
    names = [variable.name for variable in problem.variables()]
    if start:
        known = [index for index, name in enumerate(names) if name in start]
        model.setSolution(len(known), known, [float(start[names[index]]) for index in known])
    watch = current()

    def interrupt(event: Any) -> None:
        if watch.stopped:
            event.interrupt()

    model.cbMipInterrupt += interrupt
    model.cbSimplexInterrupt += interrupt
    model.run()
    ended, info = model.modelStatusToString(model.getModelStatus()), model.getInfo()
    if ended not in _ENDS:
        raise SolverError(f"HiGHS stopped with status {ended!r}")
    values: dict[str, int] = {}
    objective, note = 0, ""
    if ended != "Infeasible" and info.primal_solution_status == 2:
        values = dict(zip(names, map(round, model.getSolution().col_value), strict=True))
        terms = (round(factor) * values[each.name] for each, factor in problem.objective.items())
        objective = sum(terms, round(problem.objective.constant))
    status, bound = _ENDS[ended], objective
    if status == "limited":
        status = "feasible" if values else "unknown"
        note = f"stopped by the limit of {nodes} nodes"
        if watch.stopped:
            note = STOPPED
        elif ended.startswith("Time"):
            note = f"stopped by the time limit of {seconds:g} s: may differ from run to run"
        proven = info.mip_dual_bound if problem.isMIP() else info.objective_function_value
        bound = max(0, math.ceil(proven - 1e-6)) if math.isfinite(proven) else 0
    return MilpResult(
        status=status,
        values=values,
        objective=objective,
        bound=bound,
        solver=f"HiGHS {importlib.metadata.version('highspy')}",
        note=note,
    )
