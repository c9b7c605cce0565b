"""The least avoidable traffic of a problem over all orders and residencies, with proof.

All down-sets are listed first.  The heaviest later moment of each bounds the traffic that is still to be
paid.  The search (`hw.scheduler.planner.order.exact_kernel`) then proceeds level by level, by the number of
executed operators, and prunes states whose bound reaches a limit.  Limits rise up to a known plan: each limit
is proven to be a bound, or the best plan of all is found below it.
"""

from collections.abc import Sequence

import numpy as np

from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.downsets import DownSets, peaks_ahead, survey
from hw.scheduler.planner.order.exact_kernel import EXHAUSTED, FOUND, SearchState, search
from hw.scheduler.planner.order.lattice import FoundOrder, Lattice
from hw.scheduler.planner.watch import current

#: Most states of a search.
NODE_LIMIT = 1_000_000

#: Most comparisons of states for each state: they dominate the time of large searches.
_COMPARISONS = 200

#: Most down-sets: with more, a search is hopeless.
_DOWN_SETS = 250_000

#: Limits tried, the last of which is the known plan: each is much less work than the next.
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

    The words returned are the order's cost with the best residency; for the hint they are ``upper``.

    * ``capacity``: words of the scratchpad.
    * ``streaming``: whether a tensor may pass through a window instead of lying whole in the scratchpad.
    * ``upper``, ``order_hint``: avoidable words and order of a known plan; only cheaper plans are searched.
    * ``lower``: avoidable words that every plan pays.
    * ``node_limit``: most states; each takes some 100 bytes of memory.
    """
    lattice = Lattice.of(problem, streaming=streaming)
    capacity //= lattice.unit
    limit, proven = -(-upper // lattice.unit), -(-lower // lattice.unit)
    sets = DownSets.of(lattice, _DOWN_SETS)
    flag = current().flag
    if survey(sets, lattice, flag):
        run = SearchState.of(lattice, sets, capacity, node_limit)
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
