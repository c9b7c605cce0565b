# amaranth: UnusedElaboratable=no
"""Sums of probabilities times values, of values in one part and in several, packed and not."""

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.core.row.value import ValueUnit
from tests.support.gateware.streams import simulate


@pytest.mark.sample(3)
@pytest.mark.parametrize("bits", [8, 12, 16, 20])
@pytest.mark.parametrize(("lanes", "folds"), [(16, 4), (48, 1), (64, 2), (80, 2)])
def test_values(lanes, folds, bits):
    config = AttentionConfig(
        lanes=lanes, folds=folds, merge_lanes=2, tile_keys=64, probability_bits=bits, streams=2
    )
    rng = np.random.default_rng([lanes, folds, bits])
    unit = ValueUnit(config)
    tiles = []
    for keys, parts in ((5, folds), (1, 1), (64, folds), (int(rng.integers(1, 20)), (folds + 1) // 2)):
        p, v = rng.integers(0, 2**bits + 1, keys), rng.integers(-128, 128, (keys, parts * lanes))
        if keys == 64:
            p[:], v[:] = 2**bits, -128
        tiles.append((p, v, parts))
    seen = []

    async def bench(ctx):
        async def part_of(key, step, lanes):
            """Return a probability and its step, and in the same cycle the value of the next."""
            ctx.set(unit.probability, key)
            ctx.set(unit.step, step)
            ctx.set(unit.value, lanes.tolist())
            await ctx.tick()

        def any_value():
            return rng.integers(-128, 128, lanes)

        for n, (p, v, parts) in enumerate(tiles):
            work = []  # probability, step, value
            for j, part in np.ndindex(len(p), parts):
                many = {"last_part": parts - 1}
                while rng.random() < 0.1:  # what is on the value port without a probability must not matter
                    work.append((0, many | {"part": int(rng.integers(folds))}, any_value()))
                ends = j == len(p) - 1
                last = ends and part == parts - 1
                step = {"part": part, "turn": parts > 1, "first": j == 0, "ends": ends, "last": last}
                work.append((int(p[j]), many | step, v[j, part * lanes : (part + 1) * lanes]))
            values = [value for *_, value in work[1:]] + [any_value()]
            await part_of(0, {}, work[0][2])
            for (key, step, _), value in zip(work, values, strict=True):
                await part_of(key, step, value)
            ctx.set(unit.rise, n)
            ctx.set(unit.reached, -n)
            for wait in reversed(range(ValueUnit.LATENCY - 2 + int(rng.integers(2)))):
                ctx.set(unit.merge_begins, wait == 0)
                await part_of(0, {}, any_value())
            ctx.set(unit.merge_begins, 0)
            partial = []
            for step in range(parts * config.part_steps):
                ctx.set(unit.merge_step, step)
                await part_of(0, {}, any_value())
                partial += [ctx.get(unit.partial[lane]) for lane in range(config.merge_lanes)]
            assert ctx.get(unit.finished_rise[0]) == ctx.get(unit.finished_rise[1])
            finished = unit.partial_sum, unit.finished_rise[0], unit.finished_reached
            totals = tuple(ctx.get(value) for value in finished)
            seen.append((partial, totals))

    simulate(unit, bench)
    for n, ((p, v, _), (partial, totals)) in enumerate(zip(tiles, seen, strict=True)):
        assert partial == (p @ v).tolist()
        assert totals == (p.sum(), n, -n)
