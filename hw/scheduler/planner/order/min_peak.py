"""The order with the least peak of live words (COSMA's MPMF, arXiv 2311.18246, equations 13 to 15).

Nothing is ever spilled in this problem: with as many words as the peak a plan moves nothing avoidable.  A
tensor is alive from the step that writes it (what lies off chip first: from its first use) to its last use.
The problem falls apart at its cut vertices; each part is searched best first from a bound that minimum cuts
give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hw.errors import InputError
from hw.scheduler.plan.options import BEST, Techniques
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.anneal import min_peak_search
from hw.scheduler.planner.order.cut_vertices import join, segments
from hw.scheduler.planner.order.cuts import forced_peak
from hw.scheduler.planner.order.lattice import Lattice
from hw.scheduler.planner.order.min_peak_kernel import States, beam, best_first, order_to

#: Down-sets that are looked at in one part before the proof is given up.
STATE_LIMIT = 400_000

#: States of a level that go on when it is given up; each is tried, the best order counts.
_WIDTHS = (30, 300, 1000)

#: Room for the states of all levels; a width for which it is too little is left out.
_BEAM_STATES = 2_000_000

#: Operators up to which what a beam leaves open is annealed as well.
ANNEALED_OPERATORS = 200


@dataclass(frozen=True, kw_only=True)
class MinPeak:
    """An order with a low peak.

    Members
    -------
    order : tuple of int
        Operators by step.
    peak_words, bound_words : int
        The order's peak, and what no order's peak is below; the order is optimal when they are equal.
    """

    order: tuple[int, ...]
    peak_words: int
    bound_words: int


def minimum_peak(
    problem: Problem,
    *,
    seed: int = 0,
    state_limit: int = STATE_LIMIT,
    enough: int = 0,
    techniques: Techniques = BEST,
) -> MinPeak:
    """Find the order with the least peak of live words.

    Parameters
    ----------
    problem : Problem
    seed : int
        Of the choice between equally good states, where a part is too wide for the proof.
    state_limit : int
        Down-sets to look at in each part, and for which there is memory.
    techniques : Techniques
    enough : int
        Words below which no peak need be. Where no order is as low as that, one with a low peak will do.

    Raises
    ------
    InputError
        When ``state_limit`` is not positive.
    """
    if state_limit < 1:
        raise InputError("state_limit", state_limit, "at least 1")
    parts = segments(problem)
    found = [_part(part.problem, seed, state_limit, enough, techniques) for part in parts]
    return MinPeak(
        order=join(parts, [part.order for part in found]),
        peak_words=max(part.peak_words for part in found),
        bound_words=max(part.bound_words for part in found),
    )


def peak_of(problem: Problem, order: Sequence[int]) -> int:
    """Give the most words alive in one step of an order, first-in first-out buffers included."""
    step = {operator: number for number, operator in enumerate(order)}
    words = [problem.fifo[operator] for operator in order]
    for tensor, size in enumerate(problem.size):
        uses = [step[operator] for operator in problem.consumers[tensor]]
        if problem.producer[tensor] >= 0:
            uses.append(step[problem.producer[tensor]])
        for number in range(min(uses), max(uses) + 1):
            words[number] += size
    return max(words)


def _part(problem: Problem, seed: int, state_limit: int, enough: int, techniques: Techniques) -> MinPeak:
    # The given order is often good; a search need not find one that is no better.
    order = tuple(range(problem.operator_count))
    peak = peak_of(problem, order)
    lattice = Lattice.of(problem)
    bound = int(lattice.whole.max())
    if techniques.min_cut_bound:
        bound = max(bound, forced_peak(lattice))
    target = max(bound * lattice.unit, enough)
    widths: tuple[int, ...] = ()
    if peak > target > enough > 0:
        widths = _WIDTHS[:1]
    elif peak > target:
        floor = target // lattice.unit
        states = states_for(lattice, state_limit)
        reached, goal = best_first(states, floor, lattice)
        if reached > floor:
            bound = reached
        if goal >= 0:
            order = _order(states, goal, lattice)
            peak = peak_of(problem, order)
        else:
            widths = _WIDTHS
    for width in widths if techniques.least_peak_beam else ():
        states = states_for(lattice, _BEAM_STATES)
        goal = beam(states, max(bound, enough // lattice.unit), width, seed, lattice)
        found = _order(states, goal, lattice) if goal >= 0 else order
        if peak_of(problem, found) < peak:
            order, peak = found, peak_of(problem, found)
        if peak <= enough:
            break
    # A scratchpad that is given is searched for orders that fit it by whoever gives it.
    annealed = techniques.least_peak_annealing and problem.operator_count <= ANNEALED_OPERATORS
    if widths and not enough and annealed:
        peak, order = min_peak_search(
            problem, seed=seed, start_orders=(order,), bound_words=bound * lattice.unit
        )
    return MinPeak(order=order, peak_words=peak, bound_words=min(peak, bound * lattice.unit))


def _order(states: States, goal: int, lattice: Lattice) -> tuple[int, ...]:
    return tuple(map(int, order_to(states, goal, lattice)))


def states_for(lattice: Lattice, limit: int) -> States:
    """Make room for states of a search; memory is touched as it fills up, but for the hash table."""
    width = lattice.before.shape[1]
    return States(
        done=np.zeros((limit + 1, width), dtype=np.int64),
        ready=np.zeros((limit + 1, width), dtype=np.int64),
        fact=np.zeros((limit + 1, 5), dtype=np.int64),
        table=np.full(1 << (2 * limit + 1).bit_length(), -1, dtype=np.int64),
    )
