"""Acceptance, issue, admission and release in RTL against the recurrences, with every delay of the host
and of the HBM.
"""

import functools
from itertools import pairwise

import pytest

from hw.oram.config import BEAT_BYTES, OramConfig
from hw.oram.core.touch.accept import Accept
from hw.oram.core.touch.times import TouchTimes
from hw.oram.core.touch.touch import Touch
from tests.hw.oram.core.touch.world import WAITS, World
from tests.support.gateware.streams import simulate

#: Small enough to fill all queues: 8 pages and 4 operations in flight.
SMALL = {"key_bits": 32, "log_n": 8, "alpha": 0.25, "inflight": 4, "position_cycles": 16, "settle_cycles": 16}
SHAPES = {
    "one": OramConfig(**SMALL),
    "padded": OramConfig(**SMALL, pad="always"),
    "both": OramConfig(**SMALL, touch="both", interval_cycles=11),
    "slow": OramConfig(**SMALL, touch="both", pad="always", aes_lanes=2),
}
TIMES = TouchTimes(
    position_cycles=40,
    touch_cycles=24,
    idle_position_cycles=29,
    idle_touch_cycles=17,
    rest_cycles=30,
    forward_cycles=26,
)
#: With one of these, each limit of the controls delays an action.
HOSTS = {
    "fast": {"host": 12, "cycles": 1100},
    "few commands": {"host": 12, "pace": 0.1, "cycles": 1100},
    "rare commands": {"host": 12, "pace": 0.01, "cycles": 4000},
    "slow responses": {"host": 12, "response": 200, "cycles": 1300},
    "slow pages": {"host": 60, "pages": 24, "cycles": 1600},
    "slowest": {"host": 200, "cycles": 9000},
}


@functools.cache
def gates(shape):
    return Touch(SHAPES[shape], TIMES)


def play(shape, *, cycles, **options):
    world = World(SHAPES[shape], gates(shape), times=TIMES, **options)

    async def bench(ctx):
        await world.run(ctx, cycles)

    simulate(world.dut, bench)
    return world


def cycles_of(world, at):
    return [t for t, row in enumerate(world.bus) if row[at] not in (None, 0)]


def expected_places(config, pages, times):
    """Return the newest place of each touch's page that was in flight at the issue."""
    newest, places, found = {}, 0, []
    for page, issued in zip(pages, times.issued, strict=True):
        before = newest.get(page) if page is not None else None
        in_flight = before is not None and issued < times.released[before] + 2
        found.append(before % config.scoreboard_pages if in_flight else None)
        if page is not None:
            newest[page] = places
            places += 1
    assert {place is None for place in found} == {True, False}
    return found


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "host", [pytest.param(name, marks=[pytest.mark.soak] if name == "slowest" else []) for name in HOSTS]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_event_comes_when_the_golden_gates_say(shape, host):
    config = SHAPES[shape]
    world = play(shape, **HOSTS[host])
    pages, touches = world.pages, world.touches
    assert world.turns == touches
    assert not world.halted
    paged = [n for n, page in enumerate(pages) if page is not None]
    times = world.expect()

    assert cycles_of(world, 0) == [t + 1 for t in times.accepted]
    assert world.alone == times.alone
    if host == "rare commands":
        assert 4 < sum(world.alone) < len(world.alone)
    assert [(t, row[1]) for t, row in enumerate(world.bus) if row[1] is not None] == [
        (times.issued[n] + 1, pages[n]) for n in paged
    ]
    assert cycles_of(world, 2) == [t + 1 for t in times.admitted]
    assert world.forwarded == expected_places(config, pages, times)
    beats = range(config.page_beats)
    assert [(t, row[3]) for t, row in enumerate(world.bus) if row[3] is not None] == [
        (times.admitted[n] + 1 + b * config.page_beat_cycles, x * len(beats) + b)
        for x, n in enumerate(paged)
        for b in beats
    ]

    assert world.records == [touch["record"] for touch in touches if touch["record_valid"]]
    kept = [touch for touch in touches if touch["last"] and touch["keep"]]
    assert world.fresh == [index for touch in kept for index in touch["fresh"]]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_bus_sees_is_the_same_for_other_secrets(shape):
    first, second = (play(shape, host=30, secret=secret, cycles=500) for secret in (1, 2))
    assert first.turns != second.turns
    assert first.hidden["record"].came != second.hidden["record"].came
    assert first.bus == second.bus


@pytest.mark.parametrize("shape", ["one", "slow"])
@pytest.mark.parametrize("name", WAITS)
def test_what_does_not_come_in_time_stops_everything(shape, name):
    whole = play(shape, host=12, cycles=400)
    world = play(shape, host=12, cycles=400, late=(name, 1))
    stopped = world.halted[0]
    assert world.halted == list(range(stopped, 400))
    assert world.late == {"operation": int(name == "operation"), "touch": int(name != "operation")}
    assert world.bus[:stopped] == whole.bus[:stopped]
    # Beats of an admitted page continue.
    assert all(row[:3] == (0, None, False) for row in world.bus[stopped + 1 :])
    drained = SHAPES[shape].page_beats * SHAPES[shape].page_beat_cycles
    assert all(row[3] is None for row in world.bus[stopped + drained :])


def test_a_fault_elsewhere_stops_everything():
    whole = play("one", host=12, cycles=400)
    dut = whole.dut
    world = World(SHAPES["one"], dut, times=TIMES, host=12)

    async def bench(ctx):
        await world.run(ctx, 400)

    async def fault(ctx):
        await ctx.tick().repeat(200)
        ctx.set(dut.stop, 1)
        await ctx.tick()
        ctx.set(dut.stop, 0)

    simulate(dut, bench, fault)
    assert world.halted == list(range(200, 400))
    assert world.bus[:201] == whole.bus[:201]
    assert all(row[:3] == (0, None, False) for row in world.bus[201:])


def test_commands_of_several_beats_pass_whole_and_an_interval_apart():
    config = OramConfig(log_n=8, value_bytes=128)
    beats = config.command_bytes // BEAT_BYTES
    assert beats == 3
    dut = Accept(config)
    passed, accepted = [], []

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        tick = ctx.tick().sample(dut.i.ready, dut.o.valid, dut.o.payload, dut.accepted)
        left = list(range(1, 3 * beats + 1))
        for cycle in range(4 * config.interval):
            ctx.set(dut.arrived, cycle < 3)
            ctx.set(dut.i.valid, bool(left) and cycle > 3)
            ctx.set(dut.i.payload, left[0] if left else 0)
            _, _, taken, valid, beat, begun = await tick
            if valid:
                passed.append(beat)
                left.pop(0)
                assert taken
            accepted.extend([cycle] * begun)

    simulate(dut, bench)
    assert passed == list(range(1, 3 * beats + 1))
    assert [after - before for before, after in pairwise(accepted)] == [config.interval] * 2
