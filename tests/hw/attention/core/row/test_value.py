# amaranth: UnusedElaboratable=no
"""Sums of probabilities times values, of values in one part and in several, packed and not."""

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.core.row.value import ValueUnit, factors
from tests.support.gateware.streams import simulate


def packed(lanes):
    """What `factors` makes of a part: two lanes in one number, or each by itself."""
    return [int(lanes[d + 1]) * 2**18 + int(lanes[d]) for d in range(0, len(lanes), 2)]


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
        for n, (p, v, parts) in enumerate(tiles):
            for j, part in np.ndindex(len(p), parts):
                while rng.random() < 0.1:  # what is on the value port without a probability must not matter
                    ctx.set(unit.probability, 0)
                    ctx.set(unit.step, {"part": int(rng.integers(folds)), "first": 0, "ends": 0, "last": 0})
                    await ctx.tick()
                ctx.set(unit.probability, int(p[j]))
                lane = v[j, part * lanes : (part + 1) * lanes]
                ctx.set(unit.value, packed(lane) if bits == 8 else lane.tolist())
                ends = j == len(p) - 1
                last = ends and part == parts - 1
                ctx.set(unit.step, {"part": part, "first": j == 0, "ends": ends, "last": last})
                await ctx.tick()
            ctx.set(unit.probability, 0)
            ctx.set(unit.step, {"part": 0, "first": 0, "ends": 0, "last": 0})
            ctx.set(unit.rise, n)
            ctx.set(unit.reached, -n)
            for _ in range(ValueUnit.LATENCY - 1):
                await ctx.tick()
            partial = []
            for step in range(parts * config.part_steps):
                ctx.set(unit.merge_step, step)
                await ctx.tick()
                partial += [ctx.get(unit.partial[lane]) for lane in range(config.merge_lanes)]
            totals = ctx.get(unit.partial_sum), ctx.get(unit.finished_rise), ctx.get(unit.finished_reached)
            seen.append((partial, totals))

    simulate(unit, bench)
    for n, ((p, v, _), (partial, totals)) in enumerate(zip(tiles, seen, strict=True)):
        assert partial == (p @ v).tolist()
        assert totals == (p.sum(), n, -n)


def test_factors():
    """Packed lanes, by the values of the constant expression."""
    from amaranth.hdl import Module, Signal, signed
    from amaranth.lib import data, wiring
    from amaranth.lib.wiring import In, Out

    config = AttentionConfig(lanes=16, merge_lanes=2, probability_bits=8)

    class Factors(wiring.Component):
        i: In(data.ArrayLayout(signed(8), 16))
        o: Out(data.ArrayLayout(signed(27), 8))

        def elaborate(self, platform):
            m = Module()
            m.d.comb += self.o.as_value().eq(factors(config, self.i))
            m.d.sync += Signal().eq(1)
            return m

    unit, rng = Factors(), np.random.default_rng(0)
    lanes = [rng.choice([-128, -1, 0, 1, 127, 5], 16) for _ in range(30)]
    seen = []

    async def bench(ctx):
        for value in lanes:
            ctx.set(unit.i, value.tolist())
            seen.append([ctx.get(unit.o[n]) for n in range(8)])
            await ctx.tick()

    simulate(unit, bench)
    assert seen == [packed(value) for value in lanes]
