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


@pytest.mark.parametrize("stall", STALLS)
@pytest.mark.parametrize(("beat_width", "output"), [(128, "int16"), (256, "int16"), (512, "int8")])
def test_drain(beat_width, output, stall):
    config = small(rows=3, lanes=48, folds=2, output=output)
    rng = random.Random(f"{beat_width} {stall}")
    unit = Drain(config, beat_width=beat_width)
    results = [
        {
            "bank": n % RESULT_BANKS,
            "rows": rng.randint(1, config.rows),
            "units": rng.randint(1, config.max_head_dim // 16),
        }
        for n in range(12)
    ]
    expected, beats_of = [], []
    for result in results:
        beats = -(-result["units"] * 16 * config.result_bits // beat_width)
        beats_of.append(result["rows"] * beats)
        tile = [
            {"data": beat_of(row, result["bank"], beat), "last": 0}
            for row in range(result["rows"])
            for beat in range(beats)
        ]
        tile[-1]["last"] = 1
        expected += tile
    freed, given = [], []

    async def rows(ctx):
        """Give what was asked for, two cycles later, from the cell of its row."""
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
        for n, result in enumerate(results):
            while len(freed) <= n - RESULT_BANKS or rng.random() < stall / 2:
                await ctx.tick()
            ctx.set(unit.i.payload, result)
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
    exchange(unit, {"o": out}, background=[rows, give, count])
    assert out.received == expected
    assert len(freed) == len(results)
    if not stall:
        # A bank is read, a beat a cycle, from the cycle after it was given or the bank before was empty.
        end = -1
        for n, beats in enumerate(beats_of):
            end = max(given[n] + 1, end + 1) + beats - 1
            assert freed[n] == end
        assert out.cycles[-1] == freed[-1] + Drain.LATENCY
