"""The compute array: how long an operator's arithmetic takes on it, and how a pipelined group shares it."""

from __future__ import annotations

import bisect

from hw.errors import InputError
from hw.scheduler.graph.graph import Operator


def share_array(operator: Operator, macs_per_cycle: int) -> tuple[int, ...]:
    """Assign each member of a group its multipliers, at least 1, so that the slowest is as fast as can be; a
    plain operator gets the whole array of ``macs_per_cycle``.

    In ``T`` cycles member ``i`` needs ``ceil(macs_i / T)`` multipliers.  The least ``T`` for which these sum
    to no more than the array has is found by bisection, and what is left over stays unused.  InputError when
    the array has fewer multipliers than the group members.
    """
    if macs_per_cycle < len(operator.chain):
        raise InputError("macs_per_cycle", macs_per_cycle, f"at least {len(operator.chain)}")
    if not operator.members:
        return (macs_per_cycle,)

    def shares(cycles: int) -> tuple[int, ...]:
        return tuple(max(1, -(-member.macs // cycles)) for member in operator.members)

    # In as many cycles as the largest has macs, each member needs one multiplier only.
    most = max(1, *(member.macs for member in operator.members))
    fits = bisect.bisect_left(range(most), True, lo=1, key=lambda t: sum(shares(t)) <= macs_per_cycle)
    return shares(fits)


def compute_cycles(operator: Operator, macs_per_cycle: int) -> int:
    """Return the least cycles of an operator's arithmetic: a group's is its slowest member's.

    Raises InputError as `share_array`.
    """
    shares = share_array(operator, macs_per_cycle)
    return max(-(-member.macs // share) for member, share in zip(operator.chain, shares, strict=True))
