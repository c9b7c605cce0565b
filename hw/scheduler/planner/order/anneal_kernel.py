"""Simulated annealing over topological orders, compiled.

The one move: an operator goes to another place, and what stands between and must stay on its side of it goes
along.  So every move is legal, near ones and far ones, and whole chains move at once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hw.scheduler.planner.order.evaluate import Scratch, evaluate
from hw.scheduler.planner.order.lattice import Integers, Lattice, compiled


@compiled
def _random(state: Any) -> float:
    """Give the next number in [0, 1): splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return float(mixed >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def shift(
    order: Integers, source: int, target: int, lattice: Lattice, mark: Integers, spare: Integers
) -> None:
    """Move the operator at ``source`` to the side of ``target``, in place, with all that must go along.

    Parameters
    ----------
    order : shape (operators,)
    source, target : int
        Positions.
    lattice : Lattice
    mark : shape (operators,)
        All zero; is so afterwards.
    spare : shape (operators,)
        Overwritten.
    """
    mark[order[source]] = 1
    taken = 0
    downwards = target < source
    direction = -1 if downwards else 1
    for position in range(source, target + direction, direction):
        other = order[position]
        for index in range(lattice.after_first[other], lattice.after_first[other + 1]):
            # Downwards goes along what writes for another one that does, upwards what reads from one.
            if downwards:
                mark[other] |= mark[lattice.after[index]]
            elif mark[other] == 1:
                mark[lattice.after[index]] = 1
        taken += mark[other]
    low, end = min(source, target), max(source, target) + 1
    moved, left = (low, low + taken) if downwards else (end - taken, low)
    for position in range(low, end):
        other = order[position]
        if mark[other] == 1:
            spare[moved] = other
            moved += 1
        else:
            spare[left] = other
            left += 1
    order[low:end] = spare[low:end]
    mark[:] = 0


@compiled
def anneal(
    order: Integers,
    capacity: int,
    steps: int,
    hot: float,
    cold: float,
    seed: int,
    lattice: Lattice,
    work: Scratch,
) -> tuple[int, Integers]:
    """Improve an order.

    Parameters
    ----------
    order : shape (operators,)
        Where to start; topological.
    capacity : int
        Units.
    steps : int
        Orders to evaluate; ends earlier at 0 avoidable units.
    hot, cold : float
        Temperature at the beginning and the end, in units.
    seed : int

    Returns
    -------
    tuple of int and array
        Avoidable units of the best order, and that order.
    """
    count = len(order)
    state = np.zeros(1, dtype=np.uint64)
    state[0] = np.uint64(seed)
    mark = np.zeros(count, dtype=np.int64)
    spare = np.zeros(count, dtype=np.int64)
    now = order.copy()
    trial = order.copy()
    best = order.copy()
    cost = evaluate(now, capacity, lattice, work)
    least = cost
    cooling = math.log(cold / hot) / steps
    for done in range(steps):
        if least == 0 or count < 2:
            break
        temperature = hot * math.exp(cooling * done)
        source = int(_random(state) * count)
        reach = int(math.exp(_random(state) * math.log(count)))
        target = source - reach if _random(state) < 0.5 else source + reach
        target = min(max(target, 0), count - 1)
        if target == source:
            continue
        trial[:] = now
        shift(trial, source, target, lattice, mark, spare)
        found = evaluate(trial, capacity, lattice, work)
        if found <= cost or _random(state) < math.exp((cost - found) / temperature):
            cost = found
            now, trial = trial, now
            if cost < least:
                least = cost
                best[:] = now
    return least, best
