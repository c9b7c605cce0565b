"""Residency and addresses together: what is decided to stay must also have a place.

The residency counts words only; that they lie in one piece each is checked by packing them.  Where a packing
fails, the stays that cannot lie together are forbidden together and the residency is decided again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hw.errors import InputError
from hw.scheduler.address import Block, Placement, find_conflict, place
from hw.scheduler.options import PlanOptions
from hw.scheduler.plan import StageCertificate
from hw.scheduler.problem import Problem
from hw.scheduler.residency import CRITERIA, Residency, Stay, solve_residency
from hw.scheduler.solvers.cpsat import Worker
from hw.scheduler.transfers import rectangles

#: Conflicts learned before the scratchpad is taken for smaller than it is.
REPAIRS = 12
#: Parts of the scratchpad that each further try goes without.
_SHRINK = 64


@dataclass(frozen=True, kw_only=True)
class Settled:
    """A residency that has addresses.

    Members
    -------
    residency : Residency
        Its ``bound_words`` is what no residency of this order is below, whatever was forbidden on the way.
    addresses : tuple of int
        In words, of `hw.scheduler.transfers.rectangles` in their order.
    stages : tuple of StageCertificate
        What is known of the addresses.
    """

    residency: Residency
    addresses: tuple[int, ...]
    stages: tuple[StageCertificate, ...]


def settle(problem: Problem, order: Sequence[int], options: PlanOptions, *, worker: Worker) -> Settled:
    """Decide residency and addresses for an order.

    Raises
    ------
    InputError
        When an operator does not fit, or no addresses are found even for a residency that keeps nothing.
    """
    minimise = tuple(criterion for criterion in CRITERIA if criterion in options.objective)
    if "transfers" in minimise and "peak" not in minimise:
        minimise = CRITERIA
    capacity = options.capacity
    forbid: list[tuple[Stay, ...]] = []
    bound: int | None = None
    for repair in range(REPAIRS + _SHRINK):
        try:
            residency = solve_residency(
                problem,
                order,
                capacity,
                streaming=options.streaming.value,
                minimise=minimise,
                time_limit_s=options.time_limit_s,
                forbid=forbid,
            )
        except InputError:
            if not forbid or repair >= REPAIRS:
                raise
            # Everything was forbidden: from here on a smaller scratchpad is asked for.
            forbid, capacity = [], capacity - max(1, options.capacity // _SHRINK)
            continue
        bound = residency.bound_words if bound is None else bound
        blocks = [
            Block(first=shape.first, last=shape.last, size=shape.size)
            for shape in rectangles(problem, order, residency)
        ]
        placement = place(blocks, options.capacity, seconds=options.time_limit_s, worker=worker)
        if placement.status == "placed":
            return _settled(problem, residency, placement, bound, repair)
        learned = _learn(residency, blocks, options, worker) if repair < REPAIRS else ()
        if learned:
            forbid.append(learned)
        else:
            forbid, capacity = [], capacity - max(1, options.capacity // _SHRINK)
    raise InputError("scratchpad", f"{options.scratchpad_bytes} bytes", "large enough to pack the operands")


def _learn(
    residency: Residency, blocks: Sequence[Block], options: PlanOptions, worker: Worker
) -> tuple[Stay, ...]:
    """Name stays that must not all be there, cut to the steps in which they conflict."""
    conflict, _ = find_conflict(blocks, options.capacity, worker=worker)
    return tuple(
        replace(residency.stays[index], first_step=block.first, last_step=block.last)
        for index, block in conflict
        if index < len(residency.stays)
    )


def _settled(
    problem: Problem, residency: Residency, placement: Placement, bound: int, repairs: int
) -> Settled:
    word = problem.word_bytes
    notes = [placement.note] if placement.note else []
    if repairs:
        notes.append(f"{repairs} residencies before had no addresses")
    stage = StageCertificate(
        stage="address",
        solver=placement.solver,
        status="optimal" if placement.height == placement.live else "feasible",
        objective=placement.height * word,
        bound=placement.live * word,
        note="; ".join(notes),
    )
    proven = residency.avoidable_words == bound
    status = "optimal" if proven else "feasible"
    return Settled(
        residency=replace(residency, bound_words=bound, status=status),
        addresses=placement.addresses,
        stages=(stage,),
    )
