"""The curve of a plan's page: traffic of other plans of the network, and of baselines, by scratchpad size."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from hw.errors import InputError
from hw.scheduler.graph.graph import Graph
from hw.scheduler.plan.options import When
from hw.scheduler.plan.plan import Plan
from hw.scheduler.plan.problem import Problem
from hw.scheduler.plan_model import plan_model
from hw.scheduler.planner.baselines import baselines
from hw.scheduler.planner.budget import Budgets
from hw.scheduler.planner.order.min_peak import minimum_peak
from hw.scheduler.planner.watch import Watch
from sim.plans.facts import CurvePoint


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Traffic over scratchpad size."""

    points: tuple[CurvePoint, ...]  #: By rising size.
    here: CurvePoint  #: The page's own plan.
    budgets: Mapping[str, int]  #: Marked sizes in bytes, by name.


def traffic_over_scratchpad(
    plan: Plan, graph: Graph, options: Mapping[str, Any], count: int, watch: Watch
) -> Curve:
    """Plan the network for ``count`` more scratchpads, evenly from an eighth of M_R up to M_P.

    ``options`` are fields of `hw.scheduler.plan.options.PlanOptions`; pipelining is off.  If the watch is
    stopped, the curve has the sizes planned so far.
    """
    problem, tell = Problem(graph=graph, word_bytes=plan.word_bytes), watch.tell
    tell("COSMA's budgets")
    found = Budgets.of(problem, seed=options["seed"])
    least, most = found.m_r_bytes // 8, found.m_p_bytes
    sizes = sorted({most - (most - least) * index // max(1, count - 1) for index in range(count)})
    order = minimum_peak(problem, seed=options["seed"]).order
    points: list[CurvePoint] = []
    for number, size in enumerate(sizes, 1):
        watch.tell = partial(_numbered, tell, f"scratchpad {number} of {len(sizes)}")
        asked = {**options, "pipelining": When.NEVER, "word_bytes": plan.word_bytes}
        try:
            other = plan_model(graph, str(size), watch=watch, **asked)
        except InputError:
            continue  # too small for any plan: the curve begins at a larger size
        if watch.stopped:
            break
        words = baselines(problem, size // problem.word_bytes, order)
        kept = {method: amount * problem.word_bytes for method, amount in words.items()}
        points.append(CurvePoint.of(other, problem, kept))
    return Curve(
        points=tuple(_monotone(points)),
        here=CurvePoint.of(plan, problem),
        budgets={"M_R": found.m_r_bytes, "M_H": found.m_h_bytes, "M_P": found.m_p_bytes},
    )


def _numbered(tell: Callable[[str], None], place: str, text: str) -> None:
    tell(f"{place}: {text}")


def _monotone(points: Sequence[CurvePoint]) -> Iterator[CurvePoint]:
    """Make traffic monotone: a plan of a smaller scratchpad fits a larger one too."""
    least = points[0] if points else None
    for point in points:
        if least is not None and least.avoidable_bytes < point.avoidable_bytes:
            moved = least.avoidable_bytes
            yield replace(point, avoidable_bytes=moved, bound_avoidable_bytes=0, claim="")
        else:
            least = point
            yield point
