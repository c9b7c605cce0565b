"""The compute array: cycles of an operator's arithmetic, and its shares among a pipelined group."""

import bisect

from hw.errors import check_range
from hw.scheduler.graph.graph import Operator


def share_array(operator: Operator, macs_per_cycle: int) -> tuple[int, ...]:
    """Assign each member of a group at least 1 multiplier, so that the slowest member is as fast as possible.

    A plain operator uses the whole array of ``macs_per_cycle``.  In ``T`` cycles member ``i`` needs
    ``ceil(macs_i / T)`` multipliers.  Bisection finds the least ``T`` at which these fit the array; the rest
    of the array stays unused.  InputError when the array has fewer multipliers than the group members.
    """
    check_range("macs_per_cycle", macs_per_cycle, len(operator.chain))
    if not operator.members:
        return (macs_per_cycle,)

    def shares(cycles: int) -> tuple[int, ...]:
        return tuple(max(1, -(-member.macs // cycles)) for member in operator.members)

    # In as many cycles as the largest member has macs, each member needs one multiplier.
    most = max(1, *(member.macs for member in operator.members))
    fits = bisect.bisect_left(range(most), True, lo=1, key=lambda t: sum(shares(t)) <= macs_per_cycle)
    return shares(fits)


def compute_cycles(operator: Operator, macs_per_cycle: int) -> int:
    """Return the least cycles of an operator's arithmetic; of a group, those of its slowest member.

    They are at least its ``least_cycles``.  Raises InputError like `share_array`.
    """
    shares = share_array(operator, macs_per_cycle)
    return max(
        max(-(-member.macs // share), member.least_cycles)
        for member, share in zip(operator.chain, shares, strict=True)
    )
