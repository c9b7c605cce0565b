# amaranth: UnusedElaboratable=no
"""Queries and settings go to their rows, into the bank that no stream uses, and to every stream at once."""

import functools
import random

import pytest

from hw.attention.core.query_side import QuerySide
from hw.attention.core.timing import CoreTiming
from tests.hw.attention.plain import small
from tests.support.gateware.streams import Side, Stuck, exchange, get, plain, put, simulate
from tests.support.proofs.mutants import mutant


@pytest.mark.parametrize("stall", [0.0, 0.3, 0.8])
@pytest.mark.parametrize(("streams", "folds"), [(1, 1), (1, 3), (4, 2)])
def test_queries(streams, folds, stall):
    config = small(rows=3, lanes=16, folds=folds, streams=streams, alibi=streams == 4)
    rng = random.Random(f"{streams} {stall}")
    commands = [
        {
            "rows": rng.randint(1, config.rows),
            "last_key_part": rng.randrange(folds),
            "last_value_part": rng.randrange(folds),
            "value_units": rng.randint(1, folds),
            "scale": {"fraction": rng.randrange(16)},
        }
        for _ in range(15)
    ]
    empty = [int(rng.random() < 0.3) for _ in commands]
    banks = [sum(1 - bit for bit in empty[:n]) % 2 for n in range(len(commands))]
    places = [  # of every part: bank, row, part, whether it is its row's last one, and its pass
        (banks[n], row, part, part == command["last_key_part"], n)
        for n, command in enumerate(commands)
        for row in range(command["rows"])
        for part in range(command["last_key_part"] + 1)
    ]
    queries = [[rng.randrange(-128, 128) for _ in range(16)] for _ in places]
    settings = []
    for _ in range(sum(command["rows"] for command in commands)):
        row = {"first": 1 << 17, "end": 1 << 17, "multiplier": 1 << 17, "shift": 1 << 6}
        row |= {"position": 1 << 17, "slope": 1 << 26} if config.alibi else {}
        settings.append({name: rng.randrange(limit) for name, limit in row.items()})
    unit = QuerySide(config)
    trace, takes = [], [[] for _ in range(streams)]

    def stream(number):
        """Take passes at random."""

        async def take(ctx):
            draw = random.Random(f"{number} {stall}")
            while True:
                wants = draw.random() < 0.2
                loaded = ctx.get(unit.loaded) >> number & 1
                ctx.set(unit.take[number], wants & loaded)
                if wants & loaded:
                    takes[number].append(len(trace))
                await ctx.tick()

        return take

    async def note(ctx):
        names = ("load", "query", "place", "configure", "settings", "loaded")
        while True:
            _, _, *values = await ctx.tick().sample(*(getattr(unit, name) for name in names))
            trace.append(dict(zip(names, map(plain, values), strict=True)))

    sides = {
        "command": Side(unit.i_command, items=commands, stall=stall),
        "row": Side(unit.i_row, items=settings, stall=stall),
        "query": Side(unit.i_query, items=queries, stall=stall),
        "empty": Side(unit.i_empty, items=empty, stall=stall),
        "o": Side(unit.o, count=empty.count(0), stall=stall / 2),
        "results": Side(unit.results, count=len(commands), stall=stall / 2),
    }
    exchange(unit, sides, background=[note, *(stream(n) for n in range(streams))])
    computed = [n for n, bit in enumerate(empty) if not bit]
    assert sides["o"].received == [commands[n] for n in computed]
    assert sides["results"].received == [
        {"rows": command["rows"], "units": command["value_units"], "empty": bit}
        for command, bit in zip(commands, empty, strict=True)
    ]

    # What is not loaded is of an empty pass, for which no bank was free.
    loads, number = [], 0
    for cycle, now in enumerate(trace):
        if not now["load"]:
            continue
        while (now["load"], now["query"]) != (taking(places[number][1], config.rows), queries[number]):
            assert empty[places[number][4]]
            number += 1
        loads.append((cycle, number))
        number += 1
    assert all(empty[place[4]] for place in places[number:])
    for cycle, number in loads:
        bank, _, part, _, n = places[number]
        assert trace[cycle]["place"] == {"bank": bank, "part": part}
        # In the register since the cycle before; the other bank's pass is not taken before, by any stream.
        passes_before = sum(1 for other in range(streams) for take in takes[other] if take <= cycle - 1)
        assert passes_before >= len([other for other in computed if other < n]) * streams
    configured = [(cycle, now) for cycle, now in enumerate(trace) if now["configure"]]
    row_settings = dict(
        zip([number for number, place in enumerate(places) if place[3]], settings, strict=True)
    )
    lasts = [(cycle, number) for cycle, number in loads if places[number][3]]
    later = CoreTiming(config).adopt + 1
    for (cycle, now), (loaded, number) in zip(configured, lasts, strict=False):
        assert (cycle, now["configure"]) == (loaded + later, 1 << places[number][1])
        assert now["settings"] == row_settings[number]
    assert len(configured) >= len(lasts) - later - 1  # the run may end before the last ones
    if not stall and streams == 1:
        # A pass loads from the cycle on in which the one before is taken, a part a cycle, or sooner behind
        # empty ones, which do not wait for any to be taken.
        come = {number: cycle for cycle, number in loads}
        begin = 0
        for n, command in enumerate(commands):
            count = command["rows"] * (command["last_key_part"] + 1)
            if n and not empty[n] and not empty[n - 1]:
                take = takes[0][computed.index(n) - 1]
                assert [come[begin + at] for at in range(count)] == list(range(take + 1, take + 1 + count))
            begin += count


def taking(row, rows):
    """Return the rows that take a row's query: that behind an even one, too, so that it has numbers."""
    return 1 << row | (0 if row % 2 or row + 1 == rows else 2 << row)


def loaded_before_room(side):
    """Return the passes that are reported, and how many are loaded before anybody asks for the reports."""
    config = small(rows=1, lanes=16, folds=1)
    unit, count = side(config), 20
    commands = [{"rows": 1, "last_key_part": 0, "last_value_part": 0, "value_units": 1}] * count
    numbered = [command | {"scale": {"fraction": n % 16}} for n, command in enumerate(commands)]
    row = {"first": 0, "end": 1, "multiplier": 0, "shift": 0}
    early, received = [], []

    async def computes(ctx):
        """Take every pass at once."""
        while True:
            ctx.set(unit.take, ctx.get(unit.loaded))
            await ctx.tick()

    async def divides(ctx):
        """Ask for none while the others go on."""
        for _ in range(100):
            _, _, load = await ctx.tick().sample(unit.load)
            early.extend([1] * load)
        received.extend(await get(ctx, unit.o, count))

    feeds = (unit.i_command, numbered), (unit.i_row, [row] * count), (unit.i_query, [[0] * 16] * count)
    feeds += ((unit.i_empty, [0] * count),)
    sides = [functools.partial(put, stream=stream, payloads=payloads) for stream, payloads in feeds]
    sides.append(functools.partial(get, stream=unit.results, count=count))
    simulate(unit, divides, background=[computes, *sides], limit=400)
    return [command["scale"]["fraction"] for command in received], len(early)


def test_passes_wait_for_room_behind_them():
    assert loaded_before_room(QuerySide) == ([n % 16 for n in range(20)], 8)
    with pytest.raises(Stuck):
        loaded_before_room(mutant(QuerySide, "& passes.i.ready & self", "& self"))
