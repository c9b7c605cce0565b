"""Residency and addresses together: every stay in the scratchpad needs an address.

Residency is decided by words alone, so its stays can be impossible to pack although no step has too many
words.  Then the cheapest stays are evicted, from this residency or from one for a slightly smaller
scratchpad.  The last resort keeps no tensor between two uses, which always fits.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from hw.scheduler.plan.options import BEST, Techniques
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.address.address import SECONDS, place
from hw.scheduler.planner.address.blocks import Placement, hardest_first, live_in_steps, squeeze
from hw.scheduler.planner.address.fitting import NOWHERE, fit_most
from hw.scheduler.planner.residency.residency import CRITERIA, keep_nothing, least_capacity, solve_residency
from hw.scheduler.planner.residency.stays import Residency, Stay, events_of, measure, steps_of
from hw.scheduler.planner.solvers import milp
from hw.scheduler.planner.solvers.cpsat import Worker
from hw.scheduler.planner.transfers.transfers import blocks_of

#: Rounds of eviction.
_ROUNDS = 12

#: Parts of the scratchpad (of 128) for which residency is decided, in turn; the divisor of the node limit for
#: all but the first.
_SHARES, _SHARE_OF_NODES = (128, 124, 120, 116), 20

#: Price of leaving out a block that its step needs.
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
    """Decide which tensors stay in the scratchpad in which steps, and at which addresses.

    ``worker`` is the process for CP-SAT; the rest is as for `solve_residency`.
    """
    decide = partial(solve_residency, problem, order, streaming=streaming, time_limit_s=time_limit_s)
    residency = decide(capacity, minimise=minimise, node_limit=node_limit)
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
        found, least = None, least_capacity(problem, order, streaming=streaming)
        for share in _SHARES if techniques.eviction else ():
            # With a smaller capacity, residency leaves holes for addresses, so fewer stays are evicted.
            words, nodes = max(least, capacity * share // _SHARES[0]), node_limit // _SHARE_OF_NODES
            tried = residency if share == _SHARES[0] else decide(words, minimise=("bytes",), node_limit=nodes)
            if found is not None and tried.avoidable_words >= found.residency.avoidable_words:
                break
            made = _evict(problem, tried, capacity)
            if made is not None and (
                found is None or made.residency.avoidable_words < found.residency.avoidable_words
            ):
                found = made
        if found is None:
            note = "nothing is kept between two uses: no other residency found addresses"
            found = _fitted(problem, keep_nothing(problem, order, capacity, streaming=streaming), capacity)
        else:
            more = found.residency.avoidable_words - residency.avoidable_words
            note = f"{more} words more are moved, so that all stays have addresses"
        residency, placement = found
        notes.append(note)
    status = "optimal" if residency.avoidable_words == bound else "feasible"
    shown = [text for text in dict.fromkeys(notes) if text and text != residency.note]
    return Placed(
        replace(residency, bound_words=bound, status=status), replace(placement, note="; ".join(shown))
    )


def _evict(problem: Problem, residency: Residency, capacity: int) -> Placed | None:
    """Cut stays without an address to the steps that use them, until all have one; None if that fails."""
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
    """Return the steps of a stay that touch its tensor."""
    stay = residency.stays[index]
    events = events_of(problem, steps_of(problem, residency.order), stay.tensor)
    return [step for step in events if stay.first_step <= step <= stay.last_step]


def _fitted(problem: Problem, residency: Residency, capacity: int) -> Placed:
    """Place the blocks with the highest prices; the other stays lie `NOWHERE`."""
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
