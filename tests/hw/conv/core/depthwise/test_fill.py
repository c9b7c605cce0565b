"""Places of the rows of a map in the line buffer, against the formula."""

import random

import pytest

from hw.conv.core.depthwise.fill import Fill, RowPlace
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
    """Maps one after the other, of more than one group of rows, that end in the middle of a ring."""
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
                await ctx.tick().repeat(2)  # the last row is known a cycle late
                bank, base = ctx.get(dut.bank), ctx.get(dut.base)
                assert (bank if job["strip"] else bank & 1, base) == place(job, row), (job, row)
                ctx.set(dut.step, 1)
                await ctx.tick()
                ctx.set(dut.step, 0)

    simulate(dut, bench, limit=2000)


@pytest.mark.parametrize("seed", range(2))
def test_tokens_are_for_rows_that_find_room(seed):
    """One for each row, and none before its row is free, at any pace of the reader; maps in a row."""
    rng = random.Random(f"tokens {seed}")
    dut = Fill(small(bank_words=64))

    async def bench(ctx):
        for _ in range(4):
            rows, slots, columns = rng.randint(1, 20), 2 * rng.randint(1, 4), rng.randint(1, 4)
            sizes = {
                "rows": rows,
                "columns": columns,
                "words": 1,
                "slots": slots,
                "row_words": -(-columns // 2),
            }
            for name, value in {**sizes, "asked": 1}.items():
                ctx.set(dut.job[name], value)
            ctx.set(dut.freed, 0)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            freed = tokens = taken = 0
            while taken < rows * columns or tokens < rows:
                filled = ctx.get(dut.filled)
                assert filled <= min(rows, freed + slots)
                if freed < filled and rng.random() < 0.1:
                    freed += 1
                ctx.set(dut.freed, freed)
                ctx.set(dut.token.ready, rng.random() < (0.3, 1.0)[seed])
                # Words of a row follow its token.
                ctx.set(dut.i.valid, taken < tokens * columns and rng.random() < 0.8)
                taken += ctx.get(dut.i.valid & dut.i.ready)
                tokens += ctx.get(dut.token.valid & dut.token.ready)
                assert tokens <= min(rows, freed + slots)
                await ctx.tick()
            for _ in range(10):
                assert not ctx.get(dut.token.valid)
                await ctx.tick()

    simulate(dut, bench, limit=5000)
