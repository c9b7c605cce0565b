"""The order of operators: decomposition, what is proven at once, and search for the rest.

The problem falls apart at its pinches into segments whose avoidable traffic adds up.  A segment whose least
peak fits moves nothing avoidable: that order is optimal.  The others are searched by annealing over orders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hw.scheduler.anneal_kernel import anneal
from hw.scheduler.min_peak import minimum_peak
from hw.scheduler.options import OrderChoice, PlanOptions, When
from hw.scheduler.pinch import Segment, join, segments
from hw.scheduler.plan import StageCertificate
from hw.scheduler.problem import Problem
from hw.scheduler.search_tables import scratch_for, tables_of

#: Orders that are evaluated for a segment at effort 1, and the runs they are spread over.
EVALUATIONS, RUNS = 400_000, 4
#: Operator evaluations of one segment: fewer orders are tried of a long one.
_WORK = 40_000_000
#: Orders for each pair of operators: a short segment has few.
_PER_PAIR = 40


@dataclass(frozen=True, kw_only=True)
class Ordering:
    """An order, and what is known of it.

    Members
    -------
    order : tuple of int
        Operators by step.
    bound_words : int
        No order moves fewer avoidable words; 0 when nothing better is known.
    stages : tuple of StageCertificate
        How each kind of segment was decided.
    """

    order: tuple[int, ...]
    bound_words: int
    stages: tuple[StageCertificate, ...]


def find_order(
    problem: Problem, options: PlanOptions, progress: Callable[[str], None] = lambda text: None
) -> Ordering:
    """Choose the order of operators for a scratchpad.

    Raises
    ------
    InputError
        When an operator does not fit even alone.
    """
    if options.order is OrderChoice.DEFAULT:
        order = tuple(range(problem.operator_count))
        return Ordering(order=order, bound_words=0, stages=())
    if options.order is OrderChoice.MIN_PEAK:
        return _least_peak(problem, options)
    capacity = options.capacity
    streaming = options.streaming is not When.NEVER
    parts = segments(problem, capacity if streaming else None)
    orders, searched = [], 0
    for number, part in enumerate(parts, 1):
        peak = minimum_peak(part.problem, seed=options.seed)
        if peak.peak_words <= capacity:
            orders.append(peak.order)
            continue
        searched += 1
        progress(f"ordering segment {number} of {len(parts)}: {part.problem.operator_count} operators")
        orders.append(_search(part, peak.order, options, streaming))
    if searched:
        text = f"annealing over orders in {searched} of {len(parts)} segments"
        stage = StageCertificate(
            stage="order", solver=text, status="heuristic", objective=searched, bound=0, unit="segments"
        )
    else:
        text = "least peak of every segment fits"
        stage = StageCertificate(
            stage="order", solver=text, status="optimal", objective=0, bound=0, unit="segments"
        )
    return Ordering(order=join(parts, orders), bound_words=0, stages=(stage,))


def _least_peak(problem: Problem, options: PlanOptions) -> Ordering:
    peak = minimum_peak(problem, seed=options.seed)
    word = problem.word_bytes
    stage = StageCertificate(
        stage="order",
        solver="least peak",
        status="optimal" if peak.bound_words == peak.peak_words else "heuristic",
        objective=peak.peak_words * word,
        bound=peak.bound_words * word,
        unit="peak bytes",
    )
    return Ordering(order=peak.order, bound_words=0, stages=(stage,))


def _search(
    part: Segment, least_peak: tuple[int, ...], options: PlanOptions, streaming: bool
) -> tuple[int, ...]:
    """Anneal from the default order and from that of least peak; the best order of all runs."""
    problem = part.problem
    tables = tables_of(problem, streaming=streaming)
    work = scratch_for(tables)
    capacity = options.capacity // tables.unit
    count = problem.operator_count
    steps = max(1000, min(EVALUATIONS, _WORK // count, _PER_PAIR * count**2) * options.effort // RUNS)
    hot = max(1.0, float(np.mean(tables.size)))
    best: tuple[int, tuple[int, ...]] | None = None
    for run in range(RUNS):
        start = np.arange(count) if run % 2 else np.array(least_peak, dtype=np.int64)
        seed = options.seed * RUNS + run + 1
        cost, order = anneal(start, capacity, steps, hot, max(0.05, hot / 200), seed, tables, work)
        found = (int(cost), tuple(int(operator) for operator in order))
        if best is None or found[0] < best[0]:
            best = found
        if best[0] == 0:
            break
    assert best is not None
    return best[1]
