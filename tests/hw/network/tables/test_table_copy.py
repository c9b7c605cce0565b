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


def test_rows_of_other_tables_come_while_one_is_copied():
    """A program's tables arrive while commands work: the copy is whole, and made again as one may be new."""
    dut = TableCopy(tables=TABLES)
    rng = random.Random(1)
    stored = [table_words(rng.randbytes(256)) for _ in range(TABLES)]
    lanes = [0] * TABLE_WORDS
    copies = []

    async def bench(ctx):
        for table in range(TABLES):
            # Rows of the next table follow at once, those of the first one before.
            for row in range(TABLE_GROUPS if table == 0 else 0):
                await put(ctx, 0, row)
            set_all(ctx, [(dut.table, table), (dut.begin, 1), (dut.rows.enable, 0)])
            await ctx.tick()
            ctx.set(dut.begin, 0)
            cycles = 0
            while ctx.get(dut.busy):
                write = ctx.get(dut.write)
                if write.enable:
                    lanes[write.row] = write.data
                if table + 1 < TABLES and cycles % 3 == 0 and cycles // 3 < TABLE_GROUPS:
                    await put(ctx, table + 1, cycles // 3)
                else:
                    ctx.set(dut.rows.enable, 0)
                    await ctx.tick()
                cycles += 1
            copies.append(cycles)
            assert lanes == stored[table]

    async def put(ctx, table, row):
        group, place = stored[table][row * GROUP_WORDS :][:GROUP_WORDS], table * TABLE_GROUPS + row
        set_all(ctx, [(dut.rows.enable, 1), (dut.rows.row, place), (dut.rows.data, group)])
        await ctx.tick()

    simulate(dut, bench)
    assert copies == [COPY_CYCLES] * TABLES
