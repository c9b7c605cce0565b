"""Plans beside baselines for many networks and scratchpads: rows, what they sum up to, table and file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from rich import box
from rich.table import Table
from rich.text import Text

from hw.errors import InputError
from hw.scheduler.baselines import Allocation, Greedy, Outcome, Replacement, best, method_name
from sim.plan_facts import sized

#: Value of ``format`` in the comparison's JSON.
COMPARE_FORMAT = "loomwork-compare-plan/1"
#: What COSMA compares with, and the same without its allocator's holes.
COSMA = method_name(Replacement.BELADY, Allocation.FIRST_FIT)
IDEAL = method_name(Replacement.BELADY, Allocation.IDEAL)
GREEDY = Greedy.AS_IT_COMES.value


@dataclass(frozen=True, kw_only=True)
class PlanRow:
    """One network in one scratchpad.

    Parameters
    ----------
    graph : str
    budget : str
        The scratchpad's name: ``M_R``, ``M_H``, ``0.5M_R``, ``512KiB`` ...
    scratchpad_bytes : int
    avoidable_bytes : int
        What the plan moves beyond the compulsory bytes.
    baselines : mapping of str to int
        Avoidable bytes of each baseline, the better of its two orders; only those that are possible.
    claim : str
        The certificate's.
    bound_avoidable_bytes : int
        What no plan in any order is below.
    seconds : float
        Time of the planner.
    """

    graph: str
    budget: str
    scratchpad_bytes: int
    avoidable_bytes: int
    baselines: Mapping[str, int]
    claim: str
    bound_avoidable_bytes: int
    seconds: float

    def __post_init__(self) -> None:
        where = f"of {self.graph} at {self.budget}"
        if self.avoidable_bytes < 0:
            raise InputError(f"avoidable_bytes {where}", self.avoidable_bytes, "at least 0")
        if not 0 <= self.bound_avoidable_bytes <= self.avoidable_bytes:
            legal = f"from 0 to {self.avoidable_bytes}, what the plan moves"
            raise InputError(f"bound_avoidable_bytes {where}", self.bound_avoidable_bytes, legal)
        if not (math.isfinite(self.seconds) and self.seconds >= 0):
            raise InputError(f"seconds {where}", self.seconds, "at least 0")

    @property
    def rival(self) -> str:
        """The baseline the plan is measured by: COSMA's, or greedy where operators do not fit whole."""
        return COSMA if COSMA in self.baselines else GREEDY

    def reduction(self, method: str) -> float | None:
        """Give the share of a baseline's avoidable bytes that the plan saves; negative when it moves more,
        None when the baseline is impossible or moves nothing.
        """
        moved = self.baselines.get(method, 0)
        return 1 - self.avoidable_bytes / moved if moved else None


def baseline_bytes(outcomes: Sequence[Outcome], word_bytes: int) -> dict[str, int]:
    """Give the avoidable bytes of each method, in its better order."""
    found = {}
    for method in dict.fromkeys(outcome.method for outcome in outcomes):
        better = best([outcome for outcome in outcomes if outcome.method == method])
        assert better is not None
        found[method] = better.avoidable_words * word_bytes
    return found


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What the rows of one budget come to.

    Members
    -------
    budget : str
    rows, proven, without_traffic : int
        Rows; those with a plan proven optimal; those with a plan that moves nothing avoidable.
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
    def by_place(self) -> dict[tuple[str, str], PlanRow]:
        """Row of a graph and a budget."""
        return {(row.graph, row.budget): row for row in self.rows}

    def at(self, budget: str) -> list[PlanRow]:
        """Give the rows of a budget."""
        return [row for row in self.rows if row.budget == budget]

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        """One for each budget."""
        return tuple(self._summary(budget) for budget in self.budgets)

    def _summary(self, budget: str) -> Summary:
        rows = self.at(budget)
        rivals = {row.rival for row in rows}
        reductions = [value for row in rows if (value := row.reduction(row.rival)) is not None]
        ideal = [value for row in rows if (value := row.reduction(IDEAL)) is not None]
        return Summary(
            budget=budget,
            rows=len(rows),
            proven=sum(row.claim == "optimal" for row in rows),
            without_traffic=sum(row.avoidable_bytes == 0 for row in rows),
            rival=" or ".join(sorted(rivals)),
            compared=len(reductions),
            mean_reduction=_mean(reductions),
            mean_reduction_over_ideal=_mean(ideal),
            slowest_seconds=max(row.seconds for row in rows),
        )

    def to_json(self) -> str:
        """Give the text of the comparison's file."""
        document = {
            "format": COMPARE_FORMAT,
            "summaries": [asdict(summary) for summary in self.summaries],
            "rows": [{**asdict(row), "baselines": dict(row.baselines)} for row in self.rows],
        }
        return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def shown_share(value: float | None) -> str:
    """Print a reduction; a dash when there is none to print."""
    return "–" if value is None else f"{100 * value:.1f} %"


def plan_tables(comparison: Comparison) -> tuple[Table, Table]:
    """Give the tables for a terminal: all rows, and the budgets' summaries."""
    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Avoidable traffic", title_justify="left")
    left = ("graph", "budget")
    right = ("scratchpad", "plan", "bound", COSMA, IDEAL, GREEDY, "saved", "over ideal", "seconds")
    for column in left:
        rows.add_column(column)
    for column in right:
        rows.add_column(column, justify="right")
    rows.add_column("claim")
    for row in comparison.rows:
        cells = row_cells(row)
        rows.add_row(*(Text(cell) for cell in cells), style="" if row.claim != "optimal" else "green")
    return rows, _summary_table(comparison)


def row_cells(row: PlanRow) -> list[str]:
    """Give a row as text, in the order of the columns."""
    return [
        row.graph,
        row.budget,
        sized(row.scratchpad_bytes),
        sized(row.avoidable_bytes),
        sized(row.bound_avoidable_bytes),
        *(
            sized(row.baselines[method]) if method in row.baselines else "–"
            for method in (COSMA, IDEAL, GREEDY)
        ),
        shown_share(row.reduction(row.rival)),
        shown_share(row.reduction(IDEAL)),
        f"{row.seconds:.1f}",
        row.claim if row.claim.startswith("optimal") else "not proven",
    ]


SUMMARY_COLUMNS = (
    "budget",
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
        str(summary.rows),
        str(summary.proven),
        str(summary.without_traffic),
        summary.rival,
        str(summary.compared),
        shown_share(summary.mean_reduction),
        shown_share(summary.mean_reduction_over_ideal),
        f"{summary.slowest_seconds:.1f} s",
    ]


def _summary_table(comparison: Comparison) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="By scratchpad", title_justify="left")
    for column in SUMMARY_COLUMNS:
        table.add_column(column, justify="left" if column in ("budget", "measured by") else "right")
    for summary in comparison.summaries:
        table.add_row(*(Text(cell) for cell in summary_cells(summary)))
    return table
