"""The order of operators: quick proofs, then search.

If the least peak fits, no avoidable word moves: that order is optimal.  A short exact search decides most
other problems.  The rest is bounded and annealed; a longer exact search then tries to beat the annealed order
or to prove it.
"""

from dataclasses import dataclass, replace
from functools import partial

from hw.errors import InputError
from hw.scheduler.plan.options import OrderChoice, PlanOptions
from hw.scheduler.plan.plan import StageCertificate
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.anneal import Order, improve
from hw.scheduler.planner.order.cosma import solve_published
from hw.scheduler.planner.order.evaluate import avoidable_words
from hw.scheduler.planner.order.exact import NODE_LIMIT, solve_exact
from hw.scheduler.planner.order.lattice import FoundOrder, Lattice
from hw.scheduler.planner.order.min_peak import minimum_peak
from hw.scheduler.planner.order.windows import LONG, improve_windows
from hw.scheduler.planner.watch import current

#: States of the first exact search, before annealing; enough for nearly every network.
_GLANCE = 20_000

#: Most annealing runs at effort 1, and successive runs without a better order that end it.
_RUNS, _PATIENCE = 24, 12

#: The same for long orders, after their windows: runs times the square of operators; runs without success.
_LONG_WORK, _LONG_PATIENCE = 800_000, 4

_EXACT = "exact search"


@dataclass(frozen=True, kw_only=True)
class Ordering:
    """An order, its bound and its certificates."""

    order: tuple[int, ...]  #: Operators by step.
    bound_words: int  #: No order moves fewer avoidable words; 0 when no better bound is known.
    stages: tuple[StageCertificate, ...]  #: The stages that decided it.


def find_orders(problem: Problem, options: PlanOptions, *, thorough: bool = True) -> list[Ordering]:
    """Return orders of operators that are good for a scratchpad, the most promising first.

    A proven or requested order is the only one, and a long network has one.  Otherwise the intermediate
    orders of the search are included: they are judged greedily, so that a later one may turn out worse.

    ``thorough``: whether to run the long annealing and the long exact search. For a graph in bands its proof
    means little: other bands might be better.
    """
    if options.order is OrderChoice.DEFAULT:
        order = tuple(range(problem.operator_count))
        return [Ordering(order=order, bound_words=0, stages=())]
    if options.order is OrderChoice.MIN_PEAK:
        peak = minimum_peak(problem, seed=options.seed, techniques=options.techniques)
        return [_certified(problem, peak, "least peak", proven=peak.proven, bound_words=0, unit="peak bytes")]
    if options.order is OrderChoice.COSMA:
        return [_published(problem, options)]
    orders = _decide(problem, options, thorough)
    (best, method), bound = orders[-1], orders[-1][0].bound_words
    if best.proven or problem.operator_count > LONG:
        return [_certified(problem, best, method, proven=best.proven, bound_words=bound)]
    known: dict[Order, Ordering] = {}
    for found, method in reversed(orders):
        bounded = found._replace(bound_words=bound)
        known.setdefault(found.order, _certified(problem, bounded, method, proven=False, bound_words=bound))
    return list(known.values())


def _certified(
    problem: Problem, found: FoundOrder, method: str, *, proven: bool, bound_words: int, **more: str
) -> Ordering:
    """Certify how an order was found; ``bound_words`` bounds the avoidable words of all orders."""
    stage = StageCertificate(
        stage="order",
        solver=method,
        status="optimal" if proven else "heuristic",
        objective=found.words * problem.word_bytes,
        bound=found.bound_words * problem.word_bytes,
        **more,
    )
    return Ordering(order=found.order, bound_words=bound_words, stages=(stage,))


