"""The order with the least peak of live words (COSMA's MPMF, arXiv 2311.18246, equations 13 to 15).

This problem has no spills: in a scratchpad of the peak's size a plan moves no avoidable word.  A tensor is
live from the step that writes it (a source from its first use) to its last use.  Orders are searched best
first, and annealed if there are too many.
"""

from collections.abc import Sequence

from hw.scheduler.plan.options import BEST, Techniques
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.anneal import improve
from hw.scheduler.planner.order.downsets import DownSets, least_peak
from hw.scheduler.planner.order.lattice import FoundOrder, Lattice
from hw.scheduler.planner.residency.stays import events_of, steps_of
from hw.scheduler.planner.watch import current

#: Most down-sets before the proof is abandoned.
STATE_LIMIT = 400_000

#: Most operators of an annealed problem, and successive failed runs at one capacity before a peak counts as
#: the least.
ANNEALED_OPERATORS, PATIENCE = 200, 6


def minimum_peak(
    problem: Problem,
    *,
    seed: int = 0,
    state_limit: int = STATE_LIMIT,
    enough: int = 0,
    techniques: Techniques = BEST,
) -> FoundOrder:
    """Find the order with the least peak of live words.

    ``seed``: of annealing, for a problem too wide for the proof. ``state_limit``: most down-sets in memory.
    ``enough``: a peak that need not be lowered further.
    """
    # The given order is often good; a search only looks for better ones.
    order = tuple(range(problem.operator_count))
    peak, bound = peak_of(problem, order), max(problem.working_set)
    target = max(bound, enough)
    if peak > target:
        lattice = Lattice.of(problem)
        floor = target // lattice.unit
        reached, found = least_peak(DownSets.of(lattice, state_limit), floor, lattice, current().flag)
        if reached > floor:
            bound = int(reached) * lattice.unit
        if len(found):
            order = tuple(found.tolist())
            peak = peak_of(problem, order)
        elif techniques.least_peak_annealing and len(order) <= ANNEALED_OPERATORS:
            order, peak = _anneal(problem, lattice, order, max(bound, enough), seed)
    return FoundOrder(order, peak, min(peak, bound))


def peak_of(problem: Problem, order: Sequence[int]) -> int:
    """Return the most live words in one step of an order, FIFOs included."""
    steps, words = steps_of(problem, order), [problem.fifo[operator] for operator in order]
    for tensor, size in enumerate(problem.size):
        events = events_of(problem, steps, tensor)
        for number in range(events[0], events[-1] + 1):
            words[number] += size
    return max(words)


def _anneal(
    problem: Problem, lattice: Lattice, order: tuple[int, ...], target: int, seed: int
) -> tuple[tuple[int, ...], int]:
    """Lower the peak of an order as far as possible.

    An order's peak is within a capacity exactly when its avoidable traffic there is 0.  So the search for
    traffic, one unit below the best peak so far, also searches for peaks, by a measure over every step.
    """
    given, peak = order, peak_of(problem, order)
    while peak > target and not current().stopped:
        units, found = improve(
            lattice, peak // lattice.unit - 1, (order, given), seed, rounds=PATIENCE, patience=PATIENCE
        )
        if units > 0:
            break
        order, peak = found, peak_of(problem, found)
    return order, peak
