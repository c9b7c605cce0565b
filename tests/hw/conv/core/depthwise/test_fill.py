"""Where rows of a map lie in the line buffer, against the formula."""

import random

import pytest

from hw.conv.core.depthwise.fill import RowPlace
from tests.hw.conv.core.plain import small
from tests.support.gateware.streams import simulate


def place(job, row):
    """Bank and first word of a row."""
    slot, words = row % job["slots"], job["row_words"]
    if not job["strip"]:
        return slot & 1, (slot >> 1) * words
    split = job["split"]
    group, inner = slot >> split + 2, slot & (1 << split) - 1
    return slot >> split & 3, (group << split | inner) * words


@pytest.mark.parametrize("seed", range(2))
def test_rows_lie_in_turn(seed):
    """Maps one after the other, of more groups of rows than one, left in the middle of a ring."""
    rng = random.Random(seed)
    dut = RowPlace(small(bank_words=1024))
    jobs = [
        {
            "strip": strip,
            "split": split,
            "slots": rng.randint(1, 3) * (4 << split if strip else 2),
            "row_words": rng.randint(1, 9),
        }
        for strip, split in [(1, 0), (1, 1), (0, 0), (1, 2), (1, 1), (0, 0)]
    ]
    jobs[1]["slots"], jobs[3]["slots"] = 16, 48  # two groups, and three

    async def bench(ctx):
        for job in jobs:
            for name, value in job.items():
                ctx.set(dut.job[name], value)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            for row in range(job["slots"] * 2 + rng.randint(1, 3)):
                await ctx.tick().repeat(2)  # what is last is known a cycle late
                bank, base = ctx.get(dut.bank), ctx.get(dut.base)
                assert (bank if job["strip"] else bank & 1, base) == place(job, row), (job, row)
                ctx.set(dut.step, 1)
                await ctx.tick()
                ctx.set(dut.step, 0)

    simulate(dut, bench, limit=2000)
