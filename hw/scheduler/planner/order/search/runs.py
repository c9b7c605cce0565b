"""Annealing runs with a memory: many short runs from several orders, the best orders kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hw.scheduler.planner.order.search.anneal_kernel import anneal
from hw.scheduler.planner.order.search.kernel import evaluate
from hw.scheduler.planner.order.search.tables import Integers, Scratch, Tables

#: Orders a run evaluates for each operator, and the operators from which on it evaluates no more: a large
#: network falls into parts that hardly depend on each other, so its order settles at once everywhere.
STEPS_PER_OPERATOR = 600
STEPS_OPERATORS = 150

#: Temperatures at a run's beginning and end, in mean tensor sizes; runs take turns.
TEMPERATURES = ((0.1, 0.01), (0.15, 0.05), (0.25, 0.02))

#: One run in so many goes on from the best order instead of a start.
RETURN = 3

#: Distinct orders that are remembered.
POOL = 8


@dataclass
class Runs:
    """Annealing of one problem at one capacity.

    Parameters
    ----------
    tables : Tables
    work : Scratch
    capacity : int
        Units.
    starts : sequence of orders
        At least one.
    seed : int
    goal : int
        Units that are good enough: no further run is made.

    Members
    -------
    pool : list of (int, order)
        Avoidable units and orders, the best first.
    """

    tables: Tables
    work: Scratch
    capacity: int
    starts: Sequence[Sequence[int]]
    seed: int = 0
    goal: int = 0
    pool: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for start in self.starts:
            self.offer(np.array(start, dtype=np.int64))

    @property
    def best(self) -> tuple[int, tuple[int, ...]]:
        """Least avoidable units, and the order."""
        return self.pool[0]

    @property
    def done(self) -> bool:
        """Whether the goal is reached."""
        return self.best[0] <= self.goal

    def offer(self, order: Integers) -> bool:
        """Evaluate an order and remember it if it is among the best; say whether it is the best alone."""
        units = int(evaluate(order, self.capacity, self.tables, self.work))
        return self.remember(units, tuple(order.tolist()))

    def remember(self, units: int, order: tuple[int, ...]) -> bool:
        """Remember an order of known cost if it is among the best; say whether it is the best alone."""
        better = not self.pool or units < self.pool[0][0]
        if (units, order) not in self.pool:
            self.pool = sorted([*self.pool, (units, order)])[:POOL]
        return better

    def run(self, rounds: int, patience: int) -> None:
        """Anneal again and again, until the goal is reached, or ``patience`` runs found nothing better.

        Parameters
        ----------
        rounds, patience : int
            Runs.
        """
        idle = 0
        for number in range(rounds):
            if self.done or idle >= patience or len(self.best[1]) < 2:
                return
            better = self._once(number)
            idle = 0 if better else idle + 1

    def _once(self, number: int) -> bool:
        size = self.tables.size
        mean = float(size.mean())
        hot, cold = TEMPERATURES[number // len(self.starts) % len(TEMPERATURES)]
        start = self.best[1] if number % RETURN == RETURN - 1 else self.starts[number % len(self.starts)]
        steps = STEPS_PER_OPERATOR * min(len(start), STEPS_OPERATORS)
        units, order = anneal(
            np.array(start, dtype=np.int64),
            self.capacity,
            steps,
            mean * hot,
            mean * cold,
            # Far apart: the runs of one seed must not be those of the next, shifted by one.
            (self.seed * 0x9E3779B97F4A7C15 + number) & 0x7FFFFFFFFFFFFFFF,
            self.tables,
            self.work,
        )
        return self.remember(int(units), tuple(order.tolist()))
