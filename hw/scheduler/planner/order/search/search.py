"""Search for an order of operators with little avoidable traffic, or with a low peak.

Annealing with a compiled evaluation makes most of the way: many short runs beat a long one.  The best orders
are then judged by the exact residency, and the best of them is improved a window at a time by CP-SAT.  All
limits are counts, so the result follows from the arguments alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hw.errors import InputError
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.search.kernel import IMPOSSIBLE, evaluate
from hw.scheduler.planner.order.search.runs import Runs
from hw.scheduler.planner.order.search.tables import scratch_for, tables_of
from hw.scheduler.planner.order.search.windows import improve
from hw.scheduler.planner.residency.residency import solve_residency
from hw.scheduler.planner.residency.stays import steps_of
from hw.scheduler.planner.solvers import SolverError
from hw.scheduler.planner.solvers.cpsat import Worker

#: Annealing runs at effort 1, and runs without a better order that end it.
ROUNDS = 24
PATIENCE = 12

#: Runs at one capacity that find nothing before a peak counts as the least.
PEAK_ROUNDS = 6

#: Orders that are judged by the exact residency, and its node limit.
JUDGED = 2
JUDGE_NODES = 200


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """An order, and what it was found to cost.

    Members
    -------
    order : tuple of int
        Operators by step; topological.
    avoidable_words : int
        Off-chip words beyond the compulsory ones with a residency that was found: no less than the order's
        optimum.
    note : str
        What a reader must know: a solver that was missing, a limit of time that was met.
    """

    order: tuple[int, ...]
    avoidable_words: int
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class PeakResult:
    """An order, and the most words alive in one of its steps when nothing is evicted or streamed."""

    order: tuple[int, ...]
    peak_words: int


def search(
    problem: Problem,
    capacity: int,
    *,
    streaming: str = "auto",
    seed: int = 0,
    effort: int = 1,
    start_orders: Sequence[Sequence[int]] = (),
    bound_words: int = 0,
    time_limit_s: float = 600.0,
    worker: Worker | None = None,
    brief: bool = False,
) -> SearchResult:
    """Look for an order with little avoidable traffic.

    Parameters
    ----------
    problem : Problem
    capacity : int
        Words of the scratchpad.
    streaming : str
        ``never``: every operand lies whole in the scratchpad. ``auto`` or ``always``: an operand may pass
        through a window instead.
    seed, effort : int
        Equal values give equal results; twice the effort takes up to twice the time.
    start_orders : sequence of sequences of int
        Orders to begin from, beside the default one.
    bound_words : int
        No order moves less: reaching it ends the search.
    time_limit_s : float
        Safety net for one solver call.
    worker : Worker or None
        Process for CP-SAT; None: one is started when it is needed.
    brief : bool
        Half the runs.

    Raises
    ------
    InputError
        When an operator does not fit alone, or a start is not a topological order.
    """
    if streaming not in ("never", "auto", "always"):
        raise InputError("streaming", streaming, "never, auto or always")
    starts = _starts(problem, seed, effort, start_orders)
    tables = tables_of(problem, streaming=streaming != "never")
    runs = Runs(
        tables=tables,
        work=scratch_for(tables),
        capacity=capacity // tables.unit,
        starts=starts,
        seed=seed,
        goal=bound_words // tables.unit,
    )
    if runs.best[0] >= IMPOSSIBLE:
        # The exact residency says which operator it is, and what it needs.
        solve_residency(problem, starts[0], capacity, streaming=streaming, minimise=("bytes",))
        raise InputError("scratchpad", f"{capacity * problem.word_bytes} bytes", "enough for every operator")
    part = 2 if brief else 1
    runs.run(ROUNDS * effort // part, PATIENCE * effort // part)
    notes = []
    if not runs.done:
        notes.append(_judge(problem, runs, streaming, time_limit_s))
    if not runs.done:
        notes.append(improve(runs, problem, effort=effort, seconds=time_limit_s, worker=worker))
    units, order = runs.best
    note = "; ".join(filter(None, notes))
    return SearchResult(order=order, avoidable_words=units * tables.unit, note=note)


def _judge(problem: Problem, runs: Runs, streaming: str, seconds: float) -> str:
    """Put the exact residency's words to the best orders; give a note."""
    for units, order in runs.pool[:JUDGED]:
        try:
            exact = solve_residency(
                problem,
                order,
                runs.capacity * runs.tables.unit,
                streaming=streaming,
                minimise=("bytes",),
                node_limit=JUDGE_NODES,
                time_limit_s=seconds,
            )
        except SolverError as error:
            return f"orders judged by the greedy residency alone: {error}"
        if exact.avoidable_words < units * runs.tables.unit:
            runs.remember(exact.avoidable_words // runs.tables.unit, order)
        if "time limit" in exact.note:
            return f"orders judged: {exact.note}"
    return ""


def min_peak_search(
    problem: Problem, *, seed: int = 0, start_orders: Sequence[Sequence[int]] = (), bound_words: int = 0
) -> PeakResult:
    """Look for an order with a low peak of live words, nothing evicted and nothing streamed.

    An order's peak is within a capacity exactly when no traffic is avoidable there.  So the search for
    traffic, at a unit below the best peak so far, is a search for peaks by a measure that sees every step.

    Parameters
    ----------
    problem : Problem
    seed : int
    start_orders : sequence of sequences of int
        Orders to begin from, beside the default one.
    bound_words : int
        No order's peak is below: reaching it ends the search.

    Raises
    ------
    InputError
        When a start is not a topological order.
    """
    starts = _starts(problem, seed, 1, start_orders)
    tables = tables_of(problem, streaming=False)
    work = scratch_for(tables)
    enough = sum(problem.size) + sum(problem.fifo)

    def peak(order: Sequence[int]) -> int:
        evaluate(np.array(order, dtype=np.int64), enough, tables, work)
        return int(work.used[: problem.operator_count].max())

    best, order = min((peak(start), start) for start in starts)
    floor = max(*problem.working_set, bound_words) // tables.unit
    while best > floor:
        runs = Runs(tables=tables, work=work, capacity=best - 1, starts=[order, *starts], seed=seed)
        runs.run(PEAK_ROUNDS, PEAK_ROUNDS)
        if not runs.done:
            break
        order = runs.best[1]
        best = peak(order)
    return PeakResult(order=order, peak_words=best * tables.unit)


def _starts(
    problem: Problem, seed: int, effort: int, orders: Sequence[Sequence[int]]
) -> list[tuple[int, ...]]:
    """Check the arguments; give the orders to begin from, the default one first, each once."""
    for name, value, least in (("seed", seed, 0), ("effort", effort, 1)):
        if value < least:
            raise InputError(name, value, f"at least {least}")
    starts = [tuple(range(problem.operator_count)), *(tuple(order) for order in orders)]
    for start in starts:
        steps_of(problem, start)
    return list(dict.fromkeys(starts))
