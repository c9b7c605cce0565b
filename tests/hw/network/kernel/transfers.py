"""Drawn transfers, and the conditions under which each may run."""

from __future__ import annotations

import random
from typing import Any

from hw.network.config import NetworkConfig
from hw.scheduler.program.program import TransferWord

BASE = 0x1_0000_0040


def drawn_transfers(rng: random.Random, count: int, config: NetworkConfig) -> list[TransferWord]:
    """Return transfers to places that do not overlap, with rising steps from 0 on."""
    found, dram, address, step = [], rng.randrange(9), rng.randrange(9), 0
    for _ in range(count):
        words = rng.choice([1, 1, 2, 3, rng.randint(4, 40)])
        words = min(words, max(1, (config.shape.words - address) // 2))
        found.append(TransferWord(dram_address=dram, address=address, words=words, start_step=step))
        dram += words + rng.choice([0, 0, 1, 5])
        address += words + rng.choice([0, 0, 1])
        step += rng.choice([0, 0, 1, 2])
    return found


def payload(transfer: TransferWord) -> dict[str, int]:
    """Return a transfer as the engines' streams have it."""
    return {
        "dram": transfer.dram_address,
        "address": transfer.address,
        "words": transfer.words,
        "start_step": transfer.start_step,
        "ring": 0,
        "core": 0,
    }


async def raise_steps(ctx: Any, signal: Any, steps: int, rng: random.Random) -> None:
    """Raise a count of steps from 0 to ``steps``, at drawn times."""
    for count in range(steps + 1):
        ctx.set(signal, count)
        for _ in range(rng.choice([0, 1, 20, 60])):
            await ctx.tick()
