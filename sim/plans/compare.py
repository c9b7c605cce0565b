"""Plans beside baselines for many networks and scratchpads: what the rows sum up to, tables and file."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from rich import box
from rich.table import Table
from rich.text import Text

from hw.errors import InputError
from sim.plans.facts import sized
from sim.plans.rows import COSMA, FULL, GREEDY, IDEAL, WHOLE, PlanRow

#: Value of ``format`` in the comparison's JSON.
COMPARE_FORMAT = "loomwork-compare-plan/2"


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What the rows of one budget come to, for one kind of plans.

    Members
    -------
    budget, kind : str
    rows, proven, without_traffic : int
        Plans; those proven optimal; those that move nothing avoidable.
    rival : str
        The baseline of the means: `PlanRow.rival`.
    compared : int
        Rows in which that baseline moves anything: the others have nothing to reduce and are left out of
        the mean.
    mean_reduction, mean_reduction_over_ideal : float or None
        Mean over rows of the share of avoidable bytes saved, against the rival and against Belady without
        fragmentation; None without rows to compare.
    slowest_seconds : float
    """

    budget: str
    kind: str
    rows: int
    proven: int
    without_traffic: int
    rival: str
    compared: int
    mean_reduction: float | None
    mean_reduction_over_ideal: float | None
    slowest_seconds: float


@dataclass(frozen=True)
class Comparison:
    """Rows of any number of networks and budgets.

    Raises
    ------
    InputError
        When there is no row, or two of one graph and budget.
    """

    rows: tuple[PlanRow, ...]

    def __post_init__(self) -> None:
        if not self.rows:
            raise InputError("rows of a comparison", 0, "at least one")
        seen = set()
        for row in self.rows:
            if (row.graph, row.budget) in seen:
                raise InputError(f"rows of graph {row.graph!r}", row.budget, "one for a budget")
            seen.add((row.graph, row.budget))

    @cached_property
    def graphs(self) -> tuple[str, ...]:
        """Names of the graphs, in the order of the rows."""
        return tuple(dict.fromkeys(row.graph for row in self.rows))

    @cached_property
    def budgets(self) -> tuple[str, ...]:
        """Names of the budgets, in the order of the rows."""
        return tuple(dict.fromkeys(row.budget for row in self.rows))

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """Baselines of any row."""
        return tuple(dict.fromkeys(method for row in self.rows for method in row.baselines))

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of plans that any row has."""
        return tuple(kind for kind in (WHOLE, FULL) if any(row.plan(kind) for row in self.rows))

    @cached_property
    def by_place(self) -> dict[tuple[str, str], PlanRow]:
        """Row of a graph and a budget."""
        return {(row.graph, row.budget): row for row in self.rows}

    def at(self, budget: str) -> list[PlanRow]:
        """Give the rows of a budget."""
        return [row for row in self.rows if row.budget == budget]

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        """One for each budget and kind of plans."""
        return tuple(
            self._summary(budget, kind)
            for budget in self.budgets
            for kind in self.kinds
            if any(row.plan(kind) for row in self.at(budget))
        )

    def _summary(self, budget: str, kind: str) -> Summary:
        rows = [row for row in self.at(budget) if row.plan(kind)]
        plans = [plan for row in rows if (plan := row.plan(kind))]
        reductions = [value for row in rows if (value := row.reduction(row.rival, kind)) is not None]
        ideal = [value for row in rows if (value := row.reduction(IDEAL, kind)) is not None]
        return Summary(
            budget=budget,
            kind=kind,
            rows=len(rows),
            proven=sum(plan.proven for plan in plans),
            without_traffic=sum(plan.avoidable_bytes == 0 for plan in plans),
            rival=" or ".join(sorted({row.rival for row in rows})),
            compared=len(reductions),
            mean_reduction=_mean(reductions),
            mean_reduction_over_ideal=_mean(ideal),
            slowest_seconds=max(plan.seconds for plan in plans),
        )

    def to_json(self) -> str:
        """Give the text of the comparison's file."""
        document = {
            "format": COMPARE_FORMAT,
            "summaries": [asdict(summary) for summary in self.summaries],
            "rows": [row.document() for row in self.rows],
        }
        return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def shown_share(value: float | None) -> str:
    """Print a reduction; a dash when there is none to print."""
    return "–" if value is None else f"{100 * value:.1f} %"


ROW_COLUMNS = (
    "graph",
    "budget",
    "scratchpad",
    WHOLE,
    "bound",
    FULL,
    COSMA,
    IDEAL,
    GREEDY,
    f"saved, {WHOLE}",
    f"saved, {FULL}",
    "seconds",
    f"claim, {WHOLE}",
)


def row_cells(row: PlanRow) -> list[str]:
    """Give a row as text, in the order of `ROW_COLUMNS`."""
    whole, full = row.whole, row.full
    return [
        row.graph,
        row.budget,
        sized(row.scratchpad_bytes),
        sized(whole.avoidable_bytes) if whole else "–",
        sized(whole.bound_avoidable_bytes) if whole else "–",
        sized(full.avoidable_bytes),
        *(
            sized(row.baselines[method]) if method in row.baselines else "–"
            for method in (COSMA, IDEAL, GREEDY)
        ),
        shown_share(row.reduction(row.rival, WHOLE)),
        shown_share(row.reduction(row.rival, FULL)),
        (f"{whole.seconds:.1f} + " if whole else "") + f"{full.seconds:.1f}",
        "–" if whole is None else whole.claim if whole.claim.startswith("optimal") else "not proven",
    ]


SUMMARY_COLUMNS = (
    "budget",
    "plans of",
    "plans",
    "proven optimal",
    "no avoidable traffic",
    "measured by",
    "compared",
    "mean saved",
    "over ideal",
    "slowest",
)


def summary_cells(summary: Summary) -> list[str]:
    """Give a summary as text, in the order of `SUMMARY_COLUMNS`."""
    return [
        summary.budget,
        summary.kind,
        str(summary.rows),
        str(summary.proven),
        str(summary.without_traffic),
        summary.rival,
        str(summary.compared),
        shown_share(summary.mean_reduction),
        shown_share(summary.mean_reduction_over_ideal),
        f"{summary.slowest_seconds:.1f} s",
    ]


def plan_tables(comparison: Comparison) -> tuple[Table, Table]:
    """Give the tables for a terminal: all rows, and the budgets' summaries."""
    rows = _table("Avoidable traffic", ROW_COLUMNS, ("graph", "budget", ROW_COLUMNS[-1]))
    for row in comparison.rows:
        proven = (row.whole or row.full).proven
        rows.add_row(*(Text(cell) for cell in row_cells(row)), style="green" if proven else "")
    summaries = _table("By scratchpad", SUMMARY_COLUMNS, ("budget", "plans of", "measured by"))
    for summary in comparison.summaries:
        summaries.add_row(*(Text(cell) for cell in summary_cells(summary)))
    return rows, summaries


def _table(title: str, columns: Sequence[str], left: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="left" if column in left else "right")
    return table
