"""Addresses: rectangles of steps by words, packed into a scratchpad of given height.

Greedy packings fit most plans.  Many short searches on a skyline pack nearly all the others up to the last
word.  CP-SAT comes last, and also proves that no packing exists.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from hw.scheduler.plan.options import BEST, Techniques
from hw.scheduler.planner.address.blocks import AddressBlock, Placement, hardest_first, live_in_steps, squeeze
from hw.scheduler.planner.address.fitting import NOWHERE, first_fit
from hw.scheduler.planner.address.skyline import search_addresses
from hw.scheduler.planner.solvers import SolverError
from hw.scheduler.planner.solvers.cpsat import Worker
from hw.scheduler.planner.watch import current

#: Safety net of wall-clock time for a packing.
SECONDS = 600.0

#: Seconds a solver process may take to start.
_START_S = 5.0

#: Conflicts of each CP-SAT search of a round.
CONFLICTS = (160, 1280)

#: Work of each, in OR-tools' deterministic time: ten times the most that a successful search took.  A
#: conflict among hundreds of blocks can take a hundred times as long as one among dozens.
WORK = 0.25

#: Searches on a skyline.
SEARCHES = 40

#: Above this number of blocks there are half as many searches, and no CP-SAT, which would take minutes.
MANY = 300


def place(
    blocks: Sequence[AddressBlock],
    capacity: int,
    *,
    seconds: float = SECONDS,
    worker: Worker,
    techniques: Techniques = BEST,
) -> Placement:
    """Find addresses for all blocks.

    ``capacity``: words. ``seconds``: safety net of wall-clock time: placements are equal for equal arguments
    unless their note says that it was met.
    """
    if not blocks:
        return Placement(addresses=(), height=0, live=0, status="placed", solver="nothing to place")
    squeezed = squeeze(blocks)
    live = max(live_in_steps(squeezed))
    if live > capacity:
        return Placement(addresses=(), height=0, live=live, status="infeasible", solver="live words")
    unit = math.gcd(*(block.size for block in blocks))
    scaled = [replace(block, size=block.size // unit) for block in squeezed]
    lasting = [block.last - block.first + 1 for block in blocks]
    found = _search(scaled, lasting, capacity // unit, seconds, worker, techniques)
    addresses = tuple(address * unit for address in found.addresses)
    ends = (address + block.size for address, block in zip(addresses, blocks, strict=False))
    return replace(found, addresses=addresses, height=max(ends, default=0), live=live)


def _search(
    blocks: list[AddressBlock],
    lasting: list[int],
    capacity: int,
    seconds: float,
    worker: Worker,
    techniques: Techniques,
) -> Placement:
    """Place squeezed blocks; ``lasting`` are their true lengths in steps."""
    orders = hardest_first(blocks, lasting)
    found = Placement(addresses=(), height=0, live=0, status="unknown", solver="first-fit")
    for order in orders.values() if techniques.greedy_packing else ():
        addresses = first_fit(blocks, order, capacity)
        if NOWHERE not in addresses:
            return replace(found, status="placed", addresses=addresses)
    many = len(blocks) > MANY
    if techniques.skyline_search:
        searches = SEARCHES // 2 if many else SEARCHES
        status, addresses = search_addresses(blocks, lasting, capacity, searches=searches)
        found = replace(found, status=status, addresses=addresses, solver="skyline search")
    if found.status != "unknown" or many or not techniques.exact_packing or current().stopped:
        return found
    payload = {
        "blocks": [[block.first, block.last, block.size] for block in blocks],
        "capacity": capacity,
        "attempts": [
            {"order": orders[name], "presolve": presolve, "conflicts": conflicts, "work": WORK}
            for conflicts in CONFLICTS
            for name, presolve in _ATTEMPTS
        ],
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
        note = f"stopped by the limit of {CONFLICTS[-1]} conflicts, or of as much work"
    return replace(
        found,
        status=answer["status"],
        addresses=tuple(answer["addresses"]),
        solver=f"CP-SAT {answer['version']}",
        note=note,
    )


#: Searches of a round: the order of blocks, and whether CP-SAT may rewrite the model first.  These pack the
#: MiniMalloc instances and random perfect packings in the fewest conflicts.
_ATTEMPTS = (("contended", False), ("area", True), ("contended-area", False), ("long", True))
