"""Residency and addresses together: what stays in the scratchpad must also have a place there.

Residency is decided by words alone, so its stays can be impossible to pack although no step has too many
words.  Then those that cost least are not kept (eviction); the last resort keeps nothing between two uses,
which moves every tensor through memory and always fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hw.scheduler.plan.options import BEST, Techniques
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.address.address import SECONDS, place
from hw.scheduler.planner.address.blocks import Placement, hardest_first, live_in_steps, squeeze
from hw.scheduler.planner.address.fitting import NOWHERE, fit_most
from hw.scheduler.planner.residency.residency import CRITERIA, keep_nothing, solve_residency
from hw.scheduler.planner.residency.stays import Residency, Stay, events_of, measure, steps_of
from hw.scheduler.planner.solvers import milp
from hw.scheduler.planner.solvers.cpsat import Worker
from hw.scheduler.planner.transfers.transfers import blocks_of

#: Times that stays without addresses are cut, each time fewer.
_ROUNDS = 12

#: Price of leaving out what a step cannot do without.
_NEEDED = 1 << 40


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
    residency = solve_residency(
        problem,
        order,
        capacity,
        streaming=streaming,
        time_limit_s=time_limit_s,
        node_limit=node_limit,
        minimise=minimise,
    )
    placement = place(
        blocks_of(problem, residency.order, residency),
        capacity,
        seconds=SECONDS if time_limit_s is None else time_limit_s,
        worker=worker,
        techniques=techniques,
    )
    bound, notes = residency.bound_words, [placement.note]
    if placement.status != "placed":
        notes.append(residency.note)
        found = _evict(problem, residency, capacity) if techniques.eviction else None
        if found is None:
            note = "nothing is kept between two uses: no other residency found addresses"
            found = _fitted(problem, keep_nothing(problem, order, capacity, streaming=streaming), capacity)
        else:
            more = found.residency.avoidable_words - residency.avoidable_words
            note = f"{more} words more are moved, so that all stays have addresses"
        residency, placement = found
        notes.append(note)
    status = "optimal" if residency.avoidable_words == bound else "feasible"
    told = [text for text in dict.fromkeys(notes) if text and text != residency.note]
    return Placed(
        replace(residency, bound_words=bound, status=status), replace(placement, note="; ".join(told))
    )


def _evict(problem: Problem, residency: Residency, capacity: int) -> Placed | None:
    """Cut stays that find no addresses to the steps that use them, until all do; None where that fails."""
    for _ in range(_ROUNDS):
        found = _fitted(problem, residency, capacity)
        left = [index for index, address in enumerate(found.placement.addresses) if address == NOWHERE]
        if not left:
            return found
        if any(index >= len(residency.stays) for index in left):
            return None
        stays = [stay for index, stay in enumerate(residency.stays) if index not in left]
        for index in left:
            events = _events(problem, residency, index)
            if len(events) == 1:
                return None
            tensor = residency.stays[index].tensor
            stays += [Stay(tensor=tensor, first_step=step, last_step=step) for step in events]
        measured = measure(problem, residency.order, stays, residency.streams)
        residency = replace(residency, stays=tuple(sorted(stays)), **measured._asdict())
    return None


def _events(problem: Problem, residency: Residency, index: int) -> list[int]:
    """Give the steps of a stay that touch its tensor."""
    stay = residency.stays[index]
    events = events_of(problem, steps_of(problem, residency.order), stay.tensor)
    return [step for step in events if stay.first_step <= step <= stay.last_step]


def _fitted(problem: Problem, residency: Residency, capacity: int) -> Placed:
    """Give addresses to what matters most; the other stays lie `NOWHERE`."""
    blocks = blocks_of(problem, residency.order, residency)
    prices = [_NEEDED] * len(blocks)
    for index, stay in enumerate(residency.stays):
        gaps = len(_events(problem, residency, index)) - 1
        if gaps:
            spills = problem.producer[stay.tensor] >= 0 and not problem.written[stay.tensor]
            prices[index] = (gaps + spills) * problem.size[stay.tensor]
    squeezed = squeeze(blocks)
    orders = hardest_first(squeezed, [block.last - block.first + 1 for block in blocks])
    addresses = fit_most(squeezed, prices, capacity, list(orders.values()))
    ends = (address + block.size for address, block in zip(addresses, blocks, strict=True))
    live = max(live_in_steps(squeezed))
    placement = Placement(
        addresses=addresses, height=max(ends), live=live, status="placed", solver="first-fit with eviction"
    )
    return Placed(residency, placement)
