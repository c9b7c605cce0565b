"""The width converter, for all time: the stream rule, and every kept lane once, in order, in its packet."""

from __future__ import annotations

import pytest
from amaranth.hdl import Elaboratable, Module, Mux, Signal

from hw.lib.width import WidthConverter
from tests.formal.stream_properties import free_input, free_output
from tests.support.proofs.formal import PropertyFailure, check, cover, prove, reach, suppose
from tests.support.proofs.mutants import mutant


def follow(payload, lanes, state):
    """Go through the kept lanes of a beat; give the highest mark so far, and whether marks come in order."""
    legal = 1
    for lane in range(lanes):
        value = payload.data[2 * lane : 2 * lane + 2]
        marked = payload.keep[lane] & (value != 0)
        legal = legal & (~marked | ((value == state + 1) & (value != 3)))
        state = Mux(marked, value, state)
    return state, legal


class WidthSpec(Elaboratable):
    """A converter of two-bit lanes between free neighbours; two lanes are marked 1 and 2, as in a FIFO."""

    def __init__(self, i_lanes, o_lanes, cls=WidthConverter):
        self.dut = cls(lane_width=2, i_lanes=i_lanes, o_lanes=o_lanes)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        i, o = dut.i, dut.o
        free_input(m, i, "i")
        free_output(m, o, "o")
        push, pop = Signal(name="push"), Signal(name="pop")
        m.d.comb += [push.eq(i.valid & i.ready), pop.eq(o.valid & o.ready)]

        sent, seen, closed = Signal(2, name="sent"), Signal(2, name="seen"), Signal(2, name="closed")
        packets = Signal(2, name="packets")
        m.d.sync += packets.eq(packets + (push & i.p.last) - (pop & o.p.last))
        given, legal = follow(i.p, dut.i_lanes, sent)
        with m.If(i.valid):
            suppose(m, legal, "marks 1 and 2 once each among kept lanes")
        with m.If(push):
            m.d.sync += sent.eq(given)
            with m.If(i.p.last):
                m.d.sync += closed.eq(given)
        taken, in_order = follow(o.p, dut.o_lanes, seen)
        with m.If(o.valid):
            check(m, in_order, "the marked lanes come once each, in order")
            check(m, taken <= sent, "nothing comes out before it went in")
            with m.If(o.p.last):
                check(m, packets == 1, "a packet ends once")
                check(m, taken == closed, "a packet ends with all its lanes out")
        with m.If(pop):
            m.d.sync += seen.eq(taken)
        with m.If(packets != 0):
            check(m, o.valid, "an ended packet goes out at once")
        check(m, packets <= 1, "one ended packet is held at most")
        reach(m, (seen == 2) & ~o.valid, "both marked lanes pass")
        reach(m, pop & push, "both sides move")
        return m


@pytest.mark.parametrize(
    ("i_lanes", "o_lanes"), [(1, 1), (2, 2), (2, 1), (3, 1), (4, 2), (1, 2), (1, 3), (2, 4)]
)
def test_converter(i_lanes, o_lanes):
    prove(WidthSpec(i_lanes, o_lanes), depth=1)
    cover(WidthSpec(i_lanes, o_lanes), depth=10)


BUGS = {
    "join: output overwritten": (
        (1, 2),
        "i.ready.eq(~o.valid | o.ready), push.eq",
        "i.ready.eq(1), push.eq",
        "holds|marked|ends",
    ),
    "join: valid falls": ((1, 2), "with m.If(o.ready):\n", "with m.If(1):\n", "valid holds"),
    "join: lanes of the last packet kept": (
        (1, 3),
        "with m.Elif(place == 0):",
        "with m.Elif(0):",
        "marked|once each|before it went in",
    ),
    "join: place not set back": (
        (1, 3),
        "Mux(complete, 0, place + 1)",
        "Mux(place == self.ratio - 1, 0, place + 1)",
        "marked|ends|before",
    ),
    "join: last lost": (
        (1, 2),
        "held.last.eq(i.p.last),\n",
        "held.last.eq(0),\n",
        "at once|one ended packet",
    ),
    "split: order reversed": (
        (2, 1),
        "o.p.data.eq(held_data)",
        "o.p.data.eq(Mux(left[0], held_data >> piece_width, held_data << piece_width))",
        "marked|ends|before|holds",
    ),
    "split: piece skipped": (
        (3, 1),
        "self._last_kept(m, i.p.keep), self.ratio - 1",
        "self._last_kept(m, i.p.keep), self.ratio - 2",
        "ends with all|marked",
    ),
    "split: last on every piece": (
        (3, 1),
        "o.p.last.eq(held_last & final)",
        "o.p.last.eq(held_last)",
        "ends",
    ),
    "split: tail cut by one piece": (
        (3, 1),
        "m.d.comb += index.eq(piece)",
        "m.d.comb += index.eq(max(piece - 1, 0))",
        "ends with all",
    ),
    "split: beat overwritten": (
        (2, 1),
        "taken.eq(o.ready & final)",
        "taken.eq(o.ready)",
        "ends|marked|lost|at once",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_seeded_bug_is_found(bug):
    (i_lanes, o_lanes), old, new, words = BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        prove(WidthSpec(i_lanes, o_lanes, mutant(WidthConverter, old, new)), depth=1)
