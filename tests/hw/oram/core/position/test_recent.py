"""The newest operation with the same number, against a list searched from its end."""

import random

import pytest

from hw.oram.core.position.recent import RecentBuckets
from tests.support.gateware.streams import simulate
from tests.support.proofs.mutants import mutant


def follow(places, numbers, make):
    """Compare each match; steps at the least distance and later; after ``clear`` nothing is known."""
    rng = random.Random(places)
    dut = make(bits=7, places=places)
    seen, wanted, found = [], {}, {}

    async def play(ctx):
        wait = 0
        for cycle in range(1600):
            clear = cycle == 800
            step = wait == 0 and rng.random() < 0.7 and not clear
            number = rng.randrange(numbers)
            ctx.set(dut.step, step)
            ctx.set(dut.number, number)
            ctx.set(dut.clear, clear)
            if clear:
                seen.extend([None] * places)  # the ring turns on
                wait = RecentBuckets.LATENCY
            wait = RecentBuckets.SPACING - 1 if step else max(0, wait - 1)
            if step:
                last = seen[:-places:-1]
                age = last.index(number) if number in last else None
                wanted[cycle] = None if age is None else ((len(seen) - 1 - age) % places, age == 0)
                seen.append(number)
            await ctx.tick()
            told = (ctx.get(dut.place), bool(ctx.get(dut.same))) if ctx.get(dut.found) else None
            found[cycle + 1 - RecentBuckets.LATENCY] = told

    simulate(dut, play)
    assert {cycle: found[cycle] for cycle in wanted if cycle in found} == {
        cycle: told for cycle, told in wanted.items() if cycle in found
    }
    assert sum(told is not None for told in wanted.values()) > 20


@pytest.mark.parametrize(("places", "numbers"), [(2, 2), (8, 3), (9, 12), (33, 40), (150, 120)])
def test_newest(places, numbers):
    follow(places, numbers, RecentBuckets)


@pytest.mark.parametrize(
    ("old", "new"), [("number, valid & ~turn", "number, valid"), ("valid & ~match", "valid")]
)
def test_bugs_are_found(old, new):
    """The place of the next operation has its predecessor's number; older places match."""
    with pytest.raises(AssertionError):
        follow(8, 3, mutant(RecentBuckets, old, new))


def test_no_step_is_the_same_as_one_before_a_clear():
    """Nor is the first one from reset, whose predecessor has no number."""
    dut = RecentBuckets(bits=7, places=8)
    same = []

    async def play(ctx):
        for clear in (0, 0, 1, 0):
            ctx.set(dut.clear, clear)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            ctx.set(dut.step, 1)
            await ctx.tick()
            ctx.set(dut.step, 0)
            await ctx.tick().repeat(RecentBuckets.LATENCY - 1)
            same.append(ctx.get(dut.same))

    simulate(dut, play)
    assert same == [0, 1, 0, 1]
