# amaranth: UnusedElaboratable=no
"""Quick netlists: the text of Amaranth's own, and its own error."""

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.hdl._nir import CombinationalCycle, Netlist
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.lib.conversion.netlist import quick_netlists


class Adder(wiring.Component):
    """Values in slices, through operators, memory and a submodule, and back into the parent."""

    i: In(8)
    o: Out(16)

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = Inner()
        m.submodules.memory = memory = Memory(shape=8, depth=4, init=[3, 1])
        read = memory.read_port(domain="comb")
        chosen = Signal(8)
        m.d.comb += [
            inner.i.eq(self.i),
            read.addr.eq(self.i[:2]),
            chosen.eq(Array([self.i, read.data, 5])[self.i[2:4]]),
            self.o[:8].eq(Mux(inner.o[0], chosen, ~self.i) + read.data),
            self.o[8:].eq(Cat(inner.o[4:], self.o[:4]) * 3),
        ]
        return m


class Inner(wiring.Component):
    i: In(8)
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        with m.If(self.i.any()):
            m.d.sync += self.o.eq(self.o - self.i)
        return m


class Loop(wiring.Component):
    """A sum that needs itself."""

    o: Out(4)

    def elaborate(self, platform):
        m = Module()
        total = Signal(4)
        m.d.comb += [total.eq(self.o + 1), self.o.eq(total)]
        return m


def test_text_is_amaranths_own():
    text = rtlil.convert(Adder(), name="adder", emit_src=False)
    kept = Netlist.__dict__["resolve_value"]
    with quick_netlists():
        assert Netlist.__dict__["resolve_value"] is not kept
        assert rtlil.convert(Adder(), name="adder", emit_src=False) == text
    assert Netlist.__dict__["resolve_value"] is kept


def test_a_combinational_cycle_is_named():
    with quick_netlists(), pytest.raises(CombinationalCycle, match="total"):
        rtlil.convert(Loop(), name="loop", emit_src=False)


class Mirrors(wiring.Component):
    """Two signals that each have the other's value."""

    o: Out(1)

    def elaborate(self, platform):
        m = Module()
        left = Signal()
        right = Signal()
        m.d.comb += [left.eq(right), right.eq(left), self.o.eq(left)]
        return m


def test_signals_that_lead_around_are_named():
    with quick_netlists(), pytest.raises(CombinationalCycle, match="right"):
        rtlil.convert(Mirrors(), name="mirrors", emit_src=False)


def test_another_version_of_amaranth_is_left_alone(monkeypatch):
    monkeypatch.setattr("hw.lib.conversion.netlist.version", lambda name: "0.6.0")
    kept = Netlist.__dict__["resolve_value"]
    with quick_netlists():
        assert Netlist.__dict__["resolve_value"] is kept
