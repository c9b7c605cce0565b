"""The AXI-Lite rules hold for correct blocks of both sides, and each seeded bug breaks the rule it should."""

from __future__ import annotations

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib import axi
from tests.formal.axi_lite_properties import AxiLiteProperties
from tests.formal.channel import attach
from tests.support.proofs.formal import PropertyFailure, bounded, check, cover, free, prove

SIGNATURE = axi.LiteSignature(addr_width=4)
PATIENCE = 3


def inner_port(m, wires, *, wires_drive):
    """Return a port behind ``wires`` so that a fault fits in between, and a signal up after reset."""
    bus = SIGNATURE.create(path=("inner",))
    for name, member in SIGNATURE.members.items():
        source, sink = (wires, bus) if member.flow == wires_drive else (bus, wires)
        m.d.comb += getattr(sink, name).eq(getattr(source, name))
    fresh = Signal(init=1)
    m.d.sync += fresh.eq(0)
    return bus, fresh


class Cell(wiring.Component):
    """One register behind AXI-Lite, one transaction a direction; ``fault`` names what is wrong with it."""

    def __init__(self, fault=None):
        self.fault = fault
        super().__init__({"bus": In(SIGNATURE)})

    def elaborate(self, platform):
        m = Module()
        wires = self.bus
        bus, fresh = inner_port(m, wires, wires_drive=Out)
        word = Signal(32)
        write = Signal()
        read = Signal()
        m.d.comb += [
            write.eq(bus.awvalid & bus.wvalid & (~bus.bvalid | bus.bready)),
            bus.awready.eq(write),
            bus.wready.eq(write),
            bus.arready.eq(~bus.rvalid | bus.rready),
            read.eq(bus.arvalid & bus.arready),
        ]
        with m.If(write):
            m.d.sync += [word.eq(bus.wdata), bus.bvalid.eq(1), bus.bresp.eq(0)]
        with m.Elif(bus.bready):
            m.d.sync += bus.bvalid.eq(0)
        with m.If(read):
            m.d.sync += [bus.rdata.eq(word), bus.rvalid.eq(1)]
        with m.Elif(bus.rready):
            m.d.sync += bus.rvalid.eq(0)
        match self.fault:
            case "r not stable":
                m.d.sync += bus.rdata.eq(word)
            case "r drops":
                m.d.sync += bus.rvalid.eq(read)
            case "b drops":
                m.d.sync += bus.bvalid.eq(write)
            case "b not stable":
                m.d.sync += bus.bresp.eq(bus.bresp ^ 2)
            case "b before address":
                m.d.comb += [bus.awready.eq(write & bus.bready), bus.wready.eq(1)]
                with m.If(bus.wvalid):
                    m.d.sync += bus.bvalid.eq(1)
            case "b before data":
                m.d.comb += bus.wready.eq(0)
            case "b twice":
                with m.If(bus.bvalid & bus.bready & bus.awvalid):
                    m.d.sync += bus.bvalid.eq(1)
            case "r unasked":
                with m.If(bus.arvalid & ~bus.rvalid):
                    m.d.comb += bus.arready.eq(0)
                    m.d.sync += bus.rvalid.eq(1)
            case "r twice":
                m.d.sync += bus.rvalid.eq(bus.rvalid | read)
            case "exokay":
                m.d.comb += wires.bresp.eq(1)
            case "r exokay":
                m.d.comb += wires.rresp.eq(1)
            case "takes too many":
                m.d.comb += bus.arready.eq(1)
            case "takes too many writes":
                m.d.comb += bus.awready.eq(1)
            case "takes too much data":
                m.d.comb += bus.wready.eq(1)
            case "valid after reset":
                with m.If(fresh):
                    m.d.comb += wires.rvalid.eq(1)
            case "b after reset":
                with m.If(fresh):
                    m.d.comb += wires.bvalid.eq(1)
            case "never answers reads":
                m.d.comb += wires.rvalid.eq(0)
            case "never answers writes":
                m.d.comb += wires.bvalid.eq(0)
            case "never takes reads":
                m.d.comb += [bus.arready.eq(0), read.eq(0)]
            case "never takes writes":
                got = Signal()
                m.d.sync += got.eq(got | bus.wvalid)
                m.d.comb += [wires.awready.eq(0), wires.wready.eq(~got), write.eq(0)]
            case "never takes data":
                m.d.comb += [bus.awready.eq(0), bus.wready.eq(0), write.eq(0)]
        return m


