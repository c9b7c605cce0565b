"""The independent checker of a plan.json.

It shares no code with the planner.  From the plain document and the four phases of a step (`hw.scheduler`) it
recomputes everything else.
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hw.edge import read_json
from hw.scheduler.check import claims, cycles, graph, groups, replay, space, transfers
from hw.scheduler.check.form import Graph, Plan, conform
from hw.scheduler.check.model import model_problems


def totals_of(plan: Plan) -> dict[str, int]:
    """Recompute the totals of a plan without problems, in bytes and transfers.

    ``peak_bytes`` is the most in use in one step: residency intervals, windows and buffers.
    """
    moved, change = Counter[str](), Counter[int]()
    for transfer in plan.transfers:
        moved[transfer.direction] += transfer.size_bytes
    for block in space.occupied(plan):
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
    """Find totals that differ from the recomputed ones."""
    for name, value in totals_of(plan).items():
        if getattr(plan.totals, name) != value:
            yield f"totals.{name} is {getattr(plan.totals, name)}, the plan makes {value}"


#: All rules: functions that yield a line for each problem. A row is checked only when all rows above it hold,
#: because its rules rely on them.
RULES = (
    (graph.declaration_problems, graph.operand_problems, graph.use_problems, groups.group_problems),
    (graph.reach_problems, groups.access_problems, graph.order_problems, graph.arithmetic_problems),
    (space.episode_problems, space.stream_problems, space.fifo_problems, space.address_problems),
    (space.touch_problems, space.operand_place_problems, space.overlap_problems),
    (transfers.home_problems,),
    (transfers.memory_problems, transfers.move_problems),
    (transfers.count_problems, transfers.queue_problems, transfers.stream_order_problems),
    (replay.replay_problems, total_problems, cycles.cycle_problems, claims.option_problems),
    (claims.claim_problems, claims.stage_problems),
)  # fmt: skip


def check(document: Any, *, model: Any = None) -> list[str]:
    """Return a line for each problem of a plan.json's content.

    ``model`` is the plan's model with elementwise operators merged, as a graph's JSON without its format.
    Without a model the plan's own graph is trusted. In a plan without problems only the claims listed by
    `hw.scheduler.check.evidence` may be false.
    """
    plan = conform(document)
    if isinstance(plan, list):
        return plan
    for rules in RULES:
        problems = [problem for rule in rules for problem in rule(plan)]
        if problems:
            return problems
    return list(model_problems(plan, Graph.model_validate(model))) if model is not None else []


def check_file(path: Path, *, model: Any = None) -> list[str]:
    """Check a plan in a file, as `check` does; InputError when it cannot be read as JSON."""
    return check(read_json(path).data, model=model)
