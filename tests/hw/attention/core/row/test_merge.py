# amaranth: UnusedElaboratable=no
"""Running output and sum over tiles, through the memory of finals."""

import numpy as np
import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import MAXIMUM_BITS, RESCALE_BITS, AttentionConfig
from hw.attention.core.result.finals import Final, FinalRead, Finals
from hw.attention.core.row.merge import Merge, MergeStep
from tests.hw.attention.reference import rounded
from tests.support.gateware.streams import plain, simulate


class Merged(wiring.Component):
    """A merge and the finals behind it."""

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "control": In(MergeStep(config)),
                "partial": In(data.ArrayLayout(signed(config.partial_bits), config.merge_lanes)),
                "partial_sum": In(config.partial_sum_bits),
                "rise": In(RESCALE_BITS),
                "reached": In(signed(MAXIMUM_BITS)),
                "sum_bank": In(1),
                "read": In(FinalRead(config)),
                "o": Out(Final(config)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.merge = merge = Merge(self.config)
        m.submodules.finals = finals = Finals(self.config)
        for name in ("control", "partial", "partial_sum", "reached"):
            m.d.comb += getattr(merge, name).eq(getattr(self, name))
        m.d.comb += [rise.eq(self.rise) for rise in merge.rise]
        m.d.comb += [
            finals.i.eq(merge.o),
            finals.total.eq(merge.total),
            finals.maximum.eq(merge.maximum),
            finals.read.eq(self.read),
            finals.sum_bank.eq(self.sum_bank),
            self.o.eq(finals.o),
        ]
        return m


@pytest.mark.parametrize("bits", [8, 16, 20])
@pytest.mark.parametrize(
    ("lanes", "folds", "merge_lanes", "streams"), [(32, 1, 2, 1), (80, 3, 4, 2), (16, 2, 1, 4)]
)
def test_merge(lanes, folds, merge_lanes, streams, bits):
    config = AttentionConfig(
        lanes=lanes,
        folds=folds,
        merge_lanes=merge_lanes,
        streams=streams,
        tile_keys=64,
        probability_bits=bits,
    )
    rng = np.random.default_rng([lanes, bits])
    unit = Merged(config)
    limit = 2 ** (config.partial_bits - 1)
    passes = []
    for n in range(3):
        parts = int(rng.integers(1, folds + 1)) if n else folds
        tiles = int(rng.integers(1, 7))
        elements = parts * lanes
        passes.append(
            {
                "parts": parts,
                "lanes": rng.integers(-limit, limit, (tiles, elements)),
                "sums": rng.integers(0, 64 * 2**bits + 1, tiles),
                "rises": rng.choice([0, 1, 2, 7, 30, 40, 63], tiles),
                "maximum": int(rng.integers(-2048, 2049)),
            }
        )
    seen = []

    async def bench(ctx):
        for bank, job in enumerate(passes):
            steps = job["parts"] * config.part_steps
            tiles = len(job["sums"])
            for n in range(tiles * steps + Merge.LATENCY):
                tile, at = divmod(n, steps)
                here = {"valid": tile < tiles, "step": at, "opens": tile == 0, "closes": tile == tiles - 1}
                ctx.set(unit.control, {**here, "bank": bank % 2})
                if 1 <= n <= tiles * steps:  # the tile's figures follow a cycle behind its steps
                    tile, at = divmod(n - 1, steps)
                    some = job["lanes"][tile, merge_lanes * at : merge_lanes * (at + 1)]
                    ctx.set(unit.partial, some.tolist())
                    ctx.set(unit.partial_sum, int(job["sums"][tile]))
                    ctx.set(unit.rise, int(job["rises"][tile]))
                    ctx.set(unit.reached, job["maximum"] if tile == tiles - 1 else 99)
                ctx.set(unit.sum_bank, bank % 2)
                # The sum of a pass is final as early as its timing says, when the lanes still come.
                if n == (tiles - 1) * steps + Merge.LATENCY + Finals.sum_latency(config):
                    sums = [ctx.get(unit.o.total), ctx.get(unit.o.maximum) if streams > 1 else None]
                await ctx.tick()
            # With two banks the pass before can be read when this one is already there.
            held = (bank - 1, bank) if streams > 1 and bank else (bank,)
            await ctx.tick()
            for which in held:
                ctx.set(unit.sum_bank, which % 2)
                lanes_read = []
                for step in range(passes[which]["parts"] * config.part_steps):
                    ctx.set(unit.read, {"valid": 1, "bank": which % 2, "step": step})
                    await ctx.tick()
                    lanes_read += plain(ctx.get(unit.o.lanes))
                if streams > 1:
                    sums = [ctx.get(unit.o.total), ctx.get(unit.o.maximum)]
                ctx.set(unit.read.valid, 0)
                seen.append((which, lanes_read, sums))

    simulate(unit, bench)
    for which, lanes_read, (total, maximum) in seen:
        job = passes[which]
        output, expected = [0] * job["lanes"].shape[1], 0
        for tile, part, rise in zip(job["lanes"], job["sums"], job["rises"].tolist(), strict=True):
            first = expected == 0 and not any(output)
            output = [(0 if first else rounded(o, rise)) + int(a) for o, a in zip(output, tile, strict=True)]
            expected = rounded(expected, rise) + int(part)
        assert lanes_read == output
        assert total == expected
        if streams > 1:
            assert maximum == job["maximum"]
    assert len(seen) == (5 if streams > 1 else 3)
