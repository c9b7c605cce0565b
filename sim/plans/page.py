"""The self-contained HTML page of a plan: figures, charts and certificate."""

from pathlib import Path

from hw.scheduler.plan.plan import Plan, StageCertificate
from sim.plans.charts import graph_by_step, traffic_curve
from sim.plans.curve import Curve
from sim.plans.facts import PlanFacts, TransferReason
from sim.plans.map import address_map
from sim.report.parts import Headline, chart, write_page
from sim.report.text import percent, sized, whole

_STAGE_COLUMNS = ("stage", "status", "objective", "bound", "gap", "unit", "decided by", "note")
_STEP_COLUMNS = (
    "step", "operator", "kind", "mode", "least cycles", "bytes in use", "first fetch", "fetched again",
    "spilled", "output",
)  # fmt: skip


def render_plan(plan: Plan, path: Path, *, curve: Curve | None = None) -> None:
    """Write the page of a plan in which `hw.scheduler.check.check` finds no problem.

    Raises `InputError` when the path cannot be written.
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
        curve=chart(traffic_curve(curve), "curve") if curve and curve.points else "",
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


def _tiles(facts: PlanFacts) -> list[Headline]:
    plan, totals = facts.plan, facts.plan.totals
    proven = plan.certificate.claim == "optimal"
    moved = totals.offchip_read_bytes + totals.offchip_write_bytes
    hidden = totals.predicted_cycles - totals.exposed_cycles
    spills = sum(why is TransferReason.SPILL for why in facts.reasons)
    refetches = sum(why is TransferReason.REFETCH for why in facts.reasons)
    spilled = f"{_counted(spills, 'spill')}, {_counted(refetches, 'repeated fetch', 'repeated fetches')}"
    early = _counted(facts.early_fetches, "fetch starts", "fetches start")
    return [
        Headline("Avoidable traffic", sized(totals.avoidable_bytes), spilled, proven or None),
        Headline(
            "Proven",
            "optimal" if proven else sized(plan.certificate.bound_avoidable_bytes),
            "no order moves less" if proven else f"no order moves less; {_order_note(plan)}",
            proven or None,
        ),
        Headline("Off-chip traffic", sized(moved), f"{sized(totals.compulsory_bytes)} of it compulsory"),
        Headline(
            "Scratchpad in use",
            percent(totals.peak_bytes / plan.scratchpad_bytes, places=1),
            f"at most {sized(totals.peak_bytes)} of {sized(plan.scratchpad_bytes)}",
        ),
        Headline(
            "Transfers",
            whole(totals.transfers_total),
            f"{early} early, {_counted(len(plan.streams), 'stream')}",
        ),
        Headline(
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
    order = (TransferReason.FIRST_FETCH, TransferReason.REFETCH, TransferReason.SPILL, TransferReason.OUTPUT)
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
