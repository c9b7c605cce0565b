"""Residency and addresses together: what stays in the scratchpad must also have a place there.

Residency is decided by words alone, so its stays can be impossible to pack although no step has too many
words.  Then the stays that cannot lie together are forbidden together (a no-good), residency is decided
again, and so on. A forbidden set that is proven impossible loses no plan, so that the words stay optimal for
the order.  Where that takes too long, as it does for hundreds of stays, residency is given less of the
scratchpad (capacity headroom); the last resort keeps nothing between two uses that is not needed, which moves
every tensor through memory and always fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hw.scheduler.plan.options import BEST, Techniques
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.address.address import MANY, ROUNDS, SECONDS, find_conflict, place
from hw.scheduler.planner.address.blocks import Placement
from hw.scheduler.planner.residency.residency import CRITERIA, keep_nothing, least_capacity, solve_residency
from hw.scheduler.planner.residency.stays import Residency, Stay
from hw.scheduler.planner.solvers import milp
from hw.scheduler.planner.solvers.cpsat import Worker
from hw.scheduler.planner.transfers.transfers import blocks_of

#: Conflicts that are forbidden before words are left free.
REPAIRS = 12

#: Parts the scratchpad is measured in, and the fewest of them that residency is given for headroom.
_PARTS, _FEWEST = 128, 64

#: Residencies with headroom are each decided by this share of the nodes.
_HEADROOM_SHARE = 20


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A residency with addresses.

    The residency's bound and status hold for all residencies of the order that can be placed; the placement
    is that of `hw.scheduler.planner.transfers.transfers.blocks_of`, in words.  ``repairs`` are the conflicts
    that were forbidden.
    """

    residency: Residency
    placement: Placement
    repairs: int


def place_residency(
    problem: Problem,
    order: Sequence[int],
    capacity: int,
    *,
    streaming: bool = True,
    time_limit_s: float | None = None,
    node_limit: int = milp.NODE_LIMIT,
    minimise: Sequence[str] = CRITERIA,
    repairs: int = REPAIRS,
    techniques: Techniques = BEST,
    worker: Worker,
) -> Placed:
    """Decide who stays in the scratchpad when, and where.

    ``repairs`` are the conflicts to forbid at the most, ``worker`` is the process for CP-SAT; the rest,
    errors too, is as for `solve_residency`.
    """
    seconds = SECONDS if time_limit_s is None else time_limit_s

    def decide(
        words: int, criteria: Sequence[str], nodes: int, forbid: Sequence[Sequence[Stay]] = ()
    ) -> Residency:
        return solve_residency(
            problem,
            order,
            words,
            streaming=streaming,
            time_limit_s=time_limit_s,
            node_limit=nodes,
            minimise=criteria,
            forbid=forbid,
        )

    def pack(residency: Residency, *, quickly: bool = False) -> Placement:
        blocks = blocks_of(problem, residency.order, residency)
        rounds = 0 if quickly else 1 if len(blocks) > MANY else ROUNDS
        return place(blocks, capacity, rounds=rounds, seconds=seconds, worker=worker, techniques=techniques)

    forbid: list[tuple[Stay, ...]] = []
    proven = True
    bound = 0
    said: dict[str, None] = {}  # what went wrong on the way, too, once each
    most = repairs if techniques.forbidden_sets else 0
    while True:
        residency = decide(capacity, minimise, node_limit, forbid)
        if proven:
            bound = residency.bound_words
        placement = pack(residency)
        said |= dict.fromkeys((residency.note, placement.note))
        blocks = blocks_of(problem, residency.order, residency)
        # Of many blocks nothing is known but that a limit was met: no small set could be forbidden.
        if placement.status == "placed" or len(forbid) == most or len(blocks) > MANY:
            break
        conflict, certain = find_conflict(
            blocks, capacity, seconds=seconds, worker=worker, techniques=techniques
        )
        stays = tuple(
            Stay(tensor=residency.stays[index].tensor, first_step=block.first, last_step=block.last)
            for index, block in conflict
            if index < len(residency.stays)
        )
        forbid.append(stays)
        proven = proven and certain
    note = f"{len(forbid)} sets of stays without addresses were avoided" if forbid else ""
    if not proven:
        note += ", not all of them proven to have none"
    if placement.status != "placed":
        found = _with_headroom(
            capacity,
            least_capacity(problem, order, streaming=streaming),
            lambda words: decide(words, ("bytes",), node_limit // _HEADROOM_SHARE),
            lambda residency: pack(residency, quickly=True),
            _FEWEST if techniques.capacity_headroom else _PARTS,
        )
        if found is None:
            residency = keep_nothing(problem, order, capacity, streaming=streaming)
            placement = pack(residency)
            note = "nothing is kept between two uses: no other residency found addresses"
        else:
            residency, placement, note = found
        said |= dict.fromkeys((residency.note, placement.note))
    notes = [text for text in dict.fromkeys([*said, note]) if text and text != residency.note]
    status = "optimal" if residency.avoidable_words == bound else "feasible"
    return Placed(
        residency=replace(residency, bound_words=bound, status=status),
        placement=replace(placement, note="; ".join(notes)),
        repairs=len(forbid),
    )


def _with_headroom(
    capacity: int,
    least: int,
    decide: Callable[[int], Residency],
    pack: Callable[[Residency], Placement],
    fewest: int,
) -> tuple[Residency, Placement, str] | None:
    """Find by halves how much less of the scratchpad lets a residency have addresses; say how it was done."""
    found = None
    low, high = fewest, _PARTS
    while high - low > 1:
        middle = (low + high) // 2
        words = max(least, capacity * middle // _PARTS)
        residency = decide(words)
        placement = pack(residency)
        if placement.status == "placed":
            low = middle
            note = f"residency was given {words} of {capacity} words, so that it has addresses"
            found = residency, placement, note
        else:
            high = middle
    return found
