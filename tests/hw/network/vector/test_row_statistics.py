# amaranth: UnusedElaboratable=no
"""The sums of pixels in gates: one pixel, two, many; with pauses between words."""

import random

import pytest

from hw.network.vector.row_statistics import RowStatistics
from hw.network.vector.wide_lanes import GRANULE_SQUARES_BITS, GRANULE_SUM_BITS
from tests.support.gateware.streams import set_all, simulate

ROWS = 16


@pytest.mark.parametrize("parts", [1, 4])
def test_sums_of_pixels(parts):
    dut, rng = RowStatistics(ROWS, parts), random.Random(parts)
    latency = RowStatistics.latency(parts)

    def granules():
        """Draw the sums of the granules of a word."""
        bound = 1 << GRANULE_SUM_BITS - 1
        most = (1 << GRANULE_SQUARES_BITS) - 1
        return [
            (
                rng.choice([-bound, bound - 1, rng.randrange(-bound, bound)]),
                rng.choice([most, rng.getrandbits(30)]),
            )
            for _ in range(parts)
        ]

    async def bench(ctx):
        for pixels, tiles, pause in ((1, 4, 0), (2, 3, 0), (3, 2, 0), (1, 1, 0), (12, 2, 0.4), (2, 4, 0.6)):
            first, totals, steps = rng.randrange(ROWS - pixels + 1), {}, []
            for tile in range(tiles):
                for pixel in range(pixels):
                    for word in range(2):
                        while rng.random() < pause:
                            steps.append(None)
                        parts_of = granules()
                        sums = totals.setdefault(first + pixel, [0, 0])
                        for number in range(2):
                            sums[number] += sum(each[number] for each in parts_of)
                        flags = word == 0, word == 1, tile == 0, tile == tiles - 1
                        steps.append((flags, first + pixel, parts_of))
            found = {}
            ctx.set(dut.single, pixels == 1)
            for step in [*steps, *[None] * (latency + 1)]:
                ctx.set(dut.step, step is not None)
                flags, row, parts_of = step or ((1, 1, 1, 1), rng.randrange(ROWS), granules())
                names = ("first", "last", "begins", "ends")
                set_all(ctx, [(getattr(dut, name), flag) for name, flag in zip(names, flags, strict=True)])
                ctx.set(dut.row, row)
                for n, (total, squares) in enumerate(parts_of):
                    set_all(ctx, [(dut.sums[n], total), (dut.squares[n], squares)])
                if ctx.get(dut.o_valid):
                    assert ctx.get(dut.o_row) not in found
                    found[ctx.get(dut.o_row)] = [ctx.get(dut.o.sum), ctx.get(dut.o.squares)]
                await ctx.tick()
            assert found == totals

    simulate(dut, bench)
