# amaranth: UnusedElaboratable=no
"""Slices as a device's cells, with the model that simulations have of these, and as registers written out."""

import pytest
from amaranth.back import verilog
from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.dsp import accumulated, packed_product
from hw.lib.convert import to_verilog
from sim.build.models import models_of
from tests.support.gateware.bench import assert_equal


class Chain(wiring.Component):
    """Two slices, one behind the other."""

    high: In(signed(8))
    low: In(signed(8))
    load: In(1)
    shared: In(signed(8))
    o: Out(signed(36))

    def elaborate(self, platform):
        m = Module()
        word = None
        for n in range(2):
            word = packed_product(
                m,
                platform,
                f"word_{n}",
                high=self.high,
                low=self.low,
                load=self.load,
                shared=self.shared,
                shared_registers=2 - n,
                cascade=word,
                ends=n == 1,
            )
        m.d.comb += self.o.eq(word)
        return m


class Sums(wiring.Component):
    """Sums that take turns, with any control."""

    factor: In(signed(22))
    value: In(signed(8))
    first: In(1)
    turn: In(1)
    rest: In(1)
    o: Out(signed(33))

    def elaborate(self, platform):
        m = Module()
        control = {name: getattr(self, name) for name in ("factor", "value", "first", "turn", "rest")}
        m.d.comb += self.o.eq(accumulated(m, platform, "sum", bits=33, **control))
        return m


@pytest.mark.parametrize("component", [Chain, Sums], ids=lambda component: component.__name__)
def test_a_slice_is_what_is_written_out(component, tmp_path):
    inputs = {name: member.shape for name, member in component().signature.members.items() if name != "o"}
    widths = {name: getattr(shape, "width", shape) for name, shape in inputs.items()}
    texts = {
        "gold.v": verilog.convert(component(), name="Gold"),
        "gate.v": to_verilog(component(), name="Gate"),
    }
    assert "DSP48E2" in texts["gate.v"]
    assert "DSP48E2" not in texts["gold.v"]
    texts |= {path.name: path.read_text() for path in models_of(texts["gate.v"])}
    pins = ", ".join(f".{name}({name})" for name in widths)
    assert_equal(
        tmp_path,
        texts,
        widths,
        bits=len(component().o),
        gold=f"Gold gold_i (.clk(clk), .rst(1'b0), {pins}, .o(gold));",
        gate=f"Gate gate_i (.clk(clk), {pins}, .o(gate));",
    )
