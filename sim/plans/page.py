"""One self-contained HTML page of a plan: its figures, its picture, and what is proven of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hw.errors import InputError
from hw.scheduler.graph.graph import Graph
from hw.scheduler.plan.options import When
from hw.scheduler.plan.plan import Plan, StageCertificate
from hw.scheduler.plan.problem import Problem
from hw.scheduler.plan_model import plan_model
from hw.scheduler.planner.baselines import baselines
from hw.scheduler.planner.budget import Budgets
from hw.scheduler.planner.order.min_peak import minimum_peak
from sim.host.progress import Activity
from sim.plans.charts import graph_by_step, traffic_curve
from sim.plans.facts import CurvePoint, PlanFacts, Why
from sim.plans.map import address_map
from sim.report.parts import Tile, chart, write_page
from sim.report.text import percent, sized, whole

_STAGE_COLUMNS = ("stage", "status", "objective", "bound", "gap", "unit", "decided by", "note")
_STEP_COLUMNS = (
    "step", "operator", "kind", "mode", "least cycles", "bytes in use", "first fetch", "fetched again",
    "spilled", "output",
)  # fmt: skip


def render_plan(
    plan: Plan,
    path: Path,
    *,
    curve: Sequence[CurvePoint] = (),
    budgets: Mapping[str, int] | None = None,
) -> None:
    """Write a page of a plan that `hw.scheduler.check.check` finds no problem in.

    The curve is of plans of the same network for other scratchpads, in any order; without any, there is none.
    ``budgets`` are scratchpad bytes to mark on it. Raises `InputError` when the path cannot be written.
    """
    facts = PlanFacts(plan)
    write_page(
        "plan.html.j2",
        path,
        plan=plan,
        made_by=plan.graph.made_by,
        scratchpad=sized(plan.scratchpad_bytes),
        tiles=_tiles(facts),
        map=chart(address_map(facts), "map", zoom=True),
        graph=chart(graph_by_step(facts), "graph", zoom=True),
        curve=chart(traffic_curve(curve, CurvePoint.of(plan), budgets or {}), "curve") if curve else "",
        stage_columns=_STAGE_COLUMNS,
        stages=[_stage_cells(stage) for stage in plan.certificate.stages],
        bounds=[
            ("claim", plan.certificate.claim),
            ("avoidable bytes", whole(plan.totals.avoidable_bytes)),
            ("bound, any order", f"{whole(plan.certificate.bound_avoidable_bytes)} bytes"),
            ("bound, this order", f"{whole(plan.certificate.order_bound_avoidable_bytes)} bytes"),
        ],
        options=[(name.replace("_", " "), _shown(value)) for name, value in plan.options.items()],
        step_columns=_STEP_COLUMNS,
        steps=_step_rows(facts),
    )


def write_plan_page(
    plan: Plan, graph: Graph, path: Path, options: Mapping[str, Any], points: int, activity: Activity
) -> None:
    """Write a page with a curve of ``points`` more scratchpads, planned with the same ``options``: fields of
    `hw.scheduler.plan.options.PlanOptions`.
    """
    activity.update("the curve of traffic over scratchpad")
    problem = Problem(graph=graph, word_bytes=plan.word_bytes)
    found = Budgets.of(problem, seed=options["seed"])
    budgets = {"M_R": found.m_r_bytes, "M_H": found.m_h_bytes, "M_P": found.m_p_bytes}
    render_plan(plan, path, curve=_curve(problem, options, found, points, activity), budgets=budgets)


def _curve(
    problem: Problem, options: Mapping[str, Any], budgets: Budgets, count: int, activity: Activity
) -> tuple[CurvePoint, ...]:
    """Plan for ``count`` scratchpads, evenly from an eighth of M_R up to M_P, with the baselines beside."""
    least, most = budgets.m_r_bytes // 8, budgets.m_p_bytes
    sizes = {most - (most - least) * index // max(1, count - 1) for index in range(count)}
    least_peak, word = minimum_peak(problem, seed=options["seed"]).order, problem.word_bytes
    points: list[CurvePoint] = []
    for number, size in enumerate(sorted(sizes), 1):
        activity.update(f"scratchpad {number} of {len(sizes)}")
        asked = {**options, "pipelining": When.NEVER, "word_bytes": word}
        try:
            plan = plan_model(problem.graph, str(size), **asked)
        except InputError:
            continue  # too small for any plan: the curve begins later
        words = baselines(problem, size // word, least_peak)
        point = CurvePoint.of(plan, {method: count * word for method, count in words.items()})
        if points and points[-1].avoidable_bytes < point.avoidable_bytes:
            # What fits a smaller scratchpad fits this one, too.
            moved = points[-1].avoidable_bytes
            point = replace(point, avoidable_bytes=moved, bound_avoidable_bytes=0, claim="")
        points.append(point)
    return tuple(points)


def _tiles(facts: PlanFacts) -> list[Tile]:
    plan, totals = facts.plan, facts.plan.totals
    proven = plan.certificate.claim == "optimal"
    moved = totals.offchip_read_bytes + totals.offchip_write_bytes
    hidden = totals.predicted_cycles - totals.exposed_cycles
    spills = sum(why is Why.SPILL for why in facts.reasons)
    refetches = sum(why is Why.REFETCH for why in facts.reasons)
    spilled = f"{_counted(spills, 'spill')}, {_counted(refetches, 'repeated fetch', 'repeated fetches')}"
    early = _counted(facts.early_fetches, "fetch starts", "fetches start")
    return [
        Tile("Avoidable traffic", sized(totals.avoidable_bytes), spilled, proven or None),
        Tile(
            "Proven",
            "optimal" if proven else sized(plan.certificate.bound_avoidable_bytes),
            "no order moves less" if proven else f"no order moves less; {_order_note(plan)}",
            proven or None,
        ),
        Tile("Off-chip traffic", sized(moved), f"{sized(totals.compulsory_bytes)} of it compulsory"),
        Tile(
            "Scratchpad in use",
            percent(totals.peak_bytes / plan.scratchpad_bytes, places=1),
            f"at most {sized(totals.peak_bytes)} of {sized(plan.scratchpad_bytes)}",
        ),
        Tile(
            "Transfers",
            whole(totals.transfers_total),
            f"{early} early, {_counted(len(plan.streams), 'stream')}",
        ),
        Tile(
            "Predicted cycles",
            whole(totals.predicted_cycles),
            f"{whole(hidden)} computing, {whole(totals.exposed_cycles)} waiting for memory",
        ),
    ]


def _counted(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _order_note(plan: Plan) -> str:
    certificate = plan.certificate
    if certificate.order_bound_avoidable_bytes == plan.totals.avoidable_bytes:
        return "optimal for this order"
    return f"this order, not less than {sized(certificate.order_bound_avoidable_bytes)}"


def _stage_cells(stage: StageCertificate) -> list[str]:
    gap = (stage.objective - stage.bound) / stage.objective if stage.objective else 0.0
    shown = percent(gap, places=1) if gap else "0"
    figures = [whole(stage.objective), whole(stage.bound), shown]
    return [stage.stage, stage.status, *figures, stage.unit, stage.solver, stage.note]


def _step_rows(facts: PlanFacts) -> list[list[str]]:
    order = (Why.FIRST_FETCH, Why.REFETCH, Why.SPILL, Why.OUTPUT)
    moved = [facts.bytes_by_step(why) for why in order]
    return [
        [
            str(step),
            planned.operator,
            facts.operators[step].kind,
            planned.mode.value,
            whole(planned.compute_cycles),
            whole(facts.bytes_in_use[step]),
            *(whole(amounts[step]) if amounts[step] else "" for amounts in moved),
        ]
        for step, planned in enumerate(facts.plan.steps)
    ]


def _shown(value: str | int | float | bool | None) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    return whole(value) if isinstance(value, int) else str(value)
