"""Rules of the certificate and of the options: a bound must be stated by a stage, or recomputed here.

Whether a solver's bound is true can be verified only by solving again. These rules verify that a stage of the
certificate states it for this plan, and how much of it `hw.scheduler.check.bounds` proves.
"""

import re
from collections.abc import Iterator

from hw.scheduler.check.bounds import bound_bytes, order_bound_bytes
from hw.scheduler.check.form import Plan, StageCertificate
from hw.scheduler.check.space import occupied


def claim_problems(plan: Plan) -> Iterator[str]:
    """Find a claim that the certificate's own figures contradict."""
    certificate, moved = plan.certificate, plan.totals.avoidable_bytes
    bound, order_bound = certificate.bound_avoidable_bytes, certificate.order_bound_avoidable_bytes
    if not 0 <= bound <= order_bound <= moved:
        yield (
            f"certificate: bounds {bound} and {order_bound} (of this order) do not rise to {moved}, "
            "the plan's avoidable bytes"
        )
    claim = certificate.claim
    stated = re.fullmatch(r"bound ([0-9]+) bytes, not proven", claim)
    proven = {"optimal": bound, "optimal for this order": order_bound}
    if stated is not None:
        if int(stated[1]) != bound:
            yield f"certificate: claim {claim!r}, but the bound is {bound}"
    elif claim not in proven:
        yield f"certificate: claim {claim!r} is none of the known ones"
    elif proven[claim] != moved:
        yield f"certificate: claims {claim!r} with bound {proven[claim]} for {moved} avoidable bytes"


def bound_stage(plan: Plan) -> StageCertificate | None:
    """Return the stage that states the bound over all orders; None when none can.

    The stage ``order`` states one for the graph without groups; COSMA's program states one for a narrower
    model.
    """
    groups = any(operator.members for operator in plan.graph.operators)
    for stage in plan.certificate.stages:
        states = stage.stage == "order" and stage.unit == "bytes" and not groups
        if stage.stage == "bound" or (states and not stage.solver.startswith("COSMA")):
            return stage
    return None


def order_bound_stage(plan: Plan) -> StageCertificate | None:
    """Return the stage that states the bound of this order; None without one."""
    return next((stage for stage in plan.certificate.stages if stage.stage == "residency"), None)


def stage_problems(plan: Plan) -> Iterator[str]:
    """Find bounds that no stage states, and stages of another plan."""
    certificate = plan.certificate
    order_bound = certificate.order_bound_avoidable_bytes
    for stage, own, bound, of in (
        (bound_stage(plan), bound_bytes, certificate.bound_avoidable_bytes, ""),
        (order_bound_stage(plan), order_bound_bytes, order_bound, " of this order"),
    ):
        if bound and bound != (stage.bound if stage else 0) and bound > own(plan):
            found = f"stage {stage.stage!r} states {stage.bound}" if stage else "no stage states one"
            yield f"certificate: bound {bound}{of}, but {found}"
    height = max(block.high for block in occupied(plan))
    facts = {
        "residency": (plan.totals.avoidable_bytes, order_bound, "bytes"),
        "address": (height, plan.totals.peak_bytes, "bytes"),
    }
    for stage in certificate.stages:
        where = f"certificate: stage {stage.stage!r}"
        stated = (stage.objective, stage.bound, stage.unit)
        if facts.get(stage.stage, stated) != stated:
            yield f"{where} states {stated}, the plan makes {facts[stage.stage]}"
        if not 0 <= stage.bound <= stage.objective:
            yield f"{where} has bound {stage.bound}, its objective {stage.objective}"
        if stage.status == "optimal" and stage.bound != stage.objective:
            yield f"{where} is called optimal, bound {stage.bound} of {stage.objective}"


def option_problems(plan: Plan) -> Iterator[str]:
    """Find options that the plan violates."""
    options = plan.options
    for key in ("scratchpad_bytes", "word_bytes"):
        if getattr(options, key) != getattr(plan, key):
            yield f"options.{key} is {getattr(options, key)}, the plan's {getattr(plan, key)}"
    groups = [operator for operator in plan.graph.operators if operator.members]
    for key, used in (
        ("streaming", bool(plan.streams)),
        ("tiling", any(tensor.origin for tensor in plan.graph.tensors)),
        ("pipelining", bool(groups)),
    ):
        if used and getattr(options, key) == "never":
            yield f"options.{key} is never, but the plan makes use of it"
    most = max((len(group.members) for group in groups), default=1)
    if most > options.cores:
        yield f"options.cores is {options.cores}, a group of the plan has {most} members"
    techniques = {options.streaming, options.tiling, options.pipelining}
    if options.order == "cosma" and techniques != {"never"}:
        yield "options.order is cosma, whose program knows neither windows nor bands nor groups"
    order = [step.operator for step in plan.steps]
    if options.order == "default" and order != [operator.name for operator in plan.graph.operators]:
        yield "options.order is default, but the steps are not in the order of the graph"
