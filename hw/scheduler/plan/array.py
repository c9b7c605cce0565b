"""The compute array: how long an operator's arithmetic takes on it, and how a pipelined group shares it."""

from __future__ import annotations

from hw.errors import InputError
from hw.scheduler.graph.graph import Operator


def share_array(operator: Operator, macs_per_cycle: int) -> tuple[int, ...]:
    """Give each member of a group its part of the array so that the slowest is as fast as can be.

    In a cycle count ``T`` member ``i`` needs ``ceil(macs_i / T)`` multipliers.  The least ``T`` for which
    these sum to no more than the array has is found by bisection, and what is left over stays unused.

    Parameters
    ----------
    operator : Operator
        A group, or a plain operator, which gets the whole array.
    macs_per_cycle : int
        Of the whole array.

    Returns
    -------
    tuple of int
        Multiply-accumulates a cycle of each member, at least 1.

    Raises
    ------
    InputError
        When the array has fewer multipliers than the group members.
    """
    if macs_per_cycle < max(1, len(operator.members)):
        legal = f"at least {max(1, len(operator.members))}"
        raise InputError("macs_per_cycle", macs_per_cycle, legal)
    if not operator.members:
        return (macs_per_cycle,)
    macs = [member.macs for member in operator.members]

    def shares(cycles: int) -> tuple[int, ...]:
        return tuple(max(1, -(-each // cycles)) for each in macs)

    low, high = 1, max(1, *macs)  # at high each member needs one multiplier only
    while low < high:
        middle = (low + high) // 2
        if sum(shares(middle)) <= macs_per_cycle:
            high = middle
        else:
            low = middle + 1
    return shares(low)


def compute_cycles(operator: Operator, macs_per_cycle: int) -> int:
    """Give the least cycles of an operator's arithmetic: a group's is its slowest member's.

    Raises
    ------
    InputError
        As `share_array`.
    """
    shares = share_array(operator, macs_per_cycle)
    members = operator.members or (operator,)
    return max(-(-member.macs // share) for member, share in zip(members, shares, strict=True))
