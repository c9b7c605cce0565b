# amaranth: UnusedElaboratable=no
"""Each unit of a row against a few lines of NumPy from the number formats."""

import numpy as np
import pytest

from hw.attention.config import AttentionConfig, exp2_table
from hw.attention.exp2 import Exp2
from hw.attention.maximum import LogitBuffer
from hw.attention.merge import Merge
from hw.attention.normalize import Normalizer
from hw.attention.output import OutputBuffer
from hw.attention.passes import PassSequencer
from hw.attention.reciprocal import Reciprocal
from hw.attention.score import ScoreUnit
from hw.attention.value import ValueUnit
from tests.hw.attention.jobs import SMALL, int8
from tests.support.streams import Side, exchange, simulate


def rounded(value, shift):
    return (value + (1 << shift >> 1)) >> shift


async def play(ctx, inputs, output, latency):
    """Give one dict of signal -> value a cycle, as ``inputs``; sample ``output`` ``latency`` cycles later."""
    results = []
    for n in range(len(inputs) + latency):
        for signal, value in inputs[n] if n < len(inputs) else []:
            ctx.set(signal, value)
        if n >= latency:
            results.append(ctx.get(output))
        await ctx.tick()
    return results


@pytest.mark.parametrize("head_dim", [32, 64])
def test_score(head_dim):
    config = AttentionConfig(head_dim=head_dim)
    rng = np.random.default_rng(head_dim)
    q, k = int8(rng, head_dim), int8(rng, 40, head_dim)
    k[0], k[1] = np.where(q < 0, -128, 127), np.where(q < 0, 127, -128)
    multiplier, shift = rng.integers(1, 2**17, 40), rng.integers(1, 48, 40)
    multiplier[:2], shift[:2] = 2**17 - 1, 1
    raw = k.astype(int) @ q.astype(int)
    expected = np.clip((raw * multiplier + (1 << (shift - 1))) >> shift, -(2**23), 2**23 - 1)
    unit = ScoreUnit(config)
    delay, latency = ScoreUnit.scale_latency(config), ScoreUnit.latency(config)
    logits = []

    async def bench(ctx):
        ctx.set(unit.query, q.tolist())
        ctx.set(unit.load, 1)
        await ctx.tick()
        ctx.set(unit.load, 0)
        ctx.set(unit.query, [0] * head_dim)
        ctx.set(unit.swap, 1)
        await ctx.tick()
        ctx.set(unit.swap, 0)
        for n in range(40 + latency):
            if n < 40:
                ctx.set(unit.key, k[n].tolist())
            if 0 <= n - delay < 40:
                ctx.set(unit.multiplier, int(multiplier[n - delay]))
            if 0 <= n - delay - 1 < 40:
                ctx.set(unit.shift, int(shift[n - delay - 1]))
            if n >= latency:
                logits.append(ctx.get(unit.logit))
            await ctx.tick()

    simulate(unit, bench)
    assert logits == expected.tolist()


def test_exp2():
    rng = np.random.default_rng(0)
    maximum = rng.integers(-2048, 2049, 600)
    below = rng.integers(0, 20 << 12, 600)
    below[:4] = [0, 1, (18 << 12) - 1, 18 << 12]
    t = np.clip((maximum << 12) - below, -(2**23), 2**23 - 1)
    maximum = np.maximum(maximum, -(-t >> 12))
    u = (maximum << 12) - t
    exponent, fraction = u >> 12, u & 4095
    y0, z = np.array(exp2_table()).T
    y = y0[fraction >> 8] - rounded(z[fraction >> 8] * (fraction & 255), 8)
    p = np.where(exponent >= 18, 0, [rounded(int(a), int(e) + 2) for a, e in zip(y, exponent, strict=True)])
    valid = rng.integers(0, 2, 600)
    exact = 65536 * 2.0 ** (-u / 4096)
    assert np.abs(p - exact).max() < 9
    unit = Exp2()
    got = []

    async def bench(ctx):
        inputs = [
            [(unit.i, int(a)), (unit.maximum, int(b)), (unit.valid, int(c))]
            for a, b, c in zip(t, maximum, valid, strict=True)
        ]
        got.extend(await play(ctx, inputs, unit.o, Exp2.LATENCY))

    simulate(unit, bench)
    assert got == (p * valid).tolist()


def test_segments_are_the_best_lines():
    x = np.arange(4096) / 4096
    y, z = np.array(exp2_table()).T[:, np.arange(4096) >> 8] / 2**18
    error = y - z * (np.arange(4096) & 255) / 256 - 2.0**-x
    assert np.abs(error).max() < 1.25e-4
    # As far above the curve as below it, in every segment.
    by_segment = error.reshape(16, 256)
    np.testing.assert_allclose(by_segment.max(1), -by_segment.min(1), atol=8e-6)


