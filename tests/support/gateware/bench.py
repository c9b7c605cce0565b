"""Benches in Verilog that say themselves whether two modules are equal."""

import pytest

from sim.build.simulator import OPTIMIZE_VARIABLE, build, run

#: Drives two modules with equal random inputs, and ends with an error where they differ.
BENCH = """
module bench(output bit done);
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
    done = 1;
  end
endmodule
"""


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OPTIMIZE_VARIABLE, "-O0")
        built = build(texts, top="bench", visible=["done"])
    run(built, module="tests.bench.equal", directory=folder)
