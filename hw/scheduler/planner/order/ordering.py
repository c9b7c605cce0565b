"""The order of operators: decomposition, what is proven at once, and search for the rest.

The problem falls apart at its pinches into segments whose avoidable traffic adds up.  A segment whose least
peak fits moves nothing avoidable: that order is optimal.  An exact search decides most of the others at once.
What it leaves open is bounded, and searched for a good order, which a longer exact search then tries to beat
or to prove.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hw.errors import InputError
from hw.scheduler.plan.options import OrderChoice, PlanOptions, When
from hw.scheduler.plan.plan import StageCertificate
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.bounds import lower_bound
from hw.scheduler.planner.order.cosma import solve_literal
from hw.scheduler.planner.order.exact.exact import NODE_LIMIT, solve_exact
from hw.scheduler.planner.order.exact.min_peak import minimum_peak
from hw.scheduler.planner.order.pinch import join, segments
from hw.scheduler.planner.order.search.kernel import evaluate
from hw.scheduler.planner.order.search.search import search
from hw.scheduler.planner.order.search.tables import scratch_for, tables_of
from hw.scheduler.planner.solvers import milp
from hw.scheduler.planner.solvers.cpsat import Worker

#: States of the exact search before there is a good order; enough for nearly every segment.
_GLANCE = 20_000

_EXACT = "exact search"


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
    problem: Problem,
    options: PlanOptions,
    progress: Callable[[str], None] = lambda text: None,
    *,
    worker: Worker | None = None,
    thorough: bool = True,
) -> Ordering:
    """Choose the order of operators for a scratchpad.

    Parameters
    ----------
    problem : Problem
    options : PlanOptions
    progress : callable
        Told now and then what is being done.
    worker : Worker or None
        Process for CP-SAT; None: one is started when it is needed.
    thorough : bool
        Whether a good order is searched for at length, and to be beaten or proven by the long exact search.
        Of a graph in bands that would prove little: other bands might do better.

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
    if options.order is OrderChoice.COSMA:
        return _published(problem, options)
    capacity = options.capacity
    streaming = options.streaming is not When.NEVER
    parts = segments(problem, capacity if streaming else None)
    decided = []
    for number, part in enumerate(parts, 1):
        peak = minimum_peak(part.problem, seed=options.seed, enough=capacity)
        if peak.peak_words <= capacity:
            decided.append(_Decided(order=peak.order, words=0, bound=0, way="least peak"))
            continue
        progress(f"ordering segment {number} of {len(parts)}: {part.problem.operator_count} operators")
        decided.append(_decide(part.problem, peak.order, options, worker, thorough))
    words, bound = sum(each.words for each in decided), sum(each.bound for each in decided)
    ways = Counter(each.way for each in decided)
    stage = StageCertificate(
        stage="order",
        solver=", ".join(f"{way} in {count} of {len(parts)} segments" for way, count in ways.items()),
        status="optimal" if words == bound else "heuristic",
        objective=words * problem.word_bytes,
        bound=bound * problem.word_bytes,
        note="; ".join(dict.fromkeys(each.note for each in decided if each.note)),
    )
    order = join(parts, [each.order for each in decided])
    return Ordering(order=order, bound_words=bound, stages=(stage,))


def prove(problem: Problem, options: PlanOptions, avoidable_words: int) -> int:
    """Bound the avoidable words of all orders of a problem of which a plan is known.

    Parameters
    ----------
    problem : Problem
    options : PlanOptions
    avoidable_words : int
        The known plan's.

    Returns
    -------
    int
        Words, no more than the known plan's.
    """
    capacity, streaming = options.capacity, options.streaming is not When.NEVER
    bound = 0
    for part in segments(problem, capacity if streaming else None):
        exact = solve_exact(
            part.problem,
            capacity,
            streaming=streaming,
            upper=avoidable_words,
            order_hint=range(part.problem.operator_count),
            node_limit=_GLANCE * options.effort,
        )
        bound += exact.bound_words
        if not exact.proven:
            forced = lower_bound(part.problem, capacity, streaming=streaming, effort=options.effort)
            bound += max(0, forced.words - exact.bound_words)
    return min(bound, avoidable_words)


@dataclass(frozen=True, kw_only=True)
class _Decided:
    """An order of a segment, avoidable words it has a plan with, a bound of all orders, how it was found."""

    order: tuple[int, ...]
    words: int
    bound: int
    way: str
    note: str = ""


def _decide(
    problem: Problem,
    least_peak: tuple[int, ...],
    options: PlanOptions,
    worker: Worker | None,
    thorough: bool,
) -> _Decided:
    """Choose the order of a segment that moves something avoidable."""
    capacity, streaming = options.capacity, options.streaming is not When.NEVER
    starts = (least_peak, tuple(range(problem.operator_count)))
    words, order = min((_words(problem, start, capacity, streaming), start) for start in starts)
    exact = solve_exact(
        problem,
        capacity,
        streaming=streaming,
        upper=words,
        order_hint=order,
        node_limit=_GLANCE * options.effort,
    )
    if exact.proven:
        return _Decided(order=exact.order, words=exact.avoidable_words, bound=exact.bound_words, way=_EXACT)
    forced = lower_bound(problem, capacity, streaming=streaming, upper=words, effort=options.effort)
    bound = max(forced.words, exact.bound_words)
    found = search(
        problem,
        capacity,
        streaming=options.streaming.value,
        seed=options.seed,
        effort=options.effort,
        start_orders=(least_peak,),
        bound_words=bound,
        time_limit_s=options.time_limit_s,
        worker=worker,
        brief=not thorough,
    )
    if not thorough:
        words = found.avoidable_words
        return _Decided(
            order=found.order, words=words, bound=min(bound, words), way="search", note=found.note
        )
    exact = solve_exact(
        problem,
        capacity,
        streaming=streaming,
        upper=found.avoidable_words,
        order_hint=found.order,
        lower=bound,
        node_limit=NODE_LIMIT * options.effort,
    )
    way = _EXACT if exact.order != found.order else "search"
    words, bound = exact.avoidable_words, exact.bound_words
    return _Decided(order=exact.order, words=words, bound=bound, way=way, note=found.note)


def _words(problem: Problem, order: Sequence[int], capacity: int, streaming: bool) -> int:
    """Give avoidable words an order has a plan with; far too many where none was found."""
    tables = tables_of(problem, streaming=streaming)
    plain = np.array(order, dtype=np.int64)
    return int(evaluate(plain, capacity // tables.unit, tables, scratch_for(tables))) * tables.unit


def _published(problem: Problem, options: PlanOptions) -> Ordering:
    """Take the order that COSMA's program finds.

    Its own bound is no bound of ours: a tensor of its model cannot move in the scratchpad between two steps.
    """
    found = solve_literal(problem, options.capacity, limits=milp.Limits(seconds=options.time_limit_s))
    word = problem.word_bytes
    if found.status == "infeasible":
        raise InputError("scratchpad", f"{options.scratchpad_bytes} bytes", "enough for COSMA's program")
    order = found.order or tuple(range(problem.operator_count))
    note = found.note
    if not found.order:
        note = f"COSMA's program gave no order, so it is the graph's: {note}"
    stage = StageCertificate(
        stage="order",
        solver=f"COSMA's program, {found.solver}",
        status="optimal" if found.status == "optimal" else "heuristic",
        objective=found.avoidable_words * word,
        bound=found.bound_words * word,
        note=note,
    )
    bound = prove(problem, options, _words(problem, order, options.capacity, streaming=False))
    return Ordering(order=order, bound_words=bound, stages=(stage,))


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
