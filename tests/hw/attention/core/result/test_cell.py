# amaranth: UnusedElaboratable=no
"""From sums to results: joining streams, division, normalization in every form, and the buffer of results."""

import numpy as np
import pytest

from hw.attention.config import RESULT_BANKS, AttentionConfig
from hw.attention.core.result.combine import Combine
from hw.attention.core.result.normalize import Normalizer
from hw.attention.core.result.output import OutputBuffer
from hw.attention.core.result.reciprocal import Reciprocal
from tests.hw.attention import reference
from tests.support.gateware.play import play
from tests.support.gateware.streams import plain, simulate

BITS = [8, 12, 16, 20]


def totals(rng, bits, count):
    """Sums that rows may have: none, the smallest, the largest, and around every power of two."""
    low, high = 2 ** (bits - 1) - 1, 2 ** (16 + bits)
    edges = [2**n + step for n in range(bits, bits + 16) for step in (-1, 0, 1)]
    drawn = [int(2 ** rng.uniform(bits - 1, bits + 16)) for _ in range(count)]
    return [0, low, low + 1, high - 1, high, *(int(rng.choice(edges)) for _ in range(count)), *drawn]


@pytest.mark.parametrize("streams", [2, 4, 8, 16])
def test_combine(streams):
    config = AttentionConfig(streams=streams, lanes=32, merge_lanes=2, folds=1)
    rng = np.random.default_rng(streams)
    unit = Combine(config)
    jobs = []
    for n in range(12):
        spread = [0, 3, 40, 5000][n % 4]
        jobs.append(
            {
                "maximum": np.clip(
                    rng.integers(-2048, 2049) + rng.integers(-spread, spread + 1, streams), -2048, 2048
                ),
                "total": rng.integers(0, 2**32 // streams + 1, streams) >> rng.integers(0, 20),
                "lanes": rng.integers(-(2**39), 2**39, (16, streams, 2)) // streams,
            }
        )
    interval = max(16, Reciprocal.latency(config))
    # Lanes come as late as the division lets them, when the next start may already be over.
    late = Combine.sum_latency(config) + Reciprocal.latency(config)
    late -= Normalizer.RECIPROCAL_SLACK + Combine.lane_latency(config)
    cycles = [[(unit.start, 0), (unit.first, 0)] for _ in range(interval * len(jobs) + late + 40)]
    for n, job in enumerate(jobs):
        at = n * interval
        cycles[at].append((unit.start, 1))
        for s in range(streams):
            cycles[at].append((unit.i[s].total, int(job["total"][s])))
            cycles[at].append((unit.i[s].maximum, int(job["maximum"][s])))
            for step in range(16):
                cycles[at + late + 1 + step].append((unit.i[s].lanes, job["lanes"][step, s].tolist()))
        cycles[at + late].append((unit.first, 1))
    seen = play(unit, cycles, [unit.total, unit.lanes], 0)
    for n, job in enumerate(jobs):
        shifts = np.minimum(63, job["maximum"].max() - job["maximum"]).tolist()
        at = n * interval + Combine.sum_latency(config)
        expected = sum(reference.rounded(int(t), s) for t, s in zip(job["total"], shifts, strict=True))
        assert seen[at][0] == expected
        assert seen[at + min(10, interval - 1)][0] == expected
        for step in range(16):
            got = seen[n * interval + late + 1 + step + Combine.lane_latency(config)][1]
            for lane in range(2):
                parts = job["lanes"][step, :, lane].tolist()
                assert got[lane] == sum(reference.rounded(o, s) for o, s in zip(parts, shifts, strict=True))


@pytest.mark.parametrize("form", ["int16", "int8"])
@pytest.mark.parametrize("bits", BITS)
def test_reciprocal(bits, form):
    config = AttentionConfig(probability_bits=bits, output=form)
    rng = np.random.default_rng(bits)
    sums = totals(rng, bits, 30)
    multipliers = [2**16, 2**17 - 1, *(int(m) for m in rng.integers(2**16, 2**17, len(sums) - 2))]
    unit = Reciprocal(config)
    seen = []

    async def bench(ctx):
        for total, multiplier in zip(sums, multipliers, strict=True):
            ctx.set(unit.i, total)
            ctx.set(unit.start.valid, 1)
            if form == "int8":
                ctx.set(unit.start.scale.multiplier, multiplier)
            await ctx.tick()
            ctx.set(unit.start.valid, 0)
            zeros = ctx.get(unit.zeros)
            for n in range(Reciprocal.latency(config) - 1):
                if n == 1:  # only this long must the sum stay
                    ctx.set(unit.i, 0)
                    if form == "int8":
                        ctx.set(unit.start.scale.multiplier, 0)
                await ctx.tick()
            seen.append((zeros, ctx.get(unit.o)))

    simulate(unit, bench)
    for total, multiplier, (zeros, got) in zip(sums, multipliers, seen, strict=True):
        assert zeros == 17 + bits - total.bit_length()
        if total:
            r = reference.reciprocal(total, bits)
            assert got == (r if form == "int16" else reference.rounded(r * multiplier, 17))


def scales(rng, form, count):
    if form == "int16":
        return [{"fraction": int(g)} for g in rng.integers(0, 16, count)]
    high = 47 if form == "int8" else 126
    shifts = rng.choice([19, high, 33, 35, 40], count)
    return [{"multiplier": int(rng.integers(2**16, 2**17)), "shift": int(s)} for s in shifts]


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", ["int8", "int16", "bfloat16"])
@pytest.mark.parametrize("bits", BITS)
def test_normalize(bits, form):
    config = AttentionConfig(
        lanes=32, folds=1, tile_keys=32, merge_lanes=1, probability_bits=bits, output=form
    )
    rng = np.random.default_rng(bits)
    unit = Normalizer(config)
    sums = totals(rng, bits, 15)
    cases = []
    for total, scale in zip(sums, scales(rng, form, len(sums)), strict=True):
        # A little more than 128 l is possible through rounding.
        largest = min(130 * total, 2 ** (23 + bits))
        outputs = [-largest, min(129 * total, 2 ** (23 + bits) - 1), 0, 1, -1]
        outputs += [int(v) >> int(rng.integers(0, 24)) for v in rng.integers(-largest, largest + 1, 27)]
        cases.append((total, scale, [o if total else 0 for o in outputs]))

    cycles = []
    for total, scale, outputs in cases:
        r = reference.reciprocal(total, bits) if total else 99
        if form != "int16":
            r = reference.rounded(r * scale["multiplier"], 17)
        for step in range(32):
            cycle = [(unit.control, {"valid": 1, "step": step, "bank": 1, "scale": scale})]
            # What belongs to step 0 is not there any more later, the rest follows behind its step.
            cycle.append((unit.zeros, 17 + bits - total.bit_length() if step == 0 else 3))
            cycles.append((cycle, [(unit.i[0], outputs[step])], [(unit.reciprocal, r)]))
    slack = Normalizer.RECIPROCAL_SLACK
    inputs = [[] for _ in range(len(cycles) + slack)]
    for n, (control, lane, r) in enumerate(cycles):
        inputs[n] += control
        inputs[n + 1] += lane
        inputs[n + slack] += r
    got = play(unit, inputs, [unit.o.lanes[0], unit.o.step, unit.o.valid], Normalizer.latency(config))
    for n, (total, scale, outputs) in enumerate(cases):
        for step, output in enumerate(outputs):
            expected = reference.normalized(output, total, bits, form, scale)
            assert got[32 * n + step] == [expected, step, 1]


@pytest.mark.parametrize(
    ("lanes", "folds", "merge_lanes", "form", "beat_width", "ports"),
    [
        (32, 1, 2, "int16", 128, 1),
        (16, 1, 2, "int8", 256, 2),
        (80, 1, 8, "int8", 512, 2),
        (80, 3, 4, "bfloat16", 512, 4),
        (64, 2, 8, "int16", 1024, 1),
        (128, 1, 16, "int16", 1024, 4),
        (48, 2, 4, "int16", 64, 1),
    ],
)
def test_output_buffer(lanes, folds, merge_lanes, form, beat_width, ports):
    config = AttentionConfig(
        lanes=lanes, folds=folds, merge_lanes=merge_lanes, output=form, result_ports=ports
    )
    rng = np.random.default_rng(8)
    unit = OutputBuffer(config, beat_width=beat_width)
    elements, width = config.max_head_dim, config.result_bits
    outputs = rng.integers(0, 2**width, (RESULT_BANKS, elements))
    beats = config.output_beats(beat_width)
    assert (beats - 1) * beat_width < elements * width <= beats * beat_width
    seen = {}

    async def bench(ctx):
        for bank in range(RESULT_BANKS):
            for at in range(config.merge_steps):
                some = outputs[bank, merge_lanes * at : merge_lanes * (at + 1)].tolist()
                ctx.set(unit.i, {"valid": 1, "bank": bank, "step": at, "lanes": some})
                await ctx.tick()
        ctx.set(unit.i.valid, 0)
        places = [(bank, beat) for bank in range(RESULT_BANKS) for beat in range(beats)]
        rng.shuffle(places)
        for bank, beat in places:
            for read in unit.read:
                ctx.set(read, {"valid": 1, "bank": int(bank), "beat": int(beat)})
            await ctx.tick()
            for read in unit.read:
                ctx.set(read, {"valid": 0, "bank": int(bank) ^ 1, "beat": 0})
            await ctx.tick()  # what was read stays
            seen[bank, beat] = plain(ctx.get(unit.o))

    simulate(unit, bench)
    for bank in range(RESULT_BANKS):
        # Units of 128 bits take turns at the ports, each of which has a slice of every beat.
        size, slice_bits = min(128, beat_width), beat_width // ports
        turns = (at for low in range(0, slice_bits, size) for at in range(low, beat_width, slice_bits))
        places = list(turns)
        row = 0
        for beat in range(beats):
            for n, place in enumerate(places):
                unit_bits = int(seen[bank, beat]) >> place & (1 << size) - 1
                row |= unit_bits << (beat * beat_width + n * size)
        expected = [row >> (width * d) & (2**width - 1) for d in range(elements)]
        assert expected == outputs[bank].tolist()