class SubordinateSpec(Elaboratable):
    """The cell before a manager that does anything a manager may."""

    def __init__(self, fault=None):
        self.fault = fault

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = Cell(self.fault)
        m.submodules.rules = rules = AxiLiteProperties(
            SIGNATURE, manager="suppose", subordinate="check", limit=1, patience_cycles=PATIENCE
        )
        attach(m, rules, dut.bus)
        for name, member in SIGNATURE.members.items():
            if member.flow == Out:
                free(m, getattr(dut.bus, name))
        if self.fault is None:
            check(m, rules.addressed == dut.bus.bvalid, "one write open while its response is")
            check(m, rules.filled == dut.bus.bvalid, "one write's data open while its response is")
            check(m, rules.asked == dut.bus.rvalid, "one read open while its response is")
        return m


class Prober(wiring.Component):
    """A manager that writes and reads when told to; ``fault`` names what is wrong with it."""

    def __init__(self, fault=None):
        self.fault = fault
        super().__init__({"bus": Out(SIGNATURE), "go": In(1), "value": In(4)})

    def elaborate(self, platform):
        m = Module()
        bus, fresh = inner_port(m, self.bus, wires_drive=In)
        for channel, payload in (("aw", bus.awaddr), ("w", bus.wdata), ("ar", bus.araddr)):
            valid, ready = getattr(bus, f"{channel}valid"), getattr(bus, f"{channel}ready")
            drops = self.fault == f"{channel} drops"
            with m.If(~valid | ready | drops):
                m.d.sync += valid.eq(self.go)
            with m.If(~valid | ready | (self.fault == f"{channel} not stable")):
                m.d.sync += payload.eq(self.value)
            if self.fault == f"{channel} after reset":
                with m.If(fresh):
                    m.d.comb += getattr(self.bus, f"{channel}valid").eq(1)
        m.d.comb += [bus.wstrb.eq(15), bus.bready.eq(self.go), bus.rready.eq(self.go)]
        return m


class ManagerSpec(Elaboratable):
    """The prober before a subordinate that does anything a subordinate may."""

    def __init__(self, fault=None):
        self.fault = fault

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = Prober(self.fault)
        m.submodules.rules = rules = AxiLiteProperties(
            SIGNATURE, manager="check", subordinate="suppose", limit=2, patience_cycles=PATIENCE
        )
        attach(m, rules, dut.bus)
        free(m, dut.go, dut.value)
        for name, member in SIGNATURE.members.items():
            if member.flow == In:
                free(m, getattr(dut.bus, name))
        return m


def test_correct_subordinate():
    assert prove(SubordinateSpec(), depth=5).method == "induction"
    cover(SubordinateSpec(), depth=8)


def test_correct_manager():
    assert prove(ManagerSpec(), depth=3).method == "induction"
    cover(ManagerSpec(), depth=8)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("r not stable", "payload of r is stable"),
        ("r drops", "rvalid stays up"),
        ("b drops", "bvalid stays up"),
        ("b not stable", "payload of b is stable"),
        ("b before address", "a write response follows its address"),
        ("b before data", "a write response follows its data"),
        ("b twice", "a write response follows its"),
        ("r unasked", "a read response follows its address"),
        ("r twice", "a read response follows its address"),
        ("exokay", "a write response is not EXOKAY"),
        ("r exokay", "a read response is not EXOKAY"),
        ("takes too many", "no read beyond the capacity"),
        ("takes too many writes", "no write address beyond the capacity"),
        ("takes too much data", "no write data beyond the capacity"),
        ("valid after reset", "rvalid is low after reset"),
        ("b after reset", "bvalid is low after reset"),
        ("never answers reads", "a read response comes in time|no read beyond"),
        ("never answers writes", "a write response comes in time|no write"),
        ("never takes reads", "a read address is taken in time"),
        ("never takes writes", "a write address is taken in time"),
        ("never takes data", "a write address is taken in time|write data are taken in time"),
    ],
)
def test_each_bug_of_a_subordinate_is_found(fault, rule):
    with pytest.raises(PropertyFailure, match=rule):
        bounded(SubordinateSpec(fault), depth=8, solver="sat")


@pytest.mark.parametrize("channel", ["aw", "w", "ar"])
@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("drops", "{}valid stays up"),
        ("not stable", "payload of {} is stable"),
        ("after reset", "{}valid is low after reset"),
    ],
)
def test_each_bug_of_a_manager_is_found(channel, fault, rule):
    with pytest.raises(PropertyFailure, match=rule.format(channel)):
        bounded(ManagerSpec(f"{channel} {fault}"), depth=6, solver="sat")
