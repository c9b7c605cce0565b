"""``loomwork ablate``: the value of each technique of the planner, by planning a suite without it."""

import resource
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

import hw.scheduler
from hw.errors import check_one_of
from hw.scheduler.graph.documents import graph_to_json
from hw.scheduler.graph.graph import Graph
from hw.scheduler.graph.networks import network_names
from hw.scheduler.plan.options import BEST, Techniques, When
from hw.scheduler.plan_model import load_fused, plan_model
from hw.scheduler.planner.watch import Watch
from sim.compare.rows import RowTask, make_rows, read_rows, write_document
from sim.compare.table import Column, Columns, show, table
from sim.host.digest import key_of, source_digest
from sim.host.paths import check_directory

ABLATE_FORMAT = "loomwork-ablation/1"

#: Name of the row with all techniques on.
NOTHING = "nothing"


@dataclass(frozen=True, kw_only=True)
class Ablated:
    """A network planned without one technique."""

    network: str
    budget: str
    without: str
    avoidable_bytes: int
    bound_avoidable_bytes: int
    optimal: bool
    predicted_cycles: int
    cpu_seconds: float


def run_ablate(
    models: Sequence[str], budgets: str, without: Sequence[str], directory: Path, *, whole: bool, effort: int
) -> None:
    """Plan networks with each technique switched off in turn, and print the loss.

    Every row is written at once, so that an interrupted run resumes. Raises `InputError` before any work, for
    an unknown model or technique.
    """
    check_directory("--output", directory)
    for name in without:
        check_one_of("--without", name, Techniques.names())
    graphs = [load_fused(model) for model in models or network_names()]
    path = directory / "ablate.json"
    known = read_rows(
        path, ABLATE_FORMAT, lambda file: {key: Ablated(**row) for key, row in file["rows"].items()}
    )
    code = source_digest(hw.scheduler)
    tasks = [
        RowTask(
            key=key_of([code, graph_to_json(graph), budget, name, f"{whole},{effort}"]),
            title=f"{graph.name} at {budget} without {name}",
            make=partial(_measure, graph, budget, name, whole, effort),
        )
        for name in (NOTHING, *(without or Techniques.names()))
        for graph in graphs
        for budget in budgets.split(",")
    ]

    def keep() -> None:
        write_document(path, ABLATE_FORMAT, {"rows": {key: asdict(row) for key, row in known.items()}})

    if any(task.key not in known for task in tasks):
        plan_model(graphs[0], budgets.split(",")[0])  # compiles the searches once
    show([ablation_table(make_rows("Planning", tasks, known, keep))], [path])


def _measure(
    graph: Graph, budget: str, without: str, whole: bool, effort: int, progress: Callable[[str], None]
) -> Ablated:
    techniques = BEST if without == NOTHING else replace(BEST, **{without: False})
    when = When.NEVER if whole else When.AUTO
    options: dict[str, Any] = dict.fromkeys(("streaming", "tiling", "pipelining"), when)
    before = _cpu_seconds()
    plan = plan_model(graph, budget, watch=Watch(progress), techniques=techniques, effort=effort, **options)
    return Ablated(
        network=graph.name,
        budget=budget,
        without=without,
        avoidable_bytes=plan.totals.avoidable_bytes,
        bound_avoidable_bytes=plan.certificate.bound_avoidable_bytes,
        optimal=plan.certificate.claim == "optimal",
        predicted_cycles=plan.totals.predicted_cycles,
        cpu_seconds=round(_cpu_seconds() - before, 2),
    )


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def ablation_table(rows: Iterable[Ablated]) -> Table:
    """Sum up rows by technique, and compare with the row of all techniques."""
    sums: dict[str, list[Ablated]] = {}
    for row in rows:
        sums.setdefault(row.without, []).append(row)

    def total(name: str, figure: str) -> float:
        return sum(getattr(row, figure) for row in sums[name])

    def change(figure: str, name: str) -> str:
        base = total(NOTHING, figure)
        return f"{100 * (total(name, figure) - base) / base:+.2f} %" if base else ""

    columns: Columns[str] = (
        Column("without", str, text=True),
        Column("avoidable_bytes", lambda name: f"{total(name, 'avoidable_bytes'):,.0f}"),
        Column("change", partial(change, "avoidable_bytes")),
        Column("proven optimal", lambda name: f"{total(name, 'optimal'):.0f}"),
        Column("bound_bytes", lambda name: f"{total(name, 'bound_avoidable_bytes'):,.0f}"),
        Column("cycles", partial(change, "predicted_cycles")),
        Column("cpu_seconds", lambda name: f"{total(name, 'cpu_seconds'):.1f}"),
        Column("change", partial(change, "cpu_seconds")),
    )
    return table(f"Plans without a technique, {len(sums[NOTHING])} each", columns, sums)
