"""Addresses by few searches, and where those failed: for whoever can change what is to be packed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hw.scheduler.blocks import (
    Block,
    HardSteps,
    Placement,
    hardest_first,
    live_in_steps,
    pack_greedily,
    separate,
    squeeze,
)
from hw.scheduler.skyline import search_addresses

#: Searches on a skyline: the blocks in each order without chance, and once changed at random.
_SEARCHES = 10


def place_quickly(blocks: Sequence[Block], capacity: int) -> Placement:
    """Find addresses for all blocks by greedy packings and few searches on a skyline.

    Parameters
    ----------
    blocks : sequence of Block
    capacity : int
        Words.

    Returns
    -------
    Placement
        Equal for equal arguments.  When it is not ``placed``, ``hard`` tells of all parts where it failed.
    """
    squeezed = squeeze(blocks)
    live = max(live_in_steps(squeezed), default=0)
    unit = math.gcd(*(block.size for block in blocks)) or 1
    addresses = [0] * len(blocks)
    solvers: dict[str, None] = {}
    notes: dict[str, None] = {}
    failures: dict[int, int] = {}
    status = "placed"
    for part in separate(squeezed):
        scaled = [replace(squeezed[index], size=squeezed[index].size // unit) for index in part]
        lasting = [blocks[index].last - blocks[index].first + 1 for index in part]
        solver, note, found = pack_greedily(scaled, hardest_first(scaled, lasting), capacity // unit)
        notes |= dict.fromkeys([note] if note else [])
        if not found:
            solver = "skyline search"
            searched = search_addresses(
                [block.first for block in scaled],
                [block.last for block in scaled],
                [block.size for block in scaled],
                lasting,
                capacity // unit,
                searches=_SEARCHES,
            )
            found = list(searched.addresses)
            if searched.status != "placed":
                status = "unknown"
                failures |= {step: count for step, count in enumerate(searched.failures) if count}
        solvers[solver] = None
        for index, address in zip(part, found, strict=False):
            addresses[index] = address * unit
    if status != "placed":
        addresses = []
    ends = [address + block.size for address, block in zip(addresses, blocks, strict=False)]
    return Placement(
        addresses=tuple(addresses),
        height=max(ends, default=0),
        live=live,
        status=status,
        solver=", ".join(solvers),
        note="; ".join(notes),
        hard=_hard(blocks, failures),
    )


def _hard(blocks: Sequence[Block], failures: dict[int, int]) -> tuple[HardSteps, ...]:
    """Give the steps that squeezed ones stand for, the most failures first."""
    begins = sorted({block.first for block in blocks})
    ends = [*(begin - 1 for begin in begins[1:]), max((block.last for block in blocks), default=0)]
    ranked = sorted(failures.items(), key=lambda item: (-item[1], item[0]))
    return tuple(HardSteps(first=begins[step], last=ends[step], failures=count) for step, count in ranked)
