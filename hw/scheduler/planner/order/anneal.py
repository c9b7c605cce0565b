"""Simulated annealing over topological orders, compiled.

The only move shifts an operator to another position, together with the operators in between that depend on
it or that it depends on.  So every move is legal, at any distance, and whole chains move at once.  Many short
runs from several orders beat a long one.  All limits are counts, so the arguments determine the result.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hw.scheduler.compiled import compiled
from hw.scheduler.planner.order.evaluate import Scratch, evaluate
from hw.scheduler.planner.order.lattice import Integers, Lattice, copy_into
from hw.scheduler.planner.watch import current

#: Orders that a run evaluates for each operator, up to a number of operators: the nearly independent parts of
#: a large network settle in parallel.
STEPS_PER_OPERATOR, STEPS_OPERATORS = 600, 150

#: Temperatures at a run's beginning and end, in mean tensor sizes; runs take turns.
TEMPERATURES = ((0.1, 0.01), (0.15, 0.05), (0.25, 0.02))

#: One of this many runs continues from the best order instead of a start.
RETURN = 3

Order = tuple[int, ...]


def improve(
    lattice: Lattice,
    capacity: int,
    starts: Sequence[Order],
    seed: int,
    *,
    rounds: int,
    patience: int,
    goal: int = 0,
) -> tuple[int, Order]:
    """Return the avoidable units and the order of the best of the starts and of annealing from each in turn.

    ``capacity``: units. ``starts``: at least one. ``seed``: equal seeds yield equal orders. ``rounds``,
    ``patience``, ``goal``: most runs; most successive runs without an improvement; units that end the search.
    """
    starts, work = list(dict.fromkeys(starts)), Scratch.of(lattice)
    best = min(
        (int(evaluate(np.array(start, dtype=np.int64), capacity, lattice, work)), start) for start in starts
    )
    mean, idle, watch = float(lattice.size.mean()), 0, current()
    for number in range(rounds):
        if best[0] <= goal or idle >= patience or len(best[1]) < 2 or watch.stopped:
            break
        watch.detail(f"annealing, run {number + 1} of {rounds}")
        hot, cold = TEMPERATURES[number // len(starts) % len(TEMPERATURES)]
        start = best[1] if number % RETURN == RETURN - 1 else starts[number % len(starts)]
        units, order = anneal(
            np.array(start, dtype=np.int64),
            capacity,
            STEPS_PER_OPERATOR * min(len(start), STEPS_OPERATORS),
            (mean * hot, mean * cold),
            # Spread out: the runs of one seed must not be those of the next, shifted by one.
            (seed * 0x9E3779B97F4A7C15 + number) & 0x7FFFFFFFFFFFFFFF,
            lattice,
            work,
            watch.flag,
        )
        idle = 0 if units < best[0] else idle + 1
        best = min(best, (int(units), tuple(order.tolist())))
    return best


@compiled
def _random(state: Any) -> float:
    """Return the next number in [0, 1): splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return float(mixed >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def shift(order: Integers, source: int, target: int, lattice: Lattice) -> None:
    """Move the operator at one position beside another, in place, with all dependent operators between."""
    moves = np.zeros(len(order), dtype=np.bool_)
    moves[order[source]] = True
    downwards = target < source
    direction = -1 if downwards else 1
    for position in range(source, target + direction, direction):
        other = order[position]
        for later in lattice.after[lattice.after_first[other] : lattice.after_first[other + 1]]:
            # Downwards the producers of moved operators move too, upwards the consumers.
            if downwards:
                moves[other] |= moves[later]
            elif moves[other]:
                moves[later] = True
    between = order[min(source, target) : max(source, target) + 1]
    along = moves[between]
    first, last = (along, ~along) if downwards else (~along, along)
    copy_into(between, np.concatenate((between[first], between[last])))


@compiled
def anneal(
    order: Integers,
    capacity: int,
    steps: int,
    temperatures: tuple[float, float],
    seed: int,
    lattice: Lattice,
    work: Scratch,
    flag: Integers,
) -> tuple[int, Integers]:
    """Improve an order.

    ``order``: of shape (operators,); the start; topological. ``capacity``: units. ``steps``: orders to
    evaluate; ends earlier at 0 avoidable units. ``temperatures``: at the beginning and the end, in units.
    ``flag``: of shape (1,); see `hw.scheduler.planner.watch.Watch`.

    Returns the avoidable units of the best order, and that order.
    """
    count = len(order)
    state = np.zeros(1, dtype=np.uint64)
    state[0] = np.uint64(seed)
    now, trial, best = order.copy(), order.copy(), order.copy()
    least = cost = evaluate(now, capacity, lattice, work)
    hot, cold = temperatures
    cooling = math.log(cold / hot) / steps
    for done in range(steps):
        if least == 0 or flag[0] != 0:
            break
        temperature = hot * math.exp(cooling * done)
        source = int(_random(state) * count)
        reach = int(math.exp(_random(state) * math.log(count)))
        target = source - reach if _random(state) < 0.5 else source + reach
        target = min(max(target, 0), count - 1)
        if target == source:
            continue
        copy_into(trial, now)
        shift(trial, source, target, lattice)
        found = evaluate(trial, capacity, lattice, work)
        if found <= cost or _random(state) < math.exp((cost - found) / temperature):
            cost = found
            now, trial = trial, now
            if cost < least:
                least = cost
                copy_into(best, now)
    return least, best
