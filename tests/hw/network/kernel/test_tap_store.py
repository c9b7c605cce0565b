"""The tap store: runs of rows in order, at a row a cycle, for any pauses."""

import random

import pytest

from hw.network.kernel.tap_store import TapStore
from hw.network.matrix.feed_command import TileEntry
from hw.network.program.image import bits_of
from hw.network.program.records import TableNumber
from tests.hw.network.program.example import CONFIG
from tests.support.gateware.streams import STALLS, Side, exchange_within, grid, simulate

DUT = TapStore(CONFIG)
ROWS = 40


def drawn_entry(rng):
    columns = [rng.randrange(128) for _ in range(4)]
    return {
        "offset": rng.randrange(1 << 10),
        "row": rng.randrange(128),
        "column": columns,
        "valid": rng.randrange(16),
        "shift": rng.randrange(8),
    }


async def write(ctx, entries):
    """Write rows from the last ones of the RAM on; other tables' rows are left out."""
    for n, entry in enumerate(entries):
        bits = bits_of(TileEntry(CONFIG.shape), entry)
        for table, datum in ((TableNumber.TAPS, bits), (TableNumber.VECTOR_TAPS, ~bits & (1 << 60) - 1)):
            row = (n - 5) % CONFIG.max_taps
            ctx.set(DUT.slot, {"enable": 1, "table": table, "row": row, "data": datum})
            await ctx.tick()
    ctx.set(DUT.slot, {"enable": 0, "table": TableNumber.TAPS, "row": 0, "data": 1})
    await ctx.tick()


def play(entries, runs, *, run_stall=0.0, entry_stall=0.0, seed=0):
    sides = {}

    async def bench(ctx):
        await write(ctx, entries)
        sides["run"] = Side(DUT.run, items=runs, stall=run_stall)
        total = sum(run["count"] for run in runs)
        sides["entry"] = Side(DUT.entry, count=total, stall=entry_stall)
        await exchange_within(ctx, sides, seed=seed)
        for _ in range(5):
            await ctx.tick()
            assert not ctx.get(DUT.entry.valid)

    simulate(DUT, bench)
    return sides["entry"]


@pytest.mark.parametrize(("run_stall", "entry_stall", "seed"), grid(STALLS, STALLS, soak=3))
def test_runs(run_stall, entry_stall, seed):
    rng = random.Random(seed)
    entries = [drawn_entry(rng) for _ in range(ROWS)]
    runs, wanted = [], []
    for _ in range(12):
        first = rng.randrange(ROWS)
        count, two = rng.randint(1, min(9, ROWS - first)), rng.randrange(2)
        runs.append({"first": (first - 5) % CONFIG.max_taps, "count": count, "two": two})
        wanted += [{"entry": entry, "two": two} for entry in entries[first : first + count]]
    found = play(entries, runs, run_stall=run_stall, entry_stall=entry_stall, seed=seed)
    assert found.received == wanted


def test_a_row_a_cycle():
    rng = random.Random(0)
    entries = [drawn_entry(rng) for _ in range(ROWS)]
    found = play(entries, [{"first": 0, "count": 20, "two": 0}, {"first": 3, "count": 1, "two": 1}])
    gaps = [after - before for before, after in zip(found.cycles, found.cycles[1:], strict=False)]
    assert (found.cycles[0], gaps) == (TapStore.LATENCY, [1] * 19 + [2])
