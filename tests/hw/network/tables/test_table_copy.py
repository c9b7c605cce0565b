# amaranth: UnusedElaboratable=no
"""The copy of a table: all of its words, once for commands one after the other, again when rows change."""

import random

from hw.network.tables.layouts import GROUP_WORDS, TABLE_GROUPS, TABLE_WORDS, table_words
from hw.network.tables.table_copy import COPY_CYCLES, TableCopy
from tests.support.gateware.streams import set_all, simulate

TABLES = 4


def test_lanes_have_the_table_that_was_asked_for():
    dut = TableCopy(tables=TABLES)
    rng = random.Random(0)
    stored = [table_words(rng.randbytes(256)) for _ in range(TABLES)]
    lanes = [0] * TABLE_WORDS
    copies = []

    async def store(ctx, table):
        for row in range(TABLE_GROUPS):
            group, place = stored[table][row * GROUP_WORDS :][:GROUP_WORDS], table * TABLE_GROUPS + row
            set_all(ctx, [(dut.rows.enable, 1), (dut.rows.row, place), (dut.rows.data, group)])
            await ctx.tick()
        ctx.set(dut.rows.enable, 0)

    async def ask(ctx, table):
        set_all(ctx, [(dut.table, table), (dut.begin, 1)])
        await ctx.tick()
        ctx.set(dut.begin, 0)
        cycles = 0
        while ctx.get(dut.busy):
            write = ctx.get(dut.write)
            if write.enable:
                lanes[write.row] = write.data
            cycles += 1
            await ctx.tick()
        copies.append(cycles)
        assert lanes == stored[table]

    async def bench(ctx):
        for table in range(TABLES):
            await store(ctx, table)
        for table in (2, 2, 0, 3, 3, 2):
            await ask(ctx, table)
        stored[2] = table_words(rng.randbytes(256))
        await store(ctx, 2)
        await ask(ctx, 2)

    simulate(dut, bench)
    assert copies == [COPY_CYCLES, 0, COPY_CYCLES, COPY_CYCLES, 0, COPY_CYCLES, COPY_CYCLES]