def prove(problem: Problem, options: PlanOptions, avoidable_words: int) -> StageCertificate:
    """Bound the avoidable bytes of all orders of a problem with a known plan.

    Returns the stage ``bound``, with a bound no larger than the known plan's bytes.
    """
    order = tuple(range(problem.operator_count))
    found = _exact(problem, options, avoidable_words, order, 0, _GLANCE)
    return StageCertificate(
        stage="bound",
        solver=_EXACT,
        status="optimal" if found.bound_words == avoidable_words else "heuristic",
        objective=avoidable_words * problem.word_bytes,
        bound=found.bound_words * problem.word_bytes,
    )


def _decide(problem: Problem, options: PlanOptions, thorough: bool) -> list[tuple[FoundOrder, str]]:
    """Return the orders of the search, the chosen one last, each with its method."""
    peak = minimum_peak(problem, seed=options.seed, enough=options.capacity, techniques=options.techniques)
    if peak.words <= options.capacity:
        return [(FoundOrder(peak.order, 0, 0), "least peak")]
    starts = (tuple(range(problem.operator_count)), peak.order)
    lattice = Lattice.of(problem, streaming=options.streams)
    annealed = partial(improve, lattice, options.capacity // lattice.unit, seed=options.seed, starts=starts)
    units, order = annealed(rounds=0, patience=0)
    exact = _exact(problem, options, units * lattice.unit, order, 0, _GLANCE)
    if exact.proven:
        return [(exact, _EXACT)]
    orders = [(exact, "greedy replay")]
    tell = partial(current().best, placed=False)
    tell(exact.words * problem.word_bytes, exact.bound_words * problem.word_bytes)
    if options.techniques.annealing:
        share = options.effort if thorough else options.effort / 2
        goal, rounds, patience = exact.bound_words // lattice.unit, _RUNS, _PATIENCE
        if problem.operator_count > LONG:
            better = improve_windows(
                lattice, options.capacity // lattice.unit, order, options.seed, goal=goal
            )
            annealed = partial(annealed, starts=(better[1],))
            rounds, patience = _LONG_WORK // problem.operator_count**2, _LONG_PATIENCE
        units, order = annealed(rounds=int(share * rounds), patience=int(share * patience), goal=goal)
    found = FoundOrder(order, units * lattice.unit, exact.bound_words)
    tell(found.words * problem.word_bytes, found.bound_words * problem.word_bytes)
    orders.append((found, "annealing"))
    if thorough and options.techniques.long_exact_search:
        found = _exact(problem, options, found.words, order, exact.bound_words, NODE_LIMIT)
        orders.append((found, "annealing" if found.order == order else _EXACT))
    return orders


def _exact(
    problem: Problem, options: PlanOptions, upper: int, hint: Order, lower: int, nodes: int
) -> FoundOrder:
    """Search for a better plan than a known one, and for a bound of all orders."""
    if not options.techniques.exact_search:
        return FoundOrder(hint, upper, lower)
    return solve_exact(
        problem,
        options.capacity,
        streaming=options.streams,
        upper=upper,
        order_hint=hint,
        lower=lower,
        node_limit=nodes * options.effort,
    )


def _published(problem: Problem, options: PlanOptions) -> Ordering:
    """Take the order of COSMA's program.

    Its bound does not hold for our plans: in its model a tensor keeps its address while it is preserved.
    """
    order, found = solve_published(problem, options.capacity, seconds=options.time_limit_s)
    if found.status == "infeasible":
        raise InputError("scratchpad", f"{options.scratchpad_bytes} bytes", "enough for COSMA's program")
    note = found.note
    if not order:
        order = tuple(range(problem.operator_count))
        note = f"COSMA's program gave no order, so it is the graph's: {note}"
    words = avoidable_words(problem, order, options.capacity, streaming=options.streams)
    stage = prove(problem, options, words)
    ordering = _certified(
        problem,
        FoundOrder(order, found.objective, found.bound),
        f"COSMA's program, {found.solver}",
        proven=found.status == "optimal",
        bound_words=stage.bound // problem.word_bytes,
        note=note,
    )
    return replace(ordering, stages=(*ordering.stages, stage))
