"""Residency and addresses together: what stays in the scratchpad must also have a place there.

Residency is decided by words alone, so its stays can be impossible to pack although no step has too many
words.  Then residency is given less of the scratchpad (capacity headroom); the last resort keeps nothing
between two uses that is not needed, which moves every tensor through memory and always fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from hw.scheduler.plan.options import BEST, Techniques
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.address.address import SECONDS, place
from hw.scheduler.planner.address.blocks import Placement
from hw.scheduler.planner.residency.residency import CRITERIA, keep_nothing, least_capacity, solve_residency
from hw.scheduler.planner.residency.stays import Residency
from hw.scheduler.planner.solvers import milp
from hw.scheduler.planner.solvers.cpsat import Worker
from hw.scheduler.planner.transfers.transfers import blocks_of

#: Parts the scratchpad is measured in, and the fewest of them that residency is given for headroom.
_PARTS, _FEWEST = 128, 64

#: Residencies with headroom are each decided by this share of the nodes.
_HEADROOM_SHARE = 20


class Placed(NamedTuple):
    """A residency with addresses.

    The residency's bound and status hold for all residencies of the order; the placement is that of
    `hw.scheduler.planner.transfers.transfers.blocks_of`, in words.
    """

    residency: Residency
    placement: Placement


def place_residency(
    problem: Problem,
    order: Sequence[int],
    capacity: int,
    *,
    streaming: bool = True,
    time_limit_s: float | None = None,
    node_limit: int = milp.NODE_LIMIT,
    minimise: Sequence[str] = CRITERIA,
    techniques: Techniques = BEST,
    worker: Worker,
) -> Placed:
    """Decide who stays in the scratchpad when, and where.

    ``worker`` is the process for CP-SAT; the rest is as for `solve_residency`.
    """
    seconds = SECONDS if time_limit_s is None else time_limit_s

    def pack(residency: Residency, *, quickly: bool = False) -> Placement:
        blocks = blocks_of(problem, residency.order, residency)
        return place(blocks, capacity, quickly=quickly, seconds=seconds, worker=worker, techniques=techniques)

    decide = partial(solve_residency, problem, order, streaming=streaming, time_limit_s=time_limit_s)
    residency = decide(capacity, minimise=minimise, node_limit=node_limit)
    bound, placement = residency.bound_words, pack(residency)
    notes = [placement.note]
    if placement.status != "placed":
        notes.append(residency.note)
        found = None
        least = least_capacity(problem, order, streaming=streaming)
        # By halves: the most of the scratchpad that leaves residency room for addresses.
        low, high = _FEWEST if techniques.capacity_headroom else _PARTS, _PARTS
        while high - low > 1:
            middle = (low + high) // 2
            words = max(least, capacity * middle // _PARTS)
            residency = decide(words, minimise=("bytes",), node_limit=node_limit // _HEADROOM_SHARE)
            placement = pack(residency, quickly=True)
            if placement.status == "placed":
                low, found = middle, (residency, placement)
                note = f"residency was given {words} of {capacity} words, so that it has addresses"
            else:
                high = middle
        if found is None:
            residency = keep_nothing(problem, order, capacity, streaming=streaming)
            found = residency, pack(residency)
            note = "nothing is kept between two uses: no other residency found addresses"
        residency, placement = found
        notes += [placement.note, note]
    status = "optimal" if residency.avoidable_words == bound else "feasible"
    told = [text for text in dict.fromkeys(notes) if text and text != residency.note]
    return Placed(
        replace(residency, bound_words=bound, status=status), replace(placement, note="; ".join(told))
    )
