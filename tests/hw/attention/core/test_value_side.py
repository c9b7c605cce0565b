# amaranth: UnusedElaboratable=no
"""The side of values, cycle by cycle: no tile ends too early, and what the rows are told of each part."""

import random

import pytest

from hw.attention.core.row.maximum import LOGIT_TILES
from hw.attention.core.timing import CoreTiming
from hw.attention.core.value_side import ValueSide, banks_behind, spacing
from tests.hw.attention.plain import small
from tests.support.gateware.streams import plain, simulate

CONFIGS = {
    "plain": small(lanes=16, tile_keys=16, folds=1, merge_lanes=1),
    "folds": small(lanes=32, tile_keys=32, folds=3, merge_lanes=4),
    "streams": small(lanes=32, tile_keys=16, folds=2, streams=4, probability_bits=8, merge_lanes=4),
}


def test_spacing():
    config = CONFIGS["plain"]
    assert spacing(config, parts=1, closes=False) == 16
    assert spacing(small(lanes=16, folds=2, merge_lanes=2), parts=1, closes=False) == 8
    assert spacing(small(lanes=16, folds=2, merge_lanes=2), parts=2, closes=False) == 16
    # A division takes 11 cycles; with several streams it is not this side's business.
    assert spacing(small(lanes=16, folds=2, merge_lanes=2), parts=1, closes=True) == 11
    assert spacing(small(lanes=16, folds=2, merge_lanes=2, streams=2), parts=1, closes=True) == 8


@pytest.mark.sample(2)
@pytest.mark.parametrize(("stall", "banks"), [(0.0, 1.0), (0.4, 0.005), (0.0, 0.005)])
@pytest.mark.parametrize("name", CONFIGS)
def test_values(name, stall, banks):
    config = CONFIGS[name]
    rng = random.Random(f"{name} {stall} {banks}")
    tiles, opens = [], True
    for _ in range(30):
        closes = rng.random() < 0.5
        length = rng.choice([1, 2, rng.randint(1, config.tile_keys), config.tile_keys])
        value_part = rng.randrange(config.folds) if opens else tiles[-1]["last_value_part"]
        tile = {"last_index": length - 1, "opens": opens, "closes": closes, "last_value_part": value_part}
        tiles.append(tile)
        opens = closes
    parts = [
        (n, index, part)
        for n, tile in enumerate(tiles)
        for index in range(tile["last_index"] + 1)
        for part in range(tile["last_value_part"] + 1)
    ]
    unit, timing = ValueSide(config), CoreTiming(config)
    trace, ends, lasts, waited = [], [], set(), {"bank": 0, "merge": 0}

    async def bench(ctx):
        given = done = 0  # tiles
        part = 0
        valid = False
        arrived = []  # cycle in which each tile came
        decided = []  # what is to be read, before its register
        free, bank = banks_behind(config), 0
        logits = 0
        while part < len(parts) or len(trace) < ends[-1][0] + 100:
            now = len(trace)
            gives = given < len(tiles) and given - done < LOGIT_TILES and rng.random() < 0.5
            ctx.set(unit.i_tile.valid, gives)
            if gives:
                ctx.set(unit.i_tile.payload, tiles[given])
                arrived.append(now)
                given += 1
            valid = valid or (part < len(parts) and rng.random() >= stall)
            ctx.set(unit.i_value.valid, valid)
            ctx.set(unit.i_value.payload, [part % 256 - 128] * config.lanes)
            frees = free < banks_behind(config) and rng.random() < banks
            ctx.set(unit.bank_freed, frees)

            number, index, of_value = parts[min(part, len(parts) - 1)]
            tile = tiles[number]
            there = part < len(parts) and number < len(arrived) and arrived[number] < now
            ends_key = of_value == tile["last_value_part"]
            ends_tile = ends_key and index == tile["last_index"]
            lacks_bank = tile["closes"] and free == 0
            merges = bool(ends) and now < ends[-1][0] + timing.ends
            last_key = index == tile["last_index"]
            may = there and not (last_key and (lacks_bank or merges))
            waited["bank"] += there and last_key and lacks_bank
            waited["merge"] += there and last_key and merges and not lacks_bank
            issue = may and valid
            assert ctx.get(unit.i_value.ready) == may
            assert ctx.get(unit.blocked) == (there and last_key and lacks_bank)
            assert ctx.get(unit.starved) == (may and not valid)
            assert ctx.get(unit.freed) == (issue and ends_key)
            assert ctx.get(unit.ended) == (issue and ends_tile)
            decided.append(
                {"valid": issue, "last": issue and ends_tile, "first": issue and index == of_value == 0}
                | ({"slot": number % LOGIT_TILES, "entry": logits % config.logit_entries} if issue else {})
            )
            read, wanted = plain(ctx.get(unit.read)), decided[max(0, now - timing.read)]
            if now >= timing.read:
                assert {name: read[name] for name in wanted} == wanted
            names = ("exponent", "value", "step", "merge")
            seen = {name: plain(ctx.get(getattr(unit, name))) for name in names}
            trace.append(seen | {"part": part if issue else None, "closed": ctx.get(unit.closed)})

            if issue:
                part, valid = part + 1, False
                logits += ends_key
            if issue and ends_tile:
                space = spacing(config, parts=of_value + 1, closes=tile["closes"])
                merged = max(now, ends[-1][0] + ends[-1][1]) if ends else now
                ends.append((merged, space, number, bank))
                lasts.add(now + timing.step)
                done += 1
                free -= tile["closes"]
                bank ^= tile["closes"]
            free += frees
            await ctx.tick()

    simulate(unit, bench, limit=20_000)
    assert waited["merge"]
    assert waited["bank"] or banks == 1.0

    exponents = {cycle for cycle, now in enumerate(trace) if now["exponent"]}
    issued = {cycle: now["part"] for cycle, now in enumerate(trace) if now["part"] is not None}
    assert exponents == {cycle + timing.exponent for cycle in issued}
    assert lasts == {cycle for cycle, now in enumerate(trace) if now["step"]["last"]}
    closed = {cycle for cycle, _, number, _ in ends if tiles[number]["closes"]}
    assert closed == {cycle for cycle, now in enumerate(trace) if now["closed"]}
    for cycle, part in issued.items():
        number, index, of_value = parts[part]
        assert trace[cycle + timing.step]["value"] == [part % 256 - 128] * config.lanes
        step = trace[cycle + timing.step]["step"]
        ends_tile = index == tiles[number]["last_index"]
        assert (step["part"], step["first"], step["ends"]) == (of_value, index == 0, ends_tile)
        assert step["turn"] == (tiles[number]["last_value_part"] > 0)
        assert step["last_part"] == tiles[number]["last_value_part"]
    for cycle in range(timing.step, len(trace)):
        if cycle - timing.step not in issued:
            assert not trace[cycle]["step"]["ends"]
            assert not trace[cycle]["step"]["first"]
            assert not trace[cycle]["step"]["turn"]

    steps = {}
    for cycle, _, number, bank in ends:
        tile = tiles[number]
        for n in range((tile["last_value_part"] + 1) * config.part_steps):
            where = {"opens": tile["opens"], "closes": tile["closes"], "bank": bank}
            steps[cycle + timing.merge + n] = {"valid": 1, "step": n, **where}
    begins = {cycle + timing.merge - 1 for cycle, *_ in ends}
    assert {cycle for cycle, now in enumerate(trace) if now["merge"].pop("begins")} == begins
    assert {cycle: now["merge"] for cycle, now in enumerate(trace) if now["merge"]["valid"]} == steps
