"""Addresses: rectangles of steps by words, packed into a scratchpad of given height.

First greedy packings, which fit most plans; then many short searches on a skyline, which
pack nearly all the others up to the last word; then CP-SAT, which also proves that nothing fits.  Steps that
no rectangle joins are packed apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hw.scheduler.plan.options import BEST, Techniques
from hw.scheduler.planner.address.blocks import (
    Block,
    Placement,
    first_fit,
    hardest_first,
    live_in_steps,
    separate,
    squeeze,
)
from hw.scheduler.planner.address.skyline import search_addresses
from hw.scheduler.planner.solvers import SolverError
from hw.scheduler.planner.solvers.cpsat import Worker

#: Safety net of wall-clock time for a packing.
SECONDS = 600.0

#: Seconds a solver process may take to start.
_START_S = 5.0

#: Conflicts of each CP-SAT search in the first round; a round more has eight times as many.
FIRST_CONFLICTS = 160

#: Rounds of CP-SAT searches before giving up.
ROUNDS = 2

#: Searches on a skyline in each round; and where nothing else is to follow.
SEARCHES, QUICK_SEARCHES = 20, 10

#: Blocks above which CP-SAT is asked only where all rounds are asked for.
MANY = 150


def place(
    blocks: Sequence[Block],
    capacity: int,
    *,
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
    worker: Worker,
    techniques: Techniques = BEST,
) -> Placement:
    """Find addresses for all blocks, if there are any.

    Parameters
    ----------
    blocks : sequence of Block
    capacity : int
        Words.
    rounds : int
        Rounds of searches. 0: few of them, and no CP-SAT.
    seconds : float
        Safety net of wall-clock time for each part that no block joins to the others: placements are equal
        for equal arguments unless their note says that it was met.
    worker : Worker
        Process for CP-SAT.
    techniques : Techniques
    """
    if not blocks:
        return Placement(addresses=(), height=0, live=0, status="placed", solver="nothing to place")
    squeezed = squeeze(blocks)
    live = max(live_in_steps(squeezed))
    if live > capacity:
        return Placement(addresses=(), height=0, live=live, status="infeasible", solver="live words")
    unit = math.gcd(*(block.size for block in blocks))
    addresses = [0] * len(blocks)
    parts: list[Placement] = []
    for part in separate(squeezed):
        scaled = [replace(squeezed[index], size=squeezed[index].size // unit) for index in part]
        lasting = [blocks[index].last - blocks[index].first + 1 for index in part]
        found = _place_part(scaled, lasting, capacity // unit, rounds, seconds, worker, techniques)
        parts.append(found)
        if found.status != "placed":
            break
        for index, address in zip(part, found.addresses, strict=True):
            addresses[index] = address * unit
    placed = parts[-1].status == "placed"
    ends = (address + block.size for address, block in zip(addresses, blocks, strict=True))
    return Placement(
        addresses=tuple(addresses) if placed else (),
        height=max(ends) if placed else 0,
        live=live,
        status=parts[-1].status,
        solver=", ".join(dict.fromkeys(part.solver for part in parts)),
        note="; ".join(dict.fromkeys(part.note for part in parts if part.note)),
    )


def _place_part(
    blocks: list[Block],
    lasting: list[int],
    capacity: int,
    rounds: int,
    seconds: float,
    worker: Worker,
    techniques: Techniques,
) -> Placement:
    """Place squeezed blocks; ``lasting`` are their true lengths in steps."""
    orders = hardest_first(blocks, lasting)
    found = Placement(
        addresses=(), height=0, live=max(live_in_steps(blocks)), status="unknown", solver="first-fit"
    )
    for order in orders.values() if techniques.greedy_packing else ():
        addresses = first_fit(blocks, order)
        if all(low + block.size <= capacity for low, block in zip(addresses, blocks, strict=True)):
            return replace(found, status="placed", addresses=addresses)
    if techniques.skyline_search:
        searches = SEARCHES * rounds if rounds else QUICK_SEARCHES
        status, addresses = search_addresses(blocks, lasting, capacity, searches=searches)
        found = replace(found, status=status, addresses=addresses, solver="skyline search")
    # Many blocks take CP-SAT minutes.
    hasty = not rounds or (rounds < ROUNDS and len(blocks) > MANY)
    if found.status != "unknown" or hasty or not techniques.exact_packing:
        return found
    attempts = [
        {"order": orders[name], "presolve": presolve, "conflicts": FIRST_CONFLICTS * 8**number}
        for number in range(rounds)
        for name, presolve in _ATTEMPTS
    ]
    payload = {
        "blocks": [[block.first, block.last, block.size] for block in blocks],
        "capacity": capacity,
        "attempts": attempts,
        "seconds": seconds,
    }
    try:
        answer = worker.pack(payload, seconds=2 * seconds + _START_S)
    except SolverError as error:
        return replace(found, note=f"CP-SAT was not available ({error})")
    note = ""
    if answer["timed"]:
        note = f"stopped by the time limit of {seconds:g} s: may differ from run to run"
    elif answer["status"] == "unknown":
        note = f"stopped by the limit of {attempts[-1]['conflicts']} conflicts"
    return replace(
        found,
        status=answer["status"],
        addresses=tuple(answer["addresses"]),
        solver=f"CP-SAT {answer['version']}",
        note=note,
    )


#: Searches of a round: the order of blocks, and whether CP-SAT may rewrite the model first.  Chosen by what
#: packs the MiniMalloc instances and random perfect packings in the fewest conflicts.
_ATTEMPTS = (("contended", False), ("area", True), ("contended-area", False), ("long", True))
