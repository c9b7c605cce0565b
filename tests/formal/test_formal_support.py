"""The proof machinery judges correctly: true, false, undecided and empty specs are told apart."""

from __future__ import annotations

import pytest
from amaranth.back import verilog
from amaranth.hdl import Elaboratable, Module, Mux, Signal

from tests.support.proofs.formal import (
    PropertyFailure,
    Unproven,
    alike,
    bounded,
    check,
    constant,
    cover,
    free,
    prove,
    reach,
    suppose,
)


class Counter(Elaboratable):
    """Counts to ``top`` and wraps; claims never to pass ``claim``; ``stray`` states lie beyond ``top``."""

    def __init__(self, top=5, claim=5, when=1):
        self.top = top
        self.claim = claim
        self.when = when

    def elaborate(self, platform):
        m = Module()
        step = Signal()
        count = Signal(8)
        free(m, step)
        with m.If(step):
            m.d.sync += count.eq(Mux(count == self.top, 0, count + 1))
        with m.If(self.when):
            check(m, count <= self.claim, "count stays in range")
        reach(m, count == self.top, "count gets to the top")
        return m


class Contradiction(Elaboratable):
    """Relies on what cannot be; everything follows."""

    def elaborate(self, platform):
        m = Module()
        value = Signal(4)
        free(m, value)
        suppose(m, value > 3, "large")
        suppose(m, value < 2, "small")
        check(m, value == 9, "nine")
        return m


class Constants(Elaboratable):
    def __init__(self, drive):
        self.drive = drive

    def elaborate(self, platform):
        m = Module()
        value, last, seen = Signal(3), Signal(3), Signal()
        self.drive(m, value)
        m.d.sync += [last.eq(value), seen.eq(1)]
        with m.If(seen):
            check(m, last == value, "never changes")
        return m


class Hidden(Elaboratable):
    """Two counters in step; that they are equal is an invariant nobody states."""

    def elaborate(self, platform):
        m = Module()
        a, b = Signal(4, name="a"), Signal(4, name="b")
        step = Signal()
        free(m, step)
        with m.If(step):
            m.d.sync += [a.eq(a + 1), b.eq(b + 1)]
        check(m, ~((a == 9) & (b == 3)), "never nine and three")
        return m


def test_true_property_is_proved_by_induction():
    proof = prove(Counter(), depth=3)
    assert proof.method == "induction"
    assert proof.properties == ("count stays in range",)


def test_false_property_fails_with_a_readable_trace():
    with pytest.raises(PropertyFailure, match="count stays in range") as caught:
        prove(Counter(claim=4), depth=10)
    text = str(caught.value)
    row = next(line for line in text.splitlines() if line.strip().startswith("count |"))
    assert row.split("|")[1].split() == ["0", "1", "2", "3", "4", "5"]


def test_trace_of_a_step_starts_at_its_own_state():
    """An induction trace begins anywhere; registers that never move must not read as zero."""

    with pytest.raises(Unproven) as caught:
        prove(Hidden(), depth=1, pdr=False)
    rows = {
        line.split("|")[0].strip(): line.split("|")[1].split() for line in str(caught.value).splitlines()[2:]
    }
    a, b, step = ([int(value, 16) for value in rows[name]] for name in ("a", "b", "step"))
    assert (a[-1], b[-1]) == (9, 3)
    for cycle in range(len(a) - 1):
        assert a[cycle + 1] == (a[cycle] + step[cycle]) % 16
        assert b[cycle + 1] == (b[cycle] + step[cycle]) % 16


def test_bounded_sees_only_its_depth():
    bounded(Counter(top=6, claim=4), depth=5)
    with pytest.raises(PropertyFailure, match="count stays in range"):
        bounded(Counter(top=6, claim=4), depth=6, solver="sat")


def test_violation_beyond_the_induction_depth_is_found_by_pdr():
    with pytest.raises(PropertyFailure, match="count stays in range"):
        prove(Counter(top=9, claim=7), depth=3)


def test_invariant_is_found_by_pdr_and_missed_by_induction():
    assert prove(Hidden(), depth=2).method == "pdr"
    with pytest.raises(Unproven, match="would be violated from this state"):
        prove(Hidden(), depth=2, pdr=False)


class Pair(Elaboratable):
    """Two counters to 200 of one input; the second one skips a step after ``skip`` of them."""

    def __init__(self, skip=None):
        self.skip = skip

    def elaborate(self, platform):
        m = Module()
        step = Signal()
        free(m, step)
        counts = Signal(8, name="one"), Signal(8, name="other")
        for count, leaps in zip(counts, (None, self.skip), strict=True):
            following = Mux(count == 200, 0, count + 1 + (0 if leaps is None else count == leaps))
            m.d.sync += count.eq(Mux(step, following, count))
        check(m, counts[0] == counts[1], "in step")
        return m


def test_copies_are_alike_or_not():
    assert alike(Pair()).method == "correspondence"
    with pytest.raises(PropertyFailure, match=r"'in step'.* is violated in cycle 4"):
        alike(Pair(skip=3), depth=5)
    with pytest.raises(Unproven, match="nor violated in 4 cycles"):
        alike(Pair(skip=3), depth=4)


def test_reset_is_free_unless_told():
    class NeverBack(Elaboratable):
        def elaborate(self, platform):
            m = Module()
            count, last = Signal(2), Signal(2, reset_less=True)
            m.d.sync += [last.eq(count), count.eq(Mux(count == 3, 3, count + 1))]
            check(m, count >= last, "only forward")
            return m

    prove(NeverBack(), depth=4, reset="low")
    with pytest.raises(PropertyFailure, match="only forward"):
        prove(NeverBack(), depth=4)


def test_covers_count_cycles():
    assert cover(Counter(), depth=8).depth == 6


def test_unreachable_event_is_named():
    with pytest.raises(PropertyFailure, match="count gets to the top"):
        cover(Counter(), depth=5)


def test_check_that_is_never_reached_is_named():
    with pytest.raises(PropertyFailure, match="assert 'count stays in range'"):
        cover(Counter(when=0), depth=8)


def test_contradicting_assumptions_are_noticed():
    prove(Contradiction(), depth=2)
    with pytest.raises(PropertyFailure, match="'large'"):
        cover(Contradiction(), depth=2)


def test_constant_and_free_values():
    prove(Constants(constant), depth=2)
    with pytest.raises(PropertyFailure, match="never changes"):
        prove(Constants(free), depth=2)


def test_spec_without_checks_is_refused():
    class Nothing(Elaboratable):
        def elaborate(self, platform):
            m = Module()
            m.d.sync += Signal().eq(1)
            return m

    with pytest.raises(ValueError, match="no check"):
        prove(Nothing())


def test_checks_are_gated_with_reset_in_verilog():
    """An ungated ``assert`` fires on power-up values under a simulator; ours is silenced by ``rst``."""
    text = verilog.convert(Counter(), ports=[], emit_src=False)
    assert "assert" in text
    assert "rst" in text[: text.index("assert")]
