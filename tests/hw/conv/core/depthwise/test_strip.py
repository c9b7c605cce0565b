"""The window of a strip: sums of nine, row by row, after any rows and layers."""

import random

import pytest

from hw.conv.core.depthwise.strip import Strip
from tests.hw.conv.core.plain import small
from tests.support.gateware.streams import simulate

LANES, TAPS = 8, 9


@pytest.mark.parametrize("spans", [(12, 2, 5), (4, 7, 1)])
def test_layers_of_other_spans_one_after_the_other(spans):
    """A row ends anywhere in the delay lines; the next one, of this layer or of another, starts at their
    begin.
    """
    rng = random.Random(str(spans))
    config = small(strip_words=16)
    dut = Strip(config)
    weights = [[rng.randint(-127, 127) for _ in range(TAPS)] for _ in range(LANES)]
    steps = []  # inputs: words of three rows, or None, and their expected sums
    for span in spans:
        for _ in range(3):
            steps.append((span, "begins", None))
            columns = []
            for n in range(rng.randint(2 * span + 1, 4 * span + 3)):
                while rng.random() < 0.2:
                    steps.append((span, None, None))
                columns.append([[rng.randint(-128, 127) for _ in range(LANES)] for _ in range(3)])
                seen = [columns[n - back * span] if n >= back * span else None for back in (2, 1, 0)]
                sums = [
                    sum(
                        weights[lane][3 * r + c] * column[r][lane]
                        for c, column in enumerate(seen)
                        if column is not None
                        for r in range(3)
                    )
                    for lane in range(LANES)
                ]
                inside = sum(1 << c for c, column in enumerate(seen) if column is not None)
                steps.append((span, (columns[n], inside), sums))
    given, found = [], []

    async def bench(ctx):
        for lane in range(LANES):
            ctx.set(
                dut.weights[lane].as_value(), sum((w & 255) << 8 * n for n, w in enumerate(weights[lane]))
            )
        for r in range(3):
            ctx.set(dut.point.banks[r], r)
        ctx.set(dut.point.rows, 7)
        for cycle in range(len(steps) + Strip.latency()):
            span, what, sums = steps[cycle] if cycle < len(steps) else (1, None, None)
            ctx.set(dut.point.span, span)
            ctx.set(dut.point.begins, what == "begins")
            ctx.set(dut.valid, sums is not None)
            if sums is not None:
                for r, words in enumerate(what[0]):
                    ctx.set(dut.words[r], sum((x & 255) << 8 * lane for lane, x in enumerate(words)))
                ctx.set(dut.point.columns, what[1])
            given.append(sums)
            await ctx.tick()
            if cycle >= Strip.latency() - 1 and given[cycle + 1 - Strip.latency()] is not None:
                expected = given[cycle + 1 - Strip.latency()]
                found.append([ctx.get(dut.o[lane]) for lane in range(LANES)] == expected)

    simulate(dut, bench, limit=2000)
    assert len(found) > 50
    assert all(found)
