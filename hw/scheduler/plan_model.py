"""From a model to a checked plan, in one call."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hw.board import Board
from hw.scheduler.check.check import check
from hw.scheduler.graph.fuse import fuse_elementwise
from hw.scheduler.graph.graph import Graph
from hw.scheduler.graph.importers import load_model
from hw.scheduler.plan.diagnose import refuse_too_large
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan.options import ON_BOARD, PlanOptions
from hw.scheduler.plan.plan import Plan
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.budget import parse_scratchpad
from hw.scheduler.planner.planner import make_plan
from hw.scheduler.planner.watch import Watch, watched

#: Bytes of a word without a board and without the option.
WORD_BYTES = 32


def load_fused(
    model: str,
    dimensions: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    say: Callable[[str], None] | None = None,
) -> Graph:
    """Load a network as `load_model` does, by name or path, and merge its elementwise operators."""
    return fuse_elementwise(load_model(model, dimensions=dimensions, shapes=shapes, say=say))


def plan_model(
    model: str | Graph,
    scratchpad: str,
    *,
    board: Board | None = None,
    dimensions: Mapping[str, int] | None = None,
    watch: Watch | None = None,
    **options: Any,
) -> Plan:
    """Load a model, plan it, and check the plan.

    * ``model``: name of a shipped network, path of a model file, or a graph from `load_fused`.
    * ``scratchpad``: see `hw.scheduler.planner.budget.parse_scratchpad`.
    * ``board``: sets the word width and the memory timing; None is words of `WORD_BYTES` on a U55C's memory.
    * ``dimensions``: values of the model's symbolic dimensions.
    * ``watch``: receives progress, and may stop the search at the best plan found so far.
    * ``options``: further fields of `hw.scheduler.plan.options.PlanOptions`. The default objective is fewest
      cycles with a board, fewest bytes without.

    Raises `InputError` for a wrong model, size or option; when no plan exists, or it does not fit the board's
    memory. Raises `AssertionError` when the checker refuses the plan: a bug of the planner.
    """
    graph = model if isinstance(model, Graph) else load_fused(model, dimensions)
    if board is not None:
        refuse_too_large(graph, board.memory.total_bytes, f"the memory of {board.name}")
        options = {"word_bytes": board.memory.port_data_width // 8, "objective": ON_BOARD} | options
    word_bytes = options.pop("word_bytes", WORD_BYTES)
    problem = Problem(graph=graph, word_bytes=word_bytes)
    with watched(watch or Watch()) as watch:
        watch.reserve(problem.operator_count)
        watch.stage("size of the scratchpad")
        size = parse_scratchpad(scratchpad, problem, seed=options.get("seed", 0))
        asked = PlanOptions(scratchpad_bytes=size, word_bytes=word_bytes, **options)
        plan = make_plan(graph, asked, board=board)
        watch.stage("replaying the plan")
        problems = check(json.loads(plan_to_json(plan)))
    if problems:
        raise AssertionError(f"the planner made a wrong plan: {problems[0]}")
    return plan
