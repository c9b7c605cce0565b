# amaranth: UnusedElaboratable=no
"""Counters: each cycle in exactly one class, by priority, from start to done."""

from __future__ import annotations

import random

import pytest

from hw.errors import InputError
from hw.lib.counters import Counters, counter_names
from tests.support.gateware.streams import plain, seeds, simulate

CAUSES = ("memory", "output", "command")


class Model:
    """One run after the other, counted by hand."""

    def __init__(self):
        self.counts = dict.fromkeys(counter_names(CAUSES), 0)
        self.running = False

    def step(self, start, done, busy, stall):
        if start:
            self.counts = dict.fromkeys(self.counts, 0)
            self.running = not done
            return
        if not self.running:
            return
        self.running = not done
        self.counts["cycles_total"] += 1
        held_by = next((cause for cause in CAUSES if stall[cause]), None)
        if busy:
            self.counts["cycles_busy"] += 1
        elif held_by:
            self.counts[f"cycles_stall_{held_by}"] += 1
        else:
            self.counts["cycles_idle"] += 1


@pytest.mark.parametrize("seed", seeds(4, 20))
def test_against_the_model(seed):
    dut, model, rng = Counters(CAUSES), Model(), random.Random(seed)
    seen = set()

    async def drive(ctx):
        for _ in range(500):
            start, done = rng.random() < 0.04, rng.random() < 0.03
            busy = rng.random() < 0.4
            stall = {cause: rng.randrange(2) for cause in CAUSES}
            ctx.set(dut.start, start)
            ctx.set(dut.done, done)
            ctx.set(dut.busy, busy)
            ctx.set(dut.stall, stall)
            await ctx.tick()
            found = plain(ctx.get(dut.counters))
            assert found == model.counts  # a cycle late
            model.step(start, done, busy, stall)
            assert sum(found.values()) == 2 * found["cycles_total"]
            seen.update(name for name, count in found.items() if count)

    simulate(dut, drive)
    assert seen == set(counter_names(CAUSES))


def test_total_is_the_distance_from_start_to_done_and_then_stands():
    dut = Counters([])
    totals = []

    async def drive(ctx):
        for cycle in range(20):
            ctx.set(dut.start, cycle == 3)
            ctx.set(dut.done, cycle == 11)
            await ctx.tick()
            totals.append(ctx.get(dut.counters["cycles_total"]))

    simulate(dut, drive)
    assert totals == [0] * 5 + list(range(1, 9)) + [8] * 7


def test_names_are_those_of_reports():
    assert counter_names(["hbm"]) == ("cycles_total", "cycles_busy", "cycles_stall_hbm", "cycles_idle")


@pytest.mark.parametrize(
    ("causes", "message"),
    [
        (["Memory"], "^causes must be lower-case identifiers, not 'Memory'$"),
        (["a b"], "^causes must be lower-case identifiers, not 'a b'$"),
        (["a", "b", "a"], "^causes must be named once each, not 'a'$"),
    ],
)
def test_wrong_causes_are_refused(causes, message):
    with pytest.raises(InputError, match=message):
        Counters(causes)
