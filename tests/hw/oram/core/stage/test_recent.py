"""Rings of recent words against dicts: the newest place of a word, and all places with it."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.oram.core.stage.recent import Recent
from tests.support.gateware.streams import simulate
from tests.support.proofs.mutants import mutant

WIDTH, RINGS = 7, 2


class Rings(wiring.Component):
    """Two rings that share lookups."""

    def __init__(self, turns, make):
        self._turns, self._make = turns, make
        flags = {name: In(1) for name in ("ask", "present")}
        super().__init__(
            flags
            | {"word": In(WIDTH), "enter": In(RINGS), "equal": Out(turns), "found": Out(RINGS)}
            | {"turn": Out(range(turns)).array(RINGS)}
        )

    def elaborate(self, platform):
        m = Module()
        for n in range(RINGS):
            m.submodules[f"ring_{n}"] = ring = self._make(width=WIDTH, turns=self._turns, every=n == 1)
            for name in ("ask", "present", "word"):
                m.d.comb += getattr(ring, name).eq(getattr(self, name))
            m.d.comb += [
                ring.enter.eq(self.enter[n]),
                self.found[n].eq(ring.found),
                self.turn[n].eq(ring.turn),
            ]
        m.d.comb += self.equal.eq(ring.equal)
        return m


def play(turns, words, *, make=Recent):
    """Look up a word for each ring, enter most of them, and return the differences."""
    rng = random.Random(turns)
    dut = Rings(turns, make)
    content = [[None] * turns for _ in range(RINGS)]
    at, newest, steps, wanted = [0] * RINGS, {}, {}, {}
    cycle, drawn = 0, [0, *(rng.getrandbits(WIDTH) for _ in range(words - 1))]  # 0: of places before use
    for _ in range(4 * turns + 60):
        for ring in range(RINGS):
            word, enters = rng.choice(drawn), ring == 0 or rng.random() < 0.8
            present = enters and rng.random() < 0.8
            equal = sum((old == word) << place for place, old in enumerate(content[1]))
            wanted[cycle + ring] = newest.get(word), equal
            steps[cycle + ring] = word, enters << ring, present
            if enters:
                place = at[ring] = (at[ring] + 1) % turns
                old, content[ring][place] = content[ring][place], word
                if newest.get(old) == (ring, place):
                    del newest[old]
                if present:
                    newest[word] = ring, place
        cycle += rng.choice([4, 4, 5, 9])
    wrong = []

    async def bench(ctx):
        for now in range(cycle):
            word, enter, _ = steps.get(now, (0, 0, 0))
            ctx.set(dut.ask, now in steps)
            ctx.set(dut.word, word)
            ctx.set(dut.enter, enter)
            ctx.set(dut.present, steps.get(now - 1, (0, 0, 0))[2])
            if now - 2 in wanted and ctx.get(dut.equal) != wanted[now - 2][1]:
                wrong.append(now)
            if now - Recent.LATENCY in wanted:
                place = wanted[now - Recent.LATENCY][0]
                told = [(n, ctx.get(dut.turn[n])) for n in range(RINGS) if ctx.get(dut.found) >> n & 1]
                if told != ([place] if place else []):
                    wrong.append(now)
            await ctx.tick()

    simulate(dut, bench)
    return wrong


@pytest.mark.parametrize(("turns", "words"), [(5, 3), (16, 8), (70, 90)])
def test_newest_and_equal(turns, words):
    assert play(turns, words) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("newest & ~(equal & replaces)", "newest"),
        ("& ~entered)", ")"),
        ("(entered & replaces)", "entered"),
        ("known[at].eq(started)", "known[at].eq(1)"),
    ],
)
def test_bugs_are_found(old, new):
    assert play(5, 3, make=mutant(Recent, old, new))
