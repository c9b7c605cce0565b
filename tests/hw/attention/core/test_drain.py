# amaranth: UnusedElaboratable=no
"""Results of any number of rows and beats leave in order, from the bank they are in, whoever takes them."""

import random

import pytest

from hw.attention.config import RESULT_BANKS
from hw.attention.core.drain import Drain
from hw.attention.core.row.cell import row_cells
from tests.hw.attention.plain import small
from tests.support.gateware.streams import STALLS, Side, exchange


def beat_of(row, bank, beat):
    return 1 + row + 16 * bank + 256 * beat


@pytest.mark.sample(2)
@pytest.mark.parametrize("stall", STALLS)
@pytest.mark.parametrize(("beat_width", "output"), [(128, "int16"), (256, "int16"), (512, "int8")])
def test_drain(beat_width, output, stall):
    config = small(rows=3, lanes=48, folds=2, output=output)
    rng = random.Random(f"{beat_width} {stall}")
    unit = Drain(config, beat_width=beat_width)
    passes = [
        {
            "rows": rng.randint(1, config.rows),
            "units": rng.randint(1, config.max_head_dim // 16),
            "empty": int(rng.random() < 0.3),
        }
        for n in range(18)
    ]
    expected, beats_of, banks = [], [], 0
    for this in passes:
        beats = -(-this["units"] * 16 * config.result_bits // beat_width)
        beats_of.append(this["rows"] * beats)
        tile = [
            {"data": 0 if this["empty"] else beat_of(row, banks % RESULT_BANKS, beat), "last": 0}
            for row in range(this["rows"])
            for beat in range(beats)
        ]
        banks += not this["empty"]
        tile[-1]["last"] = 1
        expected += tile
    freed, given = [], []

    async def rows(ctx):
        """Return what was asked for, two cycles later, from the cell of its row."""
        before = None
        while True:
            _, _, read, bits = await ctx.tick().sample(unit.read, unit.row)
            for cell, (first, count) in enumerate(row_cells(config)):
                beat = 0
                for row in range(first, first + count):
                    if before is not None and before[0].valid and before[1] >> row & 1:
                        beat = beat_of(row, before[0].bank, before[0].beat)
                ctx.set(unit.cells[cell], beat)
            before = read, bits

    async def give(ctx):
        """No more than all banks are full at a time."""
        for n in range(banks):
            while len(freed) <= n - RESULT_BANKS or rng.random() < stall / 2:
                await ctx.tick()
            ctx.set(unit.i.payload, n % RESULT_BANKS)
            ctx.set(unit.i.valid, 1)
            await ctx.tick()
            given.append(cycle[0])
            ctx.set(unit.i.valid, 0)

    cycle = [0]

    async def count(ctx):
        while True:
            _, _, bit = await ctx.tick().sample(unit.freed)
            if bit:
                freed.append(cycle[0])
            cycle[0] += 1

    out = Side(unit.o, count=len(expected), stall=stall)
    sides = {"o": out, "passes": Side(unit.passes, items=passes, stall=stall)}
    exchange(unit, sides, background=[rows, give, count])
    assert out.received == expected
    assert len(freed) == banks
    if not stall:
        # A bank is read, a beat a cycle, from the cycle after it was given or the one before was read, and
        # zeros of an empty pass likewise from where it was.
        end, number = -1, 0
        for come, (this, beats) in enumerate(zip(passes, beats_of, strict=True)):
            first = come + Drain.EMPTY_LATENCY if this["empty"] else given[number] + 1
            end = max(first, end + 1) + beats - 1
            if not this["empty"]:
                assert freed[number] == end
                number += 1
        assert out.cycles[-1] == end + Drain.LATENCY
