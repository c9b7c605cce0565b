"""Search for an order of operators with little avoidable traffic, or with a low peak, by simulated annealing.

Many short runs from several orders, judged by a compiled evaluation, beat a long one.  The best orders are
then judged by the exact residency.  All limits are counts, so the result follows from the arguments alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hw.errors import InputError
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.anneal_kernel import anneal
from hw.scheduler.planner.order.evaluate import IMPOSSIBLE, Scratch, evaluate
from hw.scheduler.planner.order.lattice import Lattice
from hw.scheduler.planner.residency.residency import solve_residency
from hw.scheduler.planner.residency.stays import steps_of
from hw.scheduler.planner.solvers import SolverError

#: Annealing runs at effort 1, and runs without a better order that end it.
ROUNDS, PATIENCE = 24, 12

#: Runs at one capacity that find nothing before a peak counts as the least.
PEAK_ROUNDS = 6

#: Orders that are judged by the exact residency, and its node limit.
JUDGED, JUDGE_NODES = 2, 200

#: Orders a run evaluates for each operator, and the operators from which on it evaluates no more: a large
#: network falls into parts that hardly depend on each other, so its order settles at once everywhere.
STEPS_PER_OPERATOR, STEPS_OPERATORS = 600, 150

#: Temperatures at a run's beginning and end, in mean tensor sizes; runs take turns.
TEMPERATURES = ((0.1, 0.01), (0.15, 0.05), (0.25, 0.02))

#: One run in so many goes on from the best order instead of a start.
RETURN = 3

Order = tuple[int, ...]


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

    order: Order
    avoidable_words: int
    note: str = ""


def search(
    problem: Problem,
    capacity: int,
    *,
    streaming: bool = True,
    seed: int = 0,
    effort: int = 1,
    start_orders: Sequence[Sequence[int]] = (),
    bound_words: int = 0,
    time_limit_s: float = 600.0,
    anneals: bool = True,
    judges: bool = True,
    brief: bool = False,
) -> SearchResult:
    """Look for an order with little avoidable traffic.

    Parameters
    ----------
    problem : Problem
    capacity : int
        Words of the scratchpad.
    streaming : bool
        Whether an operand may pass through a window instead of lying whole in the scratchpad.
    seed, effort : int
        Equal values give equal results; twice the effort takes up to twice the time.
    start_orders : sequence of sequences of int
        Orders to begin from, beside the default one.
    bound_words : int
        No order moves less: reaching it ends the search.
    time_limit_s : float
        Safety net for one solver call.
    anneals, judges : bool
        See `hw.scheduler.plan.options.Techniques`.
    brief : bool
        Half the runs.

    Raises
    ------
    InputError
        When an operator does not fit alone, or a start is not a topological order.
    """
    starts = _starts(problem, seed, effort, start_orders)
    runs = _Runs(Lattice.of(problem, streaming=streaming), capacity, starts, seed, bound_words)
    unit = runs.lattice.unit
    if runs.best[0] >= IMPOSSIBLE:
        # The exact residency says which operator it is, and what it needs.
        solve_residency(problem, starts[0], capacity, streaming=streaming, minimise=("bytes",))
        raise InputError("scratchpad", f"{capacity * problem.word_bytes} bytes", "enough for every operator")
    if anneals:
        part = 2 if brief else 1
        runs.run(ROUNDS * effort // part, PATIENCE * effort // part)
    best, note = (runs.best[0] * unit, runs.best[1]), ""
    for _, order in runs.ranked[:JUDGED] if judges and not runs.done else ():
        try:
            exact = solve_residency(
                problem,
                order,
                capacity,
                streaming=streaming,
                minimise=("bytes",),
                node_limit=JUDGE_NODES,
                time_limit_s=time_limit_s,
            )
        except SolverError as error:
            note = f"orders judged by the greedy residency alone: {error}"
            break
        best = min(best, (exact.avoidable_words, order))
        if "time limit" in exact.note:
            note = f"orders judged: {exact.note}"
            break
    return SearchResult(order=best[1], avoidable_words=best[0], note=note)


def min_peak_search(
    problem: Problem, *, seed: int = 0, start_orders: Sequence[Sequence[int]] = (), bound_words: int = 0
) -> tuple[int, Order]:
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

    Returns
    -------
    int
        Words alive at the peak of the best order.
    tuple of int
        That order.

    Raises
    ------
    InputError
        When a start is not a topological order.
    """
    starts = _starts(problem, seed, 1, start_orders)
    lattice = Lattice.of(problem)
    work = Scratch.of(lattice)

    def peak(order: Sequence[int]) -> int:
        evaluate(np.array(order, dtype=np.int64), int(lattice.whole.sum()), lattice, work)
        return int(work.used[: problem.operator_count].max())

    best, order = min((peak(start), start) for start in starts)
    while best > max(int(lattice.whole.max()), bound_words // lattice.unit):
        runs = _Runs(lattice, (best - 1) * lattice.unit, [order, *starts], seed)
        runs.run(PEAK_ROUNDS, PEAK_ROUNDS)
        if not runs.done:
            break
        order = runs.best[1]
        best = peak(order)
    return best * lattice.unit, order


def _starts(problem: Problem, seed: int, effort: int, orders: Sequence[Sequence[int]]) -> list[Order]:
    """Check the arguments; give the orders to begin from, the default one first, each once."""
    for name, value, least in (("seed", seed, 0), ("effort", effort, 1)):
        if value < least:
            raise InputError(name, value, f"at least {least}")
    starts = [tuple(range(problem.operator_count)), *(tuple(order) for order in orders)]
    for start in starts:
        steps_of(problem, start)
    return list(dict.fromkeys(starts))


class _Runs:
    """Annealing of one problem at one capacity, with all orders that runs ended with.

    Parameters
    ----------
    lattice : Lattice
    capacity, goal : int
        Words; the goal is good enough, and no further run is made.
    starts : sequence of orders
        At least one.
    seed : int
    """

    def __init__(
        self, lattice: Lattice, capacity: int, starts: Sequence[Order], seed: int, goal: int = 0
    ) -> None:
        self.lattice, self._starts, self._seed = lattice, starts, seed
        self._capacity, self._goal = capacity // lattice.unit, goal // lattice.unit
        self._work = Scratch.of(lattice)
        self._found: dict[Order, int] = {}
        for start in starts:
            plain = np.array(start, dtype=np.int64)
            self._found[start] = int(evaluate(plain, self._capacity, lattice, self._work))

    @property
    def ranked(self) -> list[tuple[int, Order]]:
        """Avoidable units and orders, the best first."""
        return sorted((units, order) for order, units in self._found.items())

    @property
    def best(self) -> tuple[int, Order]:
        """Least avoidable units, and the order."""
        return self.ranked[0]

    @property
    def done(self) -> bool:
        """Whether the goal is reached."""
        return self.best[0] <= self._goal

    def run(self, rounds: int, patience: int) -> None:
        """Anneal again and again, until the goal is reached, or ``patience`` runs found nothing better."""
        idle = 0
        for number in range(rounds):
            before = self.best[0]
            if self.done or idle >= patience or len(self.best[1]) < 2:
                return
            units, order = self._anneal(number)
            self._found[order] = units
            idle = 0 if units < before else idle + 1

    def _anneal(self, number: int) -> tuple[int, Order]:
        mean = float(self.lattice.size.mean())
        hot, cold = TEMPERATURES[number // len(self._starts) % len(TEMPERATURES)]
        start = self.best[1] if number % RETURN == RETURN - 1 else self._starts[number % len(self._starts)]
        units, order = anneal(
            np.array(start, dtype=np.int64),
            self._capacity,
            STEPS_PER_OPERATOR * min(len(start), STEPS_OPERATORS),
            mean * hot,
            mean * cold,
            # Far apart: the runs of one seed must not be those of the next, shifted by one.
            (self._seed * 0x9E3779B97F4A7C15 + number) & 0x7FFFFFFFFFFFFFFF,
            self.lattice,
            self._work,
        )
        return int(units), tuple(order.tolist())