def test_logit_buffer():
    """Tiles of any length: logits come back with their maximum, and the rise after the last one."""
    rng = np.random.default_rng(3)
    unit = LogitBuffer(SMALL)
    tiles = [rng.integers(-(2**23), 2**23, n) for n in (16, 1, 7, 16)]
    tiles[3][:] = 2**23 - 1
    opens = [1, 0, 1, 0]
    running, seen = 0, []

    async def bench(ctx):
        for n, tile in enumerate(tiles):
            for index, t in enumerate(tile):
                ctx.set(unit.i, int(t))
                ctx.set(
                    unit.write,
                    {
                        "valid": 1,
                        "slot": n % 2,
                        "index": index,
                        "first": index == 0,
                        "last": index == len(tile) - 1,
                        "opens": opens[n],
                    },
                )
                await ctx.tick()
            ctx.set(unit.write.valid, 0)
            for _ in range(LogitBuffer.LATENCY - 1):
                await ctx.tick()
            values = []
            for index in range(len(tile)):
                ctx.set(
                    unit.read,
                    {
                        "valid": 1,
                        "slot": n % 2,
                        "index": index,
                        "first": index == 0,
                        "last": index == len(tile) - 1,
                    },
                )
                await ctx.tick()
                values.append((ctx.get(unit.o), ctx.get(unit.maximum)))
            ctx.set(unit.read.valid, 0)
            await ctx.tick()
            seen.append((values, ctx.get(unit.rise)))

    simulate(unit, bench)
    for tile, opening, (values, rise) in zip(tiles, opens, seen, strict=True):
        peak = int(tile.max() + 4095) >> 12
        before = peak if opening else running
        running = max(before, peak)
        assert values == [(t, running) for t in tile.tolist()]
        assert rise == min(63, running - before)


def test_values():
    config = SMALL
    rng = np.random.default_rng(4)
    unit = ValueUnit(config)
    tiles = [(rng.integers(0, 65537, n), int8(rng, n, config.head_dim)) for n in (16, 1, 16)]
    tiles[2] = (np.full(16, 65536), np.full((16, config.head_dim), -128, np.int8))
    seen = []

    async def bench(ctx):
        for n, (p, v) in enumerate(tiles):
            for j in range(len(p)):
                ctx.set(unit.probability, int(p[j]))
                ctx.set(unit.value, v[j].tolist())
                ctx.set(unit.first, j == 0)
                ctx.set(unit.last, j == len(p) - 1)
                await ctx.tick()
            # What is on the value port without a probability must not matter.
            for signal in (unit.probability, unit.first, unit.last):
                ctx.set(signal, 0)
            ctx.set(unit.rise, n)
            for _ in range(ValueUnit.LATENCY - 1):
                await ctx.tick()
            partial = []
            for lanes in range(config.merge_steps):
                ctx.set(unit.step, lanes)
                partial += [ctx.get(unit.partial[lane]) for lane in range(config.merge_lanes)]
            seen.append((partial, ctx.get(unit.partial_sum), ctx.get(unit.finished_rise)))

    simulate(unit, bench)
    for n, ((p, v), (partial, total, rise)) in enumerate(zip(tiles, seen, strict=True)):
        assert partial == (p @ v.astype(int)).tolist()
        assert total == p.sum()
        assert rise == n


def merge_tiles(rng, config, count):
    """Partial sums of ``count`` tiles, from small to the largest there can be, and rises up to 63."""
    lanes = rng.integers(-(2 ** (config.partial_bits - 1)), 2 ** (config.partial_bits - 1), (count, 32))
    sums = rng.integers(0, config.tile_keys * 65536 + 1, count)
    rises = rng.choice([0, 1, 2, 7, 30, 40, 63], count)
    rises[0] = 0
    return lanes, sums, rises


def test_merge():
    config = SMALL
    rng = np.random.default_rng(5)
    lanes, sums, rises = merge_tiles(rng, config, 12)
    unit = Merge(config)
    output, total = np.zeros(32, int), 0
    for tile, part, rise in zip(lanes, sums, rises.tolist(), strict=True):
        output = np.array([rounded(int(o), rise) for o in output]) + tile
        total = rounded(total, rise) + int(part)
    finals = {}

    async def bench(ctx):
        steps = config.merge_steps
        for n in range(12 * steps + Merge.LATENCY + 1):
            tile, at = divmod(n, steps)
            ctx.set(unit.control.valid, tile < 12)
            ctx.set(unit.control.step, at)
            ctx.set(unit.control.opens, tile == 0)
            ctx.set(unit.control.closes, tile == 11)
            if 1 <= n <= 12 * steps:  # the tile's figures follow a cycle behind its steps
                tile, at = divmod(n - 1, steps)
                two = lanes[tile, 2 * at : 2 * at + 2]
                ctx.set(unit.partial, two.tolist())
                ctx.set(unit.partial_sum, int(sums[tile]))
                ctx.set(unit.rise, int(rises[tile]))
            if ctx.get(unit.o.valid):
                at = ctx.get(unit.o.step)
                assert n == 11 * steps + at + Merge.LATENCY
                finals.update({2 * at + lane: ctx.get(unit.o.lanes[lane]) for lane in range(2)})
                assert ctx.get(unit.total) == total
            await ctx.tick()

    simulate(unit, bench)
    assert [finals[d] for d in range(32)] == output.tolist()


