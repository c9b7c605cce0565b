"""The least avoidable traffic of a problem over all orders and residencies, with proof.

All down-sets are listed first; the heaviest moment that is still to come bounds what is to be paid from
each of them.  The search then works off what was executed level by level
(`hw.scheduler.planner.order.exact_kernel`), and leaves out what is bound to cost a limit.  Limits rise up
to a plan that is known: each is proven to be a bound, or passed by the best plan of all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.downsets import DownSets, peaks_ahead, survey
from hw.scheduler.planner.order.exact_kernel import EXHAUSTED, FOUND, Run, search
from hw.scheduler.planner.order.lattice import FoundOrder, Lattice
from hw.scheduler.planner.watch import current

#: States of a search at most.
NODE_LIMIT = 1_000_000

#: Comparisons of states for each state: where they are many, their number is what takes the time.
_COMPARISONS = 200

#: Down-sets for which there is room: where they are more, there is no use in a search.
_DOWN_SETS = 250_000

#: Limits below the known plan that are tried, that itself last: each is much less work than the next.
_LIMITS = 8


def solve_exact(
    problem: Problem,
    capacity: int,
    *,
    streaming: bool,
    upper: int,
    order_hint: Sequence[int],
    lower: int = 0,
    node_limit: int = NODE_LIMIT,
) -> FoundOrder:
    """Find the least avoidable traffic over all orders and residencies, or bound it.

    The words are what the order costs with the best residency; of the hint, what it was said to cost.

    ``capacity``: words of the scratchpad. ``streaming``: whether a tensor may pass through a window instead
    of lying whole in the scratchpad. ``upper``: avoidable words of a known plan: only plans that cost less
    are searched for. ``order_hint``: the known plan's order. ``lower``: avoidable words that are known to be
    paid by every plan. ``node_limit``: states to look at, and for which there is memory: some 100 bytes each.
    """
    lattice = Lattice.of(problem, streaming=streaming)
    capacity //= lattice.unit
    limit, proven = -(-upper // lattice.unit), -(-lower // lattice.unit)
    sets = DownSets.of(lattice, _DOWN_SETS)
    flag = current().flag
    if survey(sets, lattice, flag):
        run = Run.of(lattice, sets, capacity, node_limit)
        for price in (1, 2):
            heaviest = peaks_ahead(sets, lattice.weighed(price))
            run.ahead[:] = np.maximum(run.ahead, heaviest - price * capacity)
        proven = max(proven, int(run.ahead[0]))
        step = max(1, -(-(limit - proven) // _LIMITS))
        for below in (*range(proven + step, limit, step), limit):
            if below <= proven:
                break
            end, order, units = search(run._replace(upper=below), _COMPARISONS * node_limit, flag)
            if end == FOUND:
                words = int(units) * lattice.unit
                return FoundOrder(tuple(order.tolist()), words, words)
            if end != EXHAUSTED:
                break
            proven = below
    bound = upper if proven >= limit else proven * lattice.unit
    return FoundOrder(tuple(order_hint), upper, bound)
