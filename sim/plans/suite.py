"""``loomwork compare plan``: many networks at many scratchpads, row by row."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import hw.scheduler
from hw.errors import InputError
from hw.scheduler.graph.documents import graph_to_json
from hw.scheduler.graph.graph import Graph
from hw.scheduler.graph.networks import network_names
from hw.scheduler.plan.options import When
from hw.scheduler.plan.problem import Problem
from hw.scheduler.plan_model import load_fused, plan_model
from hw.scheduler.planner.baselines import baselines
from hw.scheduler.planner.budget import parse_scratchpad
from hw.scheduler.planner.order.min_peak import minimum_peak
from hw.scheduler.planner.watch import Watch
from sim.compare.rows import RowTask
from sim.host.digest import key_of, source_digest
from sim.host.paths import check_directory
from sim.plans.compare import PlanComparison
from sim.plans.compare_page import COMPARISON
from sim.plans.facts import moved_beyond
from sim.plans.rows import PlanFigures, PlanRow

Progress = Callable[[str], None]


def run_compare(models: Sequence[str], budgets: str, directory: Path, seed: int, effort: int) -> None:
    """Plan networks at several scratchpads, beside the baselines; write a page and print tables.

    Each is planned twice: with whole tensors in any order (COSMA's model), where operators fit; and with all
    techniques.  Rows of an earlier run with the same network, options and planner are reused. Raises
    `InputError` before any work, for an unknown model or budget.
    """
    check_directory("--output", directory)
    names = [text.strip() for text in budgets.split(",")]
    graphs = [load_fused(model) for model in models or network_names()]
    _refuse_twice("--budgets", names)
    _refuse_twice("models", [graph.name for graph in graphs])
    for name in names:
        parse_scratchpad(name, Problem(graph=graphs[0]), seed=seed)
    search: dict[str, Any] = {"seed": seed, "effort": effort}
    code = source_digest(hw.scheduler)

    def task(graph: Graph, name: str) -> RowTask[PlanRow]:
        key = key_of([code, f"{seed},{effort}", graph_to_json(graph), name])
        make = partial(_row, Problem(graph=graph), search, name, key)
        return RowTask(key=key, title=f"{graph.name} at {name}", make=make)

    tasks = [task(graph, name) for graph in graphs for name in names]
    asked = [task.key for task in tasks]

    def compared(known: Mapping[str, PlanRow]) -> PlanComparison:
        return PlanComparison(tuple(known[key] for key in asked if key in known))

    COMPARISON.run(directory, tasks, compared)


def _refuse_twice(field: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(field, name, "given once")


def _row(problem: Problem, search: Mapping[str, Any], budget: str, key: str, progress: Progress) -> PlanRow:
    """Plan one network in one scratchpad, and compare."""
    size = parse_scratchpad(budget, problem, seed=search["seed"])
    capacity = size // problem.word_bytes
    fits = capacity >= max(problem.working_set)
    least_peak = minimum_peak(problem, seed=search["seed"]).order
    return PlanRow(
        graph=problem.graph.name,
        budget=budget,
        scratchpad_bytes=size,
        baselines={
            method: words * problem.word_bytes
            for method, words in baselines(problem, capacity, least_peak).items()
        },
        whole=_figures(problem, size, search, When.NEVER, progress) if fits else None,
        full=_figures(problem, size, search, When.AUTO, progress),
        key=key,
    )


def _figures(
    problem: Problem, size: int, search: Mapping[str, Any], when: When, progress: Progress
) -> PlanFigures:
    """Plan with streaming, bands and groups where they help, or never."""
    techniques: dict[str, Any] = dict.fromkeys(("streaming", "tiling", "pipelining"), when)
    began = time.perf_counter()
    plan = plan_model(problem.graph, str(size), watch=Watch(progress), **techniques, **search)
    seconds = time.perf_counter() - began
    totals, claim = plan.totals, plan.certificate.claim
    bound = plan.certificate.bound_avoidable_bytes
    moved = moved_beyond(plan, problem)
    if when is not When.NEVER:
        # The certificate holds for the network as it was cut; other bands might move less.
        bound = 0
        claim = "optimal" if moved == 0 else "bound 0 bytes, not proven"
    return PlanFigures(
        avoidable_bytes=moved,
        claim=claim,
        bound_avoidable_bytes=bound,
        predicted_cycles=totals.predicted_cycles,
        seconds=seconds,
    )
