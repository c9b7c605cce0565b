"""Drawn transfers, and the conditions under which each may run."""

from __future__ import annotations

import random
from typing import Any

from hw.network.config import NetworkConfig
from hw.network.program.program import Transfer

BASE = 0x1_0000_0040


def drawn_transfers(rng: random.Random, count: int, config: NetworkConfig) -> list[Transfer]:
    """Return transfers to places that do not overlap, with rising counts from 0 on."""
    found, dram, address, needs = [], rng.randrange(9), rng.randrange(9), [0, 0, 0, 0]
    for _ in range(count):
        words = rng.choice([1, 1, 2, 3, rng.randint(4, 40)])
        words = min(words, max(1, (config.shape.words - address) // 2))
        found.append(
            Transfer(
                dram_address=dram, address=address, words=words, starts=tuple(needs[:3]), others=needs[3]
            )
        )
        dram += words + rng.choice([0, 0, 1, 5])
        address += words + rng.choice([0, 0, 1])
        needs[rng.randrange(4)] += rng.choice([0, 0, 1, 2])
    return found


def read_payload(transfer: Transfer) -> dict[str, int]:
    """Return a transfer to the scratchpad, likewise."""
    found = payload(transfer)
    rows = transfer.gathered
    gather = {"some": 0, "rows": 0, "table": 0, "last": 0}
    if rows is not None:
        found["item"]["words"] //= rows.rows
        gather = {"some": 1, "rows": rows.rows, "table": rows.table, "last": rows.table_rows - 1}
    found["item"]["gather"] = gather
    return found


def payload(transfer: Transfer) -> dict[str, int]:
    """Return a transfer as the engines' streams have it."""
    return {
        "needs": {"finished": [*transfer.starts], "others": transfer.others},
        "item": {"dram": transfer.dram_address, "address": transfer.address, "words": transfer.words},
    }


def set_counts(ctx: Any, dut: Any, counts: tuple[int, ...]) -> None:
    """Set the counts of finished commands, and of transfers of the other direction."""
    *finished, others = counts
    ctx.set(dut.counts, {"finished": finished, "others": others})


async def raise_counts(ctx: Any, dut: Any, last: Transfer, rng: random.Random) -> None:
    """Raise the counts from 0 to those that the last transfer needs, one by one, at drawn times."""
    needs, counts = (*last.starts, last.others), [0, 0, 0, 0]
    while True:
        set_counts(ctx, dut, tuple(counts))
        for _ in range(rng.choice([0, 1, 20, 60])):
            await ctx.tick()
        left = [n for n, need in enumerate(needs) if counts[n] < need]
        if not left:
            return
        counts[rng.choice(left)] += 1


def may_run(transfer: Transfer, counts: Any) -> bool:
    """Tell whether counts, as `set_counts` sets them, have reached those that a transfer needs."""
    reached = [*counts["finished"], counts["others"]]
    return all(
        count >= need for count, need in zip(reached, (*transfer.starts, transfer.others), strict=True)
    )
