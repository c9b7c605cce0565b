"""Residencies that leave words free where packing fails, until they have addresses.

Two ways, and the better result counts.  The first reserves words of single steps: those in which the searches
for addresses failed most often, a few more each time.  The second gives residency less of the scratchpad in
all steps, and finds by halves how little less is enough.  Where a few steps are crowded the first moves less
by far; where all of them are, the second does.  Forbidding stays one set at a time, which is exact, takes too
long for hundreds of stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hw.scheduler.plan.options import BEST, Techniques
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.address.blocks import HardSteps, Placement
from hw.scheduler.planner.residency.stays import Residency, measure

#: Times that words are reserved before that way is given up.
_ROUNDS = 24

#: What is reserved each time, as a share of the scratchpad.
_RESERVED = 32

#: Steps that failed less often than this share of the worst are left alone.
_HARD = 4

#: Parts the scratchpad is measured in, and the fewest of them that residency is given.
_PARTS, _FEWEST = 128, 64


class Decide(Protocol):
    """Residency for a problem and words of scratchpad."""

    def __call__(self, problem: Problem, words: int, /) -> Residency:
        """Decide."""


class Pack(Protocol):
    """Addresses in the whole scratchpad, by quick searches."""

    def __call__(self, residency: Residency, /) -> Placement:
        """Search."""


@dataclass(frozen=True, kw_only=True)
class WithHeadroom:
    """A residency that has addresses, these, and how it came by them."""

    residency: Residency
    placement: Placement
    note: str


def leave_headroom(
    problem: Problem,
    order: Sequence[int],
    capacity: int,
    *,
    least: int,
    decide: Decide,
    pack: Pack,
    techniques: Techniques = BEST,
) -> WithHeadroom | None:
    """Find a residency that can be placed, with few avoidable words.

    Parameters
    ----------
    problem : Problem
    order : sequence of int
    capacity : int
        Words of the scratchpad.
    least : int
        Words with which every operator fits alone.
    decide, pack
        What decides residency, and what places it.
    techniques : Techniques

    Returns
    -------
    WithHeadroom or None
        None when neither way ended in a packing.
    """
    best = _by_reserve(problem, order, capacity, decide, pack) if techniques.step_headroom else None
    low, high = (_FEWEST if techniques.capacity_headroom else _PARTS), _PARTS
    while high - low > 1:
        middle = (low + high) // 2
        words = max(least, capacity * middle // _PARTS)
        residency = decide(problem, words)
        if best is not None and residency.avoidable_words >= best.residency.avoidable_words:
            low = middle
            continue
        placement = pack(residency)
        if placement.status != "placed":
            high = middle
            continue
        low = middle
        note = f"residency was given {words} of {capacity} words, so that it has addresses"
        best = WithHeadroom(residency=residency, placement=placement, note=note)
    return best


def _by_reserve(
    problem: Problem, order: Sequence[int], capacity: int, decide: Decide, pack: Pack
) -> WithHeadroom | None:
    reserve = [0] * len(order)
    for number in range(_ROUNDS + 1):
        residency = decide(_reserved(problem, order, reserve), capacity)
        peak = measure(problem, order, residency.stays, residency.streams).peak_words
        residency = replace(residency, peak_words=peak)
        placement = pack(residency)
        if placement.status == "placed":
            steps = sum(map(bool, reserve))
            note = (
                f"words of {steps} steps were left free, so that the residency has addresses"
                if number
                else ""
            )
            return WithHeadroom(residency=residency, placement=placement, note=note)
        if not _reserve_more(problem, order, capacity, placement.hard, reserve):
            break
    return None


def _reserve_more(
    problem: Problem, order: Sequence[int], capacity: int, hard: Sequence[HardSteps], reserve: list[int]
) -> bool:
    """Reserve more where it was hard, and beside; tell whether that was possible.

    Never so much that operands that fit whole would have to be streamed.
    """
    unit = math.gcd(*problem.size)
    more = max(unit, capacity // _RESERVED // unit * unit)
    worst = max((steps.failures for steps in hard), default=0)
    changed = False
    for steps in hard:
        if steps.failures * _HARD < worst:
            continue
        for step in range(max(0, steps.first - 1), min(len(order), steps.last + 2)):
            room = max(0, capacity - problem.working_set[order[step]]) // unit * unit
            words = min(reserve[step] + more, room)
            changed |= words > reserve[step]
            reserve[step] = max(words, reserve[step])
    return changed


def _reserved(problem: Problem, order: Sequence[int], reserve: Sequence[int]) -> Problem:
    """Give the problem with words reserved in its steps, as if its operators needed them."""
    if not any(reserve):
        return problem
    operators = list(problem.graph.operators)
    for index, words in zip(order, reserve, strict=True):
        operator = operators[index]
        operators[index] = replace(operator, fifo_bytes=operator.fifo_bytes + words * problem.word_bytes)
    return replace(problem, graph=replace(problem.graph, operators=tuple(operators)))
