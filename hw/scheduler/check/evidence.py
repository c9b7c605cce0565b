"""Evidence for each figure of a plan without problems: recomputed, or claimed by the planner."""

from collections.abc import Iterator
from typing import NamedTuple

from hw.scheduler.check.bounds import bound_bytes, order_bound_bytes
from hw.scheduler.check.check import totals_of
from hw.scheduler.check.claims import bound_stage, order_bound_stage
from hw.scheduler.check.cycles import least_cycles
from hw.scheduler.check.form import Plan

#: Mark of a figure that the checker cannot recompute.
CLAIMED = "not rechecked"


class Evidence(NamedTuple):
    """A figure of a plan, its value, and the evidence for it."""

    figure: str
    value: str
    basis: str

    @property
    def claimed(self) -> bool:
        """Whether part of it rests on the planner's word alone."""
        return CLAIMED in self.basis


def evidence(plan: Plan, *, model: str = "", remark: str = "") -> Iterator[Evidence]:
    """Return the figures of a plan in which `hw.scheduler.check.check.check` finds no problem.

    ``model`` is the name of the model its graph was compared with, or empty. ``remark`` is added to the
    graph's row.
    """
    of = f"compared with the model {model}" if model else f"the plan's own, {CLAIMED}: no model was given"
    of += f"; {remark}" if remark else ""
    name = plan.graph.name
    made_by = f" ({plan.graph.made_by})" if plan.graph.made_by else ""
    counts = f"{name}{made_by}: {len(plan.tensor)} tensors, {len(plan.operator)} operators"
    yield Evidence("graph", counts, of)
    held = f"{len(plan.episodes)} residency intervals, {len(plan.streams)} windows, {len(plan.fifos)} FIFOs"
    yield Evidence("scratchpad", f"{plan.scratchpad_bytes:,} bytes: {held}", "replayed")
    for name, value in totals_of(plan).items():
        basis = "recomputed" if model or name != "parameter_bytes" else f"recomputed of the graph, {CLAIMED}"
        yield Evidence(name, f"{value:,}", basis)
    least, cycles = least_cycles(plan), plan.totals.predicted_cycles
    basis = f"at least {least:,}, recomputed; the rest claimed, {CLAIMED}"
    yield Evidence("predicted_cycles", f"{cycles:,}", basis)
    basis = f"claimed, {CLAIMED}"
    yield Evidence("exposed_cycles", f"{plan.totals.exposed_cycles:,}", basis)
    yield from _claims(plan)
    options = plan.options.model_dump(exclude_unset=True)
    yield Evidence("options", _listed(options, kept=True), "those of the plan")
    basis = f"not contradicted by the plan, {CLAIMED}"
    yield Evidence("other options", _listed(options, kept=False), basis)


def _claims(plan: Plan) -> Iterator[Evidence]:
    """Return the claim, both bounds and the stages."""
    certificate, moved = plan.certificate, plan.totals.avoidable_bytes
    bases = []
    for figure, bound, own, stage in (
        ("bound of all orders", certificate.bound_avoidable_bytes, bound_bytes(plan), bound_stage(plan)),
        (
            "bound of this order",
            certificate.order_bound_avoidable_bytes,
            order_bound_bytes(plan),
            order_bound_stage(plan),
        ),
    ):
        own = min(own, moved)
        more = f"; at least {own:,} is true" if own > bound else ""
        if bound <= own:
            bases.append(f"recomputed{more}")
        else:
            solver = stage.solver if stage else "nobody"
            bases.append(f"at least {own:,}, recomputed; the rest claimed by {solver}, {CLAIMED}")
        yield Evidence(figure, f"{bound:,} bytes", bases[-1])
    basis = bases[1] if certificate.claim == "optimal for this order" else bases[0]
    yield Evidence("claim", certificate.claim, "nothing avoidable moves" if not moved else basis)
    groups = any(operator.members for operator in plan.graph.operators)
    for stage in certificate.stages:
        other = "of the graph without groups, " if groups and stage.stage == "order" else ""
        value = f"{stage.status}, {stage.objective:,} {stage.unit}, bound {stage.bound:,}"
        note = f" ({stage.note})" if stage.note else ""
        yield Evidence(f"stage {stage.stage}", value, f"{other}claimed by {stage.solver}{note}, {CLAIMED}")


#: Options that fix figures of the plan.
_KEPT = ("scratchpad_bytes", "word_bytes", "macs_per_cycle")


def _listed(options: dict[str, object], *, kept: bool) -> str:
    return ", ".join(f"{name} {value}" for name, value in options.items() if (name in _KEPT) == kept)
