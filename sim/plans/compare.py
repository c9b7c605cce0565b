"""Plans beside baselines for many networks and scratchpads: summaries, tables and file."""

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter
from rich.table import Table

from sim.compare.table import Column, Columns, table
from sim.plans.rows import COSMA, FULL, GREEDY, IDEAL, WHOLE, PlanRow
from sim.report.text import MISSING, percent, sized

_ROWS = TypeAdapter(list[PlanRow])


@dataclass(frozen=True, kw_only=True)
class BudgetSummary:
    """Summary of the rows of one budget, for one kind of plans."""

    budget: str
    kind: str
    #: Plans; those proven optimal; those that move nothing avoidable.
    rows: int
    proven: int
    without_traffic: int
    rival: str  #: The baseline of the means: `PlanRow.rival`.
    compared: int  #: Rows in which that baseline moves anything: there is nothing to save in the others.
    #: Mean over those rows of the share of avoidable bytes saved, against the rival and against Belady
    #: without fragmentation; None without rows to compare.
    mean_reduction: float | None
    mean_reduction_over_ideal: float | None
    slowest_seconds: float


@dataclass(frozen=True)
class PlanComparison:
    """Rows of networks and budgets, each place once: at least one."""

    rows: tuple[PlanRow, ...]

    @cached_property
    def graphs(self) -> tuple[str, ...]:
        """Names of the graphs, in the order of the rows."""
        return tuple(dict.fromkeys(row.graph for row in self.rows))

    @cached_property
    def budgets(self) -> tuple[str, ...]:
        """Names of the budgets, in the order of the rows."""
        return tuple(dict.fromkeys(row.budget for row in self.rows))

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of plans that any row has."""
        return tuple(kind for kind in (WHOLE, FULL) if any(kind in row.plans for row in self.rows))

    def at(self, budget: str) -> list[PlanRow]:
        """Return the rows of a budget."""
        return [row for row in self.rows if row.budget == budget]

    @cached_property
    def summaries(self) -> tuple[BudgetSummary, ...]:
        """One for each budget and kind of plans."""
        places = ((budget, kind) for budget in self.budgets for kind in self.kinds)
        return tuple(
            self._summary(budget, kind, rows)
            for budget, kind in places
            if (rows := [row for row in self.at(budget) if kind in row.plans])
        )

    def _summary(self, budget: str, kind: str, rows: list[PlanRow]) -> BudgetSummary:
        plans = [row.plans[kind] for row in rows]
        reductions = [value for row in rows if (value := row.reduction(row.rival, kind)) is not None]
        ideal = [value for row in rows if (value := row.reduction(IDEAL, kind)) is not None]
        return BudgetSummary(
            budget=budget,
            kind=kind,
            rows=len(rows),
            proven=sum(plan.proven for plan in plans),
            without_traffic=sum(plan.avoidable_bytes == 0 for plan in plans),
            rival=" or ".join(sorted({row.rival for row in rows})),
            compared=len(reductions),
            mean_reduction=statistics.fmean(reductions) if reductions else None,
            mean_reduction_over_ideal=statistics.fmean(ideal) if ideal else None,
            slowest_seconds=max(plan.seconds for plan in plans),
        )

    def document(self, known: Mapping[str, PlanRow]) -> dict[str, Any]:
        """Return the content of the comparison's file: the newest row of each place, of longer runs too."""
        places = {row.place: row for row in known.values()}
        every = PlanComparison(tuple(places.values()))
        return {
            "summaries": [asdict(summary) for summary in every.summaries],
            "rows": _ROWS.dump_python(list(every.rows)),
        }


def rows_of(document: Mapping[str, Any]) -> dict[str, PlanRow]:
    """Take the rows from the content of a comparison's file, by their keys."""
    return {row.key: row for row in _ROWS.validate_python(document["rows"])}


def shown_share(value: float | None) -> str:
    """Print a reduction; a dash when there is none to print."""
    return MISSING if value is None else percent(value, places=1)


def _claim(row: PlanRow) -> str:
    if row.whole is None:
        return MISSING
    return row.whole.claim if row.whole.claim.startswith("optimal") else "not proven"


def _baseline(method: str) -> Column[PlanRow]:
    return Column(method, lambda row: sized(row.baselines[method]) if method in row.baselines else MISSING)


ROW_COLUMNS: Columns[PlanRow] = (
    Column("graph", lambda row: row.graph, text=True),
    Column("budget", lambda row: row.budget, text=True),
    Column("scratchpad", lambda row: sized(row.scratchpad_bytes)),
    Column(WHOLE, lambda row: sized(row.whole.avoidable_bytes) if row.whole else MISSING),
    Column("bound", lambda row: sized(row.whole.bound_avoidable_bytes) if row.whole else MISSING),
    Column(FULL, lambda row: sized(row.full.avoidable_bytes)),
    *map(_baseline, (COSMA, IDEAL, GREEDY)),
    Column(f"saved, {WHOLE}", lambda row: shown_share(row.reduction(row.rival, WHOLE))),
    Column(f"saved, {FULL}", lambda row: shown_share(row.reduction(row.rival, FULL))),
    Column("seconds", lambda row: " + ".join(f"{plan.seconds:.1f}" for plan in row.plans.values())),
    Column(f"claim, {WHOLE}", _claim, text=True),
)

SUMMARY_COLUMNS: Columns[BudgetSummary] = (
    Column("budget", lambda summary: summary.budget, text=True),
    Column("plans of", lambda summary: summary.kind, text=True),
    Column("plans", lambda summary: str(summary.rows)),
    Column("proven optimal", lambda summary: str(summary.proven)),
    Column("no avoidable traffic", lambda summary: str(summary.without_traffic)),
    Column("measured by", lambda summary: summary.rival, text=True),
    Column("compared", lambda summary: str(summary.compared)),
    Column("mean saved", lambda summary: shown_share(summary.mean_reduction)),
    Column("over ideal", lambda summary: shown_share(summary.mean_reduction_over_ideal)),
    Column("slowest", lambda summary: f"{summary.slowest_seconds:.1f} s"),
)


def plan_tables(comparison: PlanComparison) -> tuple[Table, Table]:
    """Return the tables for a terminal: all rows, proven plans green, and the budgets' summaries."""

    def style(row: PlanRow) -> str:
        return "green" if (row.whole or row.full).proven else ""

    return (
        table("Avoidable traffic", ROW_COLUMNS, comparison.rows, style=style),
        table("By scratchpad", SUMMARY_COLUMNS, comparison.summaries),
    )
