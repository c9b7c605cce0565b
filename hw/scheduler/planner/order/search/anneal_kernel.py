"""Simulated annealing over topological orders, compiled.

The one move: an operator goes to another place, and what stands between and must stay on its side of it goes
along.  So every move is legal, near ones and far ones, and whole chains move at once.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from hw.scheduler.planner.order.search.kernel import evaluate
from hw.scheduler.planner.order.search.tables import Integers, Scratch, Tables

_compiled: Any = numba.njit(cache=True)


@_compiled
def _random(state: Any) -> float:
    """Give the next number in [0, 1): splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return float(mixed >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@_compiled
def shift(order: Integers, source: int, target: int, tables: Tables, mark: Integers, spare: Integers) -> None:
    """Move the operator at ``source`` to the side of ``target``, in place, with all that must go along.

    Parameters
    ----------
    order : shape (operators,)
    source, target : int
        Positions.
    mark : shape (operators,)
        All zero; is so afterwards.
    spare : shape (operators,)
        Overwritten.
    """
    operator = order[source]
    mark[operator] = 1
    taken = 0
    if target < source:
        # Downwards: an operator goes along when one that already does reads what it writes.
        for position in range(source, target - 1, -1):
            other = order[position]
            goes = mark[other] == 1
            if not goes:
                for index in range(tables.after_first[other], tables.after_first[other + 1]):
                    if mark[tables.after[index]] == 1:
                        goes = True
                        break
            if goes:
                mark[other] = 1
                taken += 1
        low, high, front = target, target, target + taken
    else:
        for position in range(source, target + 1):
            other = order[position]
            goes = mark[other] == 1
            if not goes:
                for index in range(tables.before_first[other], tables.before_first[other + 1]):
                    if mark[tables.before[index]] == 1:
                        goes = True
                        break
            if goes:
                mark[other] = 1
                taken += 1
        low, front = source, source
        high = target + 1 - taken
    end = max(source, target) + 1
    for position in range(low, end):
        other = order[position]
        if mark[other] == 1:
            spare[high] = other
            high += 1
            mark[other] = 0
        else:
            spare[front] = other
            front += 1
    order[low:end] = spare[low:end]


@_compiled
def anneal(
    order: Integers,
    capacity: int,
    steps: int,
    hot: float,
    cold: float,
    seed: int,
    tables: Tables,
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
    cost = evaluate(now, capacity, tables, work)
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
        shift(trial, source, target, tables, mark, spare)
        found = evaluate(trial, capacity, tables, work)
        if found <= cost or _random(state) < math.exp((cost - found) / temperature):
            cost = found
            now, trial = trial, now
            if cost < least:
                least = cost
                best[:] = now
    return least, best
