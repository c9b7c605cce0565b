"""Counters, for all time: one class a cycle, and the classes add up."""

from __future__ import annotations

import pytest
from amaranth.hdl import Elaboratable, Module, Signal

from hw.lib import counters
from hw.lib.counters import Counters
from tests.support.proofs.formal import PropertyFailure, check, cover, free, prove, reach
from tests.support.proofs.mutants import mutant


class CountersSpec(Elaboratable):
    def __init__(self, cls=Counters):
        self.dut = cls(["memory", "output"])

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        free(m, dut.start, dut.done, dut.busy, dut.stall)
        counts = {name: dut.counters[name] for name in dut.names}
        total = counts.pop("cycles_total")
        added = sum(counts.values())
        check(m, added[: len(total)] == total, "busy, stalls and idle add up to the total")

        # A count shows a cycle after what it counts.
        start, done = Signal(name="started"), Signal(name="ended")
        m.d.sync += [start.eq(dut.start), done.eq(dut.done)]
        finished = Signal(name="finished")
        final = Signal(len(dut.counters.as_value()), name="final")
        with m.If(start):
            m.d.sync += finished.eq(done)
        with m.Elif(done):
            m.d.sync += finished.eq(1)
        m.d.sync += final.eq(dut.counters.as_value())
        was_finished = Signal(name="was_finished")
        m.d.sync += was_finished.eq(finished & ~start)
        with m.If(was_finished):
            check(m, dut.counters.as_value() == final, "nothing counts after done")
        for name, count in counts.items():
            reach(m, count == 2, f"{name} counts")
        return m


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    """Equality of sums is hard for a solver at 64 bits; no bit of a counter differs from another in kind."""
    monkeypatch.setattr(counters, "COUNTER_WIDTH", 5)


def test_counters():
    prove(CountersSpec(), depth=2)
    cover(CountersSpec(), depth=6)


BUGS = {
    "two classes in a cycle": ("with m.Elif(stall[cause]):", "with m.If(stall[cause]):", "add up"),
    "idle forgotten": ('count("cycles_idle")', "pass", "add up"),
    "total counts on": (
        "with m.Elif(running):",
        'with m.If(~running):\n            count("cycles_total")\n        with m.Elif(~start):',
        "add up|after done",
    ),
    "counts after done": ("m.d.sync += running.eq(~done)\n", "pass\n", "after done"),
    "not cleared": (", self.counters.as_value().eq(0)]", ', self.counters["cycles_busy"].eq(0)]', "add up"),
}


# The longest trace: two runs.
@pytest.mark.parametrize(
    "bug", [pytest.param(bug, marks=[pytest.mark.soak] if bug == "not cleared" else []) for bug in BUGS]
)
def test_seeded_bug_is_found(bug):
    old, new, words = BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        prove(CountersSpec(mutant(Counters, old, new)), depth=8)
