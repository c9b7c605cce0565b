"""``loomwork compare plan``: many networks at many scratchpads, row by row, every row kept at once."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

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
from hw.scheduler.planner.order.exact.min_peak import minimum_peak
from sim.host.console import console
from sim.host.files import write_text
from sim.host.paths import check_directory
from sim.host.progress import Activity
from sim.plans.compare import COMPARE_FORMAT, Comparison, plan_tables
from sim.plans.compare_page import DATA_NAME, write_comparison
from sim.plans.rows import Planned, PlanRow, baseline_bytes


def run_compare(models: Sequence[str], budgets: str, directory: Path, seed: int, effort: int) -> None:
    """Plan networks at several scratchpads, beside the baselines; write a page and print tables.

    Each is planned twice: with whole tensors in any order, which is COSMA's model, where operators fit; and
    with all techniques.  The file is written anew after every row; rows that stand there already and follow
    from the same network, options and planner are taken over, so that what was interrupted goes on.

    Raises
    ------
    InputError
        Before any work, for an unknown model or a budget that is none.
    """
    check_directory("--output", directory)
    names = [text.strip() for text in budgets.split(",")]
    graphs = [load_fused(model) for model in models or network_names()]
    _refuse_twice("--budgets", names)
    _refuse_twice("models", [graph.name for graph in graphs])
    for name in names:
        parse_scratchpad(name, Problem(graph=graphs[0]), seed=seed)
    known = _known(directory / DATA_NAME)
    code = _code_digest()
    rows: list[PlanRow] = []
    with Activity("Comparing") as activity:
        for graph in graphs:
            places = _Places(graph, seed, effort, code)
            for name in names:
                activity.update(f"{graph.name} at {name}")
                row = known.get(places.key(name)) or places.row(name, activity)
                rows.append(row)
                if row.key not in known:
                    # Rows of a longer run that stand behind this one are not lost by writing it.
                    later = [other for key, other in known.items() if _missing(other, rows)]
                    write_text(directory / DATA_NAME, Comparison((*rows, *later)).to_json())
    comparison = Comparison(tuple(rows))
    written = write_comparison(comparison, directory)
    for table in plan_tables(comparison):
        console().print(table)
    for path in written:
        print(path)


def _refuse_twice(field: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(field, name, "given once")


def _missing(row: PlanRow, rows: Sequence[PlanRow]) -> bool:
    return all((row.graph, row.budget) != (other.graph, other.budget) for other in rows)


class _Places:
    """Rows of one network."""

    def __init__(self, graph: Graph, seed: int, effort: int, code: str) -> None:
        self._graph, self._problem = graph, Problem(graph=graph)
        self._seed, self._effort = seed, effort
        self._start = hashlib.sha256(f"{code}{seed},{effort}{graph_to_json(graph)}".encode())

    def key(self, budget: str) -> str:
        """Name what a row follows from."""
        digest = self._start.copy()
        digest.update(budget.encode())
        return digest.hexdigest()[:16]

    def row(self, budget: str, activity: Activity) -> PlanRow:
        """Plan and compare."""
        problem = self._problem
        size = parse_scratchpad(budget, problem, seed=self._seed)
        capacity = size // problem.word_bytes
        fits = capacity >= max(problem.working_set)
        least_peak = minimum_peak(problem, seed=self._seed).order
        return PlanRow(
            graph=self._graph.name,
            budget=budget,
            scratchpad_bytes=size,
            baselines=baseline_bytes(baselines(problem, capacity, least_peak), problem.word_bytes),
            whole=self._planned(budget, size, activity, When.NEVER) if fits else None,
            full=self._planned(budget, size, activity, When.AUTO),
            key=self.key(budget),
        )

    def _planned(self, budget: str, size: int, activity: Activity, when: When) -> Planned:
        """Plan with streaming, bands and groups where they help, or never."""

        def progress(text: str) -> None:
            activity.update(f"{self._graph.name} at {budget}: {text}")

        began = time.perf_counter()
        plan = plan_model(
            self._graph,
            str(size),
            progress=progress,
            streaming=when,
            tiling=when,
            pipelining=when,
            seed=self._seed,
            effort=self._effort,
        )
        seconds = time.perf_counter() - began
        totals, claim = plan.totals, plan.certificate.claim
        bound = plan.certificate.bound_avoidable_bytes
        parameters = sum(operator.weight_bytes for operator in self._graph.operators)
        compulsory = self._problem.compulsory * self._problem.word_bytes
        extra = totals.compulsory_bytes - compulsory + totals.parameter_bytes - parameters
        moved = totals.avoidable_bytes + extra
        if when is not When.NEVER:
            # The certificate is of the network as it was cut: other bands might move less.
            bound = 0
            claim = "optimal" if moved == 0 else "bound 0 bytes, not proven"
        return Planned(
            avoidable_bytes=moved,
            claim=claim,
            bound_avoidable_bytes=bound,
            predicted_cycles=totals.predicted_cycles,
            seconds=seconds,
        )


def _known(path: Path) -> dict[str, PlanRow]:
    """Read the rows of an earlier run by their keys; none where there is no such file, or of another form."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != COMPARE_FORMAT:
            return {}
        rows = [PlanRow.of(entry) for entry in document["rows"]]
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    return {row.key: row for row in rows}


def _code_digest() -> str:
    """Digest of the planner's own sources: a changed planner takes over no row."""
    digest = hashlib.sha256()
    root = Path(hw.scheduler.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
