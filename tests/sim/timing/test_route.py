"""Blocks out of context: their selection, their registers, and the correlation of two orders."""

import pytest
from typer.testing import CliRunner

from hw.board import load_board
from hw.errors import ToolError
from hw.lib.arithmetic.models import models_of
from sim.cli.main import app
from sim.timing import route
from sim.timing.estimate import estimate
from tests.support.gateware.bench import assert_equal

#: Two blocks of the same lines, with a part inside and a cell in a cell, and one of its own.
KERNEL = r"""
module leaf(clk, i, o);
  input clk;
  input i;
  output o;
  reg kept;
  always @(posedge clk) kept <= i;
  assign o = kept;
endmodule
module cell(clk, i, o);
  input clk;
  input i;
  output o;
  leaf leaf_0 (
    .clk(clk), .i(i), .o(o));
endmodule
module top(ap_clk, d, q);
  input ap_clk;
  input [15:0] d;
  output q;
  wire out_of_slow, out_of_twin, out_of_quick;
  \top.slow  slow (.ap_clk(ap_clk), .d(d), .q(out_of_slow));
  \top.twin  twin (.ap_clk(ap_clk), .d(~d), .q(out_of_twin));
  \top.quick  quick (.ap_clk(ap_clk), .d(d[0]), .q(out_of_quick));
  assign q = out_of_slow ^ out_of_twin ^ out_of_quick;
endmodule
""" + "".join(
    rf"""module \top.{name} (ap_clk, d, q);
  input ap_clk;
  input [15:0] d;
  output q;
  wire sum;
  (* src = "hw/lib/slow.py:3" *)
  reg kept;
  \top.{name}.add  add (.d(d), .sum(sum));
  always @(posedge ap_clk) kept <= sum;
  cell cell_0 (
    .clk(ap_clk), .i(kept), .o(q));
endmodule
module \top.{name}.add (d, sum);
  input [15:0] d;
  output sum;
  assign sum = ^d;
endmodule
"""
    for name in ("slow", "twin")
) + r"""module \top.quick (ap_clk, d, q);
  input ap_clk;
  input d;
  output q;
  (* src = "hw/lib/quick.py:5" *)
  reg kept;
  always @(posedge ap_clk) kept <= d;
  assign q = kept;
endmodule
"""  # fmt: skip


#: Model of an ECP5's cell with the requested registers.
CELL = f"""
module MULT18X18D #(
  parameter REG_INPUTA_CLK = "", REG_INPUTA_CE = "", REG_INPUTB_CLK = "", REG_OUTPUT_CLK = ""
) (
  input {", ".join(f"{port}{n}" for port in "ABC" for n in range(18))},
  input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB, CLK0, CE0, CE1, RST0,
  output {", ".join(f"P{n}" for n in range(36))}
);
  reg signed [17:0] a, b;
  reg signed [35:0] product;
  always @(posedge CLK0) begin
    if (CE1) a <= {{{", ".join(f"A{n}" for n in reversed(range(18)))}}};
    if (CE0) b <= {{{", ".join(f"B{n}" for n in reversed(range(18)))}}};
    product <= a * b;
  end
  assign {{{", ".join(f"P{n}" for n in reversed(range(36)))}}} = product;
endmodule
"""


@pytest.mark.soak
def test_multipliers_of_an_ecp5_are_those_of_the_model(tmp_path):
    (model,) = models_of("DSP48E2")
    texts = {
        "cell.v": CELL,
        "gold.v": model.read_text(),
        "gate.v": route.for_ecp5(model.read_text()).replace("DSP48E2", "Ecp5"),
    }
    assert "MULT18X18D" in texts["gate.v"]
    pins = ".CLK(clk), .CEA(load), .A(a), .B(b)"
    assert_equal(
        tmp_path,
        texts,
        {"load": 1, "a": 27, "b": 18},
        bits=45,
        gold=f"DSP48E2_MULTIPLIER gold_i ({pins}, .M(gold));",
        gate=f"Ecp5_MULTIPLIER gate_i ({pins}, .M(gate));",
    )


@pytest.mark.soak  # the router takes some 20 s to start
def test_worst_blocks_are_routed_once_a_kind():
    """By the real estimate and the real router: the deeper block is the slower one for both."""
    board = load_board("u55c")
    found = estimate(KERNEL, "top", board, worst=100)
    blocks = route.route_worst(found, KERNEL, board, 3)
    by_name = {block.block.replace("twin", "slow"): block for block in blocks}
    assert sorted(by_name) == ["leaf", "top.quick", "top.slow"]
    slow, quick = by_name["top.slow"], by_name["top.quick"]
    assert slow.estimated_ps > quick.estimated_ps
    assert slow.routed_ps > quick.routed_ps
    assert route.rank_correlation([slow, quick]) == pytest.approx(1.0)


def test_rank_correlation_against_the_sum_of_squared_differences():
    estimated, routed = [3.0, 1.0, 4.0, 1.5, 9.0], [30.0, 20.0, 10.0, 15.0, 90.0]
    blocks = [
        route.Routed(block="b", luts=1, estimated_ps=one, routed_ps=other)
        for one, other in zip(estimated, routed, strict=True)
    ]
    squares = sum(
        (sorted(estimated).index(one) - sorted(routed).index(other)) ** 2
        for one, other in zip(estimated, routed, strict=True)
    )
    assert route.rank_correlation(blocks) == pytest.approx(1 - 6 * squares / (5 * 24))


def test_what_the_router_refuses_is_an_error_of_one_line(monkeypatch):
    monkeypatch.setattr(route, "_RUN", "print('ERROR: no room'); raise SystemExit(1)")
    block = "module block(input clk, output reg q); always @(posedge clk) q <= !q; endmodule\n"
    with pytest.raises(ToolError, match="nextpnr cannot route the block: ERROR: no room"):
        route.routed_ps(block)


def test_a_missing_router_is_named_before_any_work(monkeypatch):
    monkeypatch.setattr(route.importlib.util, "find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["timing", "scheduler", "--route", "2"])
    assert result.exit_code == 2
    assert "nextpnr is missing" in result.output
