# amaranth: UnusedElaboratable=no
"""The AXI signatures, and joining halves into a port."""

from __future__ import annotations

import pytest
from amaranth.back import verilog
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator

from hw.errors import InputError
from hw.lib import axi
from tests.support.gateware import waves

WIDTHS = {"data_width": 64, "addr_width": 33, "id_width": 2}


def test_halves_make_the_whole():
    whole = axi.Signature(**WIDTHS)
    assert dict(whole.members) == dict(whole.write.members) | dict(whole.read.members)
    assert not set(whole.write.members) & set(whole.read.members)
    assert whole.beat_bytes == whole.read.beat_bytes == 8


def test_equality_is_by_kind_and_widths():
    assert axi.Signature(**WIDTHS) == axi.Signature(**WIDTHS)
    assert axi.Signature(**WIDTHS).read == axi.ReadSignature(**WIDTHS)
    assert axi.Signature(**WIDTHS) != axi.Signature()
    assert axi.Signature(**WIDTHS) != axi.ReadSignature(**WIDTHS)
    assert axi.LiteSignature(addr_width=12) == axi.LiteSignature()
    assert axi.LiteSignature(addr_width=13) != axi.LiteSignature()
    assert axi.LiteSignature() != axi.Signature()


def test_representation_says_the_widths():
    assert repr(axi.WriteSignature(**WIDTHS)) == (
        "axi.WriteSignature(data_width=64, addr_width=33, id_width=2)"
    )
    assert repr(axi.Signature()) == "axi.Signature(data_width=256, addr_width=64, id_width=1)"
    assert repr(axi.LiteSignature()) == "axi.LiteSignature(addr_width=12)"


@pytest.mark.parametrize("kind", [axi.Signature, axi.ReadSignature, axi.WriteSignature])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"data_width": 16}, "data_width must be a power of two from 32 to 1024, not 16"),
        ({"data_width": 2048}, "data_width must be a power of two from 32 to 1024, not 2048"),
        ({"addr_width": 12}, "addr_width must be from 13 to 64, not 12"),
        ({"addr_width": 65}, "addr_width must be from 13 to 64, not 65"),
        ({"id_width": 0}, "id_width must be from 1 to 16, not 0"),
        ({"id_width": 17}, "id_width must be from 1 to 16, not 17"),
    ],
)
def test_widths_refused(kind, options, words):
    with pytest.raises(InputError, match=f"^{words}$"):
        kind(**options)


@pytest.mark.parametrize("addr_width", [3, 65])
def test_lite_width_refused(addr_width):
    with pytest.raises(InputError, match=f"^addr_width must be from 4 to 64, not {addr_width}$"):
        axi.LiteSignature(addr_width=addr_width)


class Half(wiring.Component):
    """Passes a half through, so that both sides of the joint can be seen."""

    def __init__(self, signature):
        super().__init__({"axi": Out(signature), "inner": In(signature)})

    def elaborate(self, platform):
        m = Module()
        wiring.connect(m, wiring.flipped(self.inner), wiring.flipped(self.axi))
        return m


class Joined(wiring.Component):
    def __init__(self, *, read=True, write=True, read_widths=WIDTHS):
        signature = axi.Signature(**WIDTHS)
        self.read = Half(axi.ReadSignature(**read_widths)) if read else None
        self.write = Half(signature.write) if write else None
        super().__init__({"port": Out(signature)})

    def elaborate(self, platform):
        m = Module()
        halves = {}
        for name, half in (("read", self.read), ("write", self.write)):
            if half is not None:
                m.submodules[name] = half
                halves[name] = half.axi
        axi.connect(m, port=self.port, **halves)
        return m


def test_every_wire_is_joined():
    dut = Joined()

    async def bench(ctx):
        for half in (dut.read, dut.write):
            for name, member in half.axi.signature.members.items():
                source, sink = half.inner, dut.port
                if member.flow == In:
                    source, sink = sink, source
                top = (1 << len(getattr(source, name))) - 1
                for value in (top, top // 3, 0):
                    ctx.set(getattr(source, name), value)
                    assert ctx.get(getattr(sink, name)) == value, name

    simulator = Simulator(dut)
    simulator.add_testbench(bench)
    waves.run(simulator)


@pytest.mark.parametrize("missing", ["read", "write"])
def test_a_missing_half_asks_for_nothing(missing):
    dut = Joined(**{missing: False})
    quiet = getattr(dut.port.signature, missing)

    async def bench(ctx):
        for name, member in quiet.members.items():
            if member.flow == Out:
                assert ctx.get(getattr(dut.port, name)) == (name in ("rready", "bready")), name

    simulator = Simulator(dut)
    simulator.add_testbench(bench)
    waves.run(simulator)


def test_halves_of_other_widths_are_refused():
    with pytest.raises(InputError, match=r"^read must be an interface of axi\.ReadSignature\(data_width=64,"):
        verilog.convert(Joined(read_widths={**WIDTHS, "data_width": 32}))
