"""The independent checker: is everything true that a plan.json says?

It shares no code with the planner: it reads the plain document, knows the four phases of a step
(`hw.scheduler`), and recomputes all else.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hw.edge import read_json
from hw.scheduler.check import graph, groups, replay, space, transfers
from hw.scheduler.check.form import Plan, conform


def totals_of(plan: Plan) -> dict[str, int]:
    """Recompute the totals of a plan without problems, in bytes and transfers.

    ``peak_bytes`` is the most that is in use in one step: residency intervals, windows and buffers.
    """
    moved, change = Counter[str](), Counter[int]()
    for transfer in plan.transfers:
        moved[transfer.direction] += transfer.size_bytes
    for block in space.blocks(plan):
        change[block.begin] += block.high - block.low
        change[block.end] -= block.high - block.low
    compulsory = sum(plan.size[each.name] for each in plan.graph.tensors if each.kind != "activation")
    return {
        "offchip_read_bytes": moved["read"],
        "offchip_write_bytes": moved["write"],
        "compulsory_bytes": compulsory,
        "avoidable_bytes": moved.total() - compulsory,
        "parameter_bytes": sum(operator.weight_bytes for operator in plan.graph.operators),
        "peak_bytes": max(itertools.accumulate(change[step] for step in range(len(plan.steps)))),
        "transfers_total": len(plan.transfers),
    }


def total_problems(plan: Plan) -> Iterator[str]:
    """Find totals that are not those of the plan."""
    for name, value in totals_of(plan).items():
        if getattr(plan.totals, name) != value:
            yield f"totals.{name} is {getattr(plan.totals, name)}, the plan makes {value}"
    cycles, least = plan.totals.predicted_cycles, sum(step.compute_cycles for step in plan.steps)
    if cycles < least:
        yield f"totals.predicted_cycles is {cycles}, the steps take {least}"
    if not 0 <= plan.totals.exposed_cycles <= cycles:
        yield f"totals.exposed_cycles is {plan.totals.exposed_cycles}, of all predicted cycles"


def claim_problems(plan: Plan) -> Iterator[str]:
    """Find a claim that the certificate's own figures do not bear."""
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


def stage_problems(plan: Plan) -> Iterator[str]:
    """Find stages of the planner whose bound and objective contradict each other, or the status."""
    for stage in plan.certificate.stages:
        where, objective, bound = f"certificate: stage {stage.stage!r}", stage.objective, stage.bound
        if bound > objective:
            yield f"{where} has bound {bound} above its objective {objective}"
        if stage.status == "optimal" and bound != objective:
            yield f"{where} is called optimal, bound {bound} of {objective}"


#: All rules, each a function that gives a line for each problem. Those of a row are judged only when the plan
#: has the form of one and keeps the rules of the rows above, on which they rely.
RULES = (
    (graph.declaration_problems, graph.operand_problems, graph.use_problems, groups.group_problems),
    (groups.access_problems, graph.order_problems, graph.arithmetic_problems),
    (space.episode_problems, space.stream_problems, space.fifo_problems, space.address_problems),
    (space.touch_problems, space.operand_place_problems, space.overlap_problems),
    (transfers.home_problems,),
    (transfers.memory_problems, transfers.move_problems),
    (transfers.count_problems, transfers.queue_problems, transfers.stream_order_problems),
    (replay.replay_problems, total_problems, claim_problems, stage_problems),
)  # fmt: skip


def check(document: Any) -> list[str]:
    """Find what is wrong with the content of a plan.json: a line for each problem, none when all is true."""
    plan = conform(document)
    if isinstance(plan, list):
        return plan
    for rules in RULES:
        problems = [problem for rule in rules for problem in rule(plan)]
        if problems:
            return problems
    return []


def check_file(path: Path) -> list[str]:
    """Find what is wrong with the plan in a file; InputError when it cannot be read as JSON."""
    return check(read_json(path).data)
