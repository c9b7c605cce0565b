# amaranth: UnusedElaboratable=no
"""From the ends of passes to results: one stream without waiting, several as soon as all are there."""

import random

import pytest

from hw.attention.config import RESULT_BANKS
from hw.attention.core.finish import Finish
from hw.attention.core.result.combine import Combine
from hw.attention.core.result.normalize import Normalizer
from hw.attention.core.timing import CoreTiming
from hw.attention.core.value_side import FINAL_BANKS, banks_behind
from tests.hw.attention.plain import small
from tests.support.gateware.streams import plain, simulate

CONFIGS = [
    small(lanes=32, folds=2),
    small(lanes=32, folds=2, output="int8"),
    small(lanes=32, folds=3, streams=2, merge_lanes=4),
    small(lanes=48, folds=2, streams=4, output="bfloat16"),
    small(lanes=16, folds=1, streams=16, output="int8"),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("slow", ["streams", "results"])
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: f"{config.streams}-{config.output}")
def test_finish(config, slow):
    rng = random.Random(f"{slow} {config}")
    unit, timing = Finish(config), CoreTiming(config)
    count = 25

    def command():
        scale = {"fraction": rng.randrange(16)}
        if config.output != "int16":
            scale = {"multiplier": rng.randrange(1 << 17), "shift": rng.randrange(19, 48)}
        units = rng.randint(1, config.max_head_dim // 16)
        parts = {"last_key_part": 0, "last_value_part": (16 * units - 1) // config.lanes}
        return {"rows": rng.randint(1, config.rows), "value_units": units, "scale": scale, **parts}

    commands = [command() for _ in range(count)]
    steps = [given["value_units"] * 16 // config.merge_lanes for given in commands]
    closes = [[] for _ in range(config.streams)]
    begins, freed, drains, results, trace = [], [], [], [], []

    async def bench(ctx):
        full = [0] * config.streams  # banks of each stream's finals
        waiting = 0  # results
        quiet = [0] * config.streams
        while len(results) < count or len(trace) < begins[-1] + 200:
            now = len(trace)
            bits = 0
            for n in range(config.streams):
                quiet[n] -= 1
                number = len(closes[n])
                # As `ValueSide`: one stream waits for a bank of results and the divider, several for one of
                # finals.
                bank = full[n] < banks_behind(config)
                if number < count and bank and quiet[n] <= 0 and rng.random() < (0.03 if n else 0.3):
                    bits |= 1 << n
                    closes[n].append(now)
                    full[n] += 1
                    merge = (commands[number]["last_value_part"] + 1) * config.part_steps
                    quiet[n] = max(merge, timing.interval) if config.streams == 1 else merge
            ctx.set(unit.closed, bits)
            loaded = min(count - 1, len(begins))
            ctx.set(unit.i.payload, commands[loaded])
            ctx.set(unit.i.valid, len(begins) < count)
            drains_now = waiting > 0 and rng.random() < (0.02 if slow == "results" else 0.5)
            ctx.set(unit.drained, drains_now)
            if drains_now:
                drains.append(now)
            names = ("final", "sum_bank", "combine", "divide", "normalize", "bank_freed")
            trace.append({name: plain(ctx.get(getattr(unit, name))) for name in names})
            begun = ctx.get(unit.i.ready)
            assert begun == trace[-1]["combine"]
            if begun:
                begins.append(now)
            if ctx.get(unit.bank_freed):
                freed.append(now)
                full = [banks - 1 for banks in full]
            if ctx.get(unit.result.valid):
                results.append((now, plain(ctx.get(unit.result.payload))))
            waiting += ctx.get(unit.result.valid) - drains_now
            await ctx.tick()

    simulate(unit, bench, limit=60_000)

    # When each pass begins.
    expected = []
    for n in range(count):
        begin = max(cycles[n] for cycles in closes) + timing.final
        if config.streams > 1:
            if n:
                begin = max(begin, expected[-1] + max(timing.interval, steps[n - 1]))
            if n >= RESULT_BANKS:
                begin = max(begin, drains[n - RESULT_BANKS] + 1)
        expected.append(begin)
    assert begins == expected
    # What follows at fixed times.
    sequences = {"divide": {}, "normalize": {}, "final": {}}
    for n, begin in enumerate(begins):
        assert trace[begin]["sum_bank"] == n % 2
        scale = commands[n]["scale"]
        sequences["divide"][begin + timing.divide] = {"valid": 1, "scale": scale}
        for step in range(steps[n]):
            cycle, where = begin + timing.normalize + step, {"valid": 1, "step": step}
            sequences["normalize"][cycle] = {**where, "bank": n % RESULT_BANKS, "scale": scale}
            sequences["final"][cycle] = {**where, "bank": n % FINAL_BANKS}
        ready = begin + timing.normalize + steps[n] - 1 + Combine.lane_latency(config)
        assert results[n] == (ready + Normalizer.latency(config), n % RESULT_BANKS)
        # A queue that takes a cycle follows.
        complete = begin + timing.drained - config.merge_steps + steps[n]
        assert results[n][0] + 1 == complete
    for name, sequence in sequences.items():
        assert {cycle: now[name] for cycle, now in enumerate(trace) if now[name]["valid"]} == sequence
    if config.streams == 1:
        assert freed == drains
    else:
        assert freed == [begin + timing.normalize for begin in begins]
