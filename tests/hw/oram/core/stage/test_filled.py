"""Slots that recent operations filled, against a list of all operations."""

import functools
import operator
import random

import pytest

from hw.oram.core.stage.filled import FilledSlots
from tests.support.gateware.streams import set_all, simulate
from tests.support.proofs.mutants import mutant

SLOTS, TURNS = 5, 6


def play(*, written, make=FilledSlots):
    """Enter 200 operations, each with its slot ``written`` cycles later; return those with wrong slots."""
    rng = random.Random(written)
    dut = make(slots=SLOTS, turns=TURNS, labels=1)
    starts, slots, equals = [0], [], []
    for _ in range(200):
        starts.append(starts[-1] + rng.choice([4, 4, 4, 5, 6, 7, 11]))
        slots.append(rng.choice([0, *(1 << n for n in range(SLOTS))]))
        equals.append(rng.getrandbits(TURNS))
    asks = {cycle: n for n, cycle in enumerate(starts[:-1])}
    wrong = []

    def shown(number, place):
        """Return the slot in a place, which operation ``number`` overwrites only behind its own look."""
        last = max((n for n in range(number) if (n + 1) % TURNS == place), default=None)
        known = last is not None and starts[last] + written < starts[number]
        return slots[last] if known else 0

    async def bench(ctx):
        place = 0
        for cycle in range(starts[-1]):
            number = asks.get(cycle)
            if cycle - 1 in asks:
                place = (place + 1) % TURNS
            ends = asks.get(cycle - written)
            set_all(
                ctx,
                [
                    (dut.ask, number is not None),
                    (dut.enter, number is not None),
                    (dut.equal[0], equals[number] if number is not None else 0),
                    (dut.place[0], 1 << place),
                    (dut.written, ends is not None),
                    (dut.appended[0], slots[ends] if ends is not None else 31),
                ],
            )
            if (asked := asks.get(cycle - FilledSlots.LATENCY)) is not None:
                places = (at for at in range(TURNS) if equals[asked] >> at & 1)
                expected = functools.reduce(operator.or_, (shown(asked, at) for at in places), 0)
                if ctx.get(dut.unseen) != expected:
                    wrong.append(asked)
            await ctx.tick()

    simulate(dut, bench)
    return wrong


@pytest.mark.parametrize("written", [4, 5, 6, 7])
def test_slots(written):
    assert play(written=written) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("waits.eq((self.enter | waits) & self.written)", "waits.eq(0)"),
        ("init=1 << 1 % self._turns", "init=1"),
        ("(self.place[label][turn] & clears[share])", "0"),
    ],
)
def test_bugs_are_found(old, new):
    assert any(play(written=written, make=mutant(FilledSlots, old, new)) for written in (4, 5))