def test_reciprocal():
    rng = np.random.default_rng(6)
    sums = [1, 2, 3, 2**16 - 1, 2**16, 2**17 - 1, 2**32, *(int(2 ** rng.uniform(0, 32)) for _ in range(60))]
    unit = Reciprocal()
    seen = []

    async def bench(ctx):
        for total in [*sums, 0]:
            ctx.set(unit.i, total)
            ctx.set(unit.start, 1)
            await ctx.tick()
            ctx.set(unit.start, 0)
            zeros = ctx.get(unit.zeros)
            for _ in range(Reciprocal.LATENCY - 1):
                await ctx.tick()
            seen.append((zeros, ctx.get(unit.o)))

    simulate(unit, bench)
    for total, (zeros, reciprocal) in zip(sums, seen, strict=False):
        assert zeros == 33 - total.bit_length()
        assert reciprocal == (2**33 - 1) // ((total << zeros) >> 16)
    assert seen[-1][0] == 33


@pytest.mark.parametrize("fraction", [0, 7, 15])
def test_normalize(fraction):
    config = AttentionConfig(rows=1, head_dim=32, tile_keys=32, ports_per_stream=1, merge_lanes=1)
    rng = np.random.default_rng(fraction)
    unit = Normalizer(config)
    sums = [0, 1, 2, 100, 2**17, 2**18 - 1, 2**18, *(int(2 ** rng.uniform(14, 32)) for _ in range(10)), 2**32]
    seen = []

    def cases():
        for total in sums:
            largest = min(128 * total, 2**39)
            outputs = rng.integers(-largest, max(largest, 1), 32)
            outputs[:2] = -largest, max(0, 127 * total)
            yield total, outputs

    tiles = list(cases())

    async def bench(ctx):
        for total, outputs in tiles:
            bits = total.bit_length()
            normal = (total << (33 - bits)) >> 16
            for at, output in enumerate(outputs.tolist()):
                ctx.set(unit.i, {"valid": 1, "step": at, "lanes": [output]})
                await ctx.tick()
            ctx.set(unit.i.valid, 0)
            ctx.set(unit.zeros, 33 - bits)
            ctx.set(unit.reciprocal, (2**33 - 1) // normal if normal else 0)
            steps = [{"valid": 1, "step": at, "bank": 1, "fraction": fraction} for at in range(32)]
            inputs = [[(unit.control, control)] for control in steps]
            seen.append(await play(ctx, inputs, unit.o.lanes[0], Normalizer.LATENCY))

    simulate(unit, bench)
    for (total, outputs), lanes in zip(tiles, seen, strict=True):
        bits = total.bit_length()
        normal = (total << (33 - bits)) >> 16
        expected = [
            normalized(int(output), bits, (2**33 - 1) // normal, fraction) if total else 0
            for output in outputs
        ]
        assert lanes == expected


def normalized(output, bits, reciprocal, fraction):
    x = rounded(output, bits - 18) if bits >= 18 else output << (18 - bits)
    return max(-(2**15), min(2**15 - 1, rounded(x * reciprocal, 34 - fraction)))


def test_output_buffer():
    rng = np.random.default_rng(8)
    unit = OutputBuffer(SMALL, beat_width=128)
    outputs = rng.integers(-(2**15), 2**15, (2, 32))
    seen = np.zeros((2, 32), int)

    async def bench(ctx):
        for bank in (0, 1):
            for at in range(16):
                lanes = outputs[bank, 2 * at : 2 * at + 2].tolist()
                ctx.set(unit.i, {"valid": 1, "bank": bank, "step": at, "lanes": lanes})
                await ctx.tick()
        ctx.set(unit.i.valid, 0)
        for bank, beat in ((1, 3), (0, 0), (1, 0), (0, 3), (0, 1), (1, 2), (1, 1), (0, 2)):
            ctx.set(unit.read, {"valid": 1, "bank": bank, "beat": beat})
            await ctx.tick()
            ctx.set(unit.read, {"valid": 0, "bank": ~bank & 1, "beat": 0})
            await ctx.tick()  # what was read stays
            word = ctx.get(unit.o).to_bytes(16, "little")
            seen[bank, 8 * beat : 8 * beat + 8] = np.frombuffer(word, "<i2")

    simulate(unit, bench)
    np.testing.assert_array_equal(seen, outputs)


def test_passes():
    unit = PassSequencer(SMALL)
    job = {"queries": 10, "keys": 7, "heads": 6, "kv_group": 3}
    side = Side(unit.o, count=18, stall=0.4)

    async def start(ctx):
        for name, value in job.items():
            ctx.set(unit.job[name], value)
        ctx.set(unit.start, 1)
        await ctx.tick()
        ctx.set(unit.start, 0)

    exchange(unit, {"o": side}, background=[start])
    expected = [
        {
            "rows": min(4, 10 - first),
            "query_offset": (head * 10 + first) * 32,
            "slice_offset": head // 3 * 7 * 32,
        }
        for head in range(6)
        for first in (0, 4, 8)
    ]
    assert side.received == expected
