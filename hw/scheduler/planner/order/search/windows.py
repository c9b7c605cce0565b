"""Improvement of an order a window of steps at a time: large-neighbourhood search with CP-SAT inside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.search.kernel import evaluate
from hw.scheduler.planner.order.search.runs import Runs
from hw.scheduler.planner.solvers import SolverError
from hw.scheduler.planner.solvers.cpsat import Worker

#: Where the model is built and solved.
TARGET = "hw.scheduler.planner.order.search.window_program:reorder"

#: Steps of a window: what CP-SAT mostly decides within its limit.
WINDOW = 24

#: Windows that are tried at effort 1, and CP-SAT's deterministic seconds for each.
WINDOWS = 10
WORK = 1.0


def windows(count: int, length: int) -> Iterator[tuple[int, int]]:
    """Give windows of steps, first and end, that overlap by half and cover all."""
    stride = max(length // 2, 1)
    last = max(count - length, 0)
    for first in [*range(0, last, stride), last]:
        yield first, min(first + length, count)


def improve(runs: Runs, problem: Problem, *, effort: int, seconds: float, worker: Worker | None) -> str:
    """Improve the best order; give a note that says what went wrong, if anything.

    Parameters
    ----------
    runs : Runs
        Whose best order is improved, and whose pool takes what is found.
    problem : Problem
    effort : int
    seconds : float
        Safety net of wall-clock time for each call.
    worker : Worker or None
        None: one is started.
    """
    if worker is None:
        with Worker() as own:
            return improve(runs, problem, effort=effort, seconds=seconds, worker=own)
    tried: set[tuple[int, ...]] = set()
    for _ in range(WINDOWS * effort):
        found = _costliest(runs, tried)
        if runs.done or found is None:
            break
        payload, operators = found
        payload |= {
            "source": [int(writer < 0) for writer in problem.producer],
            "refetches": 1,
            "work": WORK,
            "seconds": seconds,
            "seed": runs.seed & 0x7FFFFFFF,
        }
        try:
            answer = worker.call(TARGET, payload, seconds=2 * seconds)
        except SolverError as error:
            return f"windows of the order not improved by CP-SAT: {error}"
        tried.add(operators)
        better = runs.offer(np.array(answer["order"], dtype=np.int64))
        if answer["timed"]:
            return f"a window of the order was stopped by the time limit of {seconds:g} s"
        if better:
            tried.clear()
    return ""


def _costliest(runs: Runs, tried: set[tuple[int, ...]]) -> tuple[dict[str, Any], tuple[int, ...]] | None:
    """Describe the window whose tensors cause most traffic, among those not tried as they are."""
    order = runs.best[1]
    plain = np.array(order, dtype=np.int64)
    evaluate(plain, runs.capacity, runs.tables, runs.work)
    tables, drops = runs.tables, runs.work.drops
    words = tables.size * np.where(drops > 0, drops + tables.spills, 0)
    best, chosen = 0, None
    for window in windows(len(order), WINDOW):
        operators = order[window[0] : window[1]]
        slots = np.isin(tables.owner, operators)
        cost = int(words[np.unique(tables.tensor[slots])].sum())
        if cost > best and operators not in tried:
            best, chosen = cost, window
    if chosen is None:
        return None
    return describe(runs, order, chosen), order[chosen[0] : chosen[1]]


def describe(runs: Runs, order: tuple[int, ...], window: tuple[int, int]) -> dict[str, Any]:
    """Give what `TARGET` must know of an order, its residency, and a window; the limits are not in it."""
    tables, work = runs.tables, runs.work
    evaluate(np.array(order, dtype=np.int64), runs.capacity, tables, work)
    bounds = [slice(begin, end) for begin, end in zip(tables.first[:-1], tables.first[1:], strict=True)]
    operands = np.stack([tables.tensor, tables.writes, tables.saved, tables.alone], axis=1)
    return {
        "operands": [operands[each].tolist() for each in bounds],
        "kept": [work.kept[each].tolist() for each in bounds],
        "streamed": [work.streamed[each].tolist() for each in bounds],
        "fifo": tables.fifo.tolist(),
        "size": tables.size.tolist(),
        "spills": tables.spills.tolist(),
        "capacity": runs.capacity,
        "order": list(order),
        "window": list(window),
    }
