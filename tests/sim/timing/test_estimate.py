"""The estimate of a kernel: budget, places, crossings of dies, command line."""

import dataclasses
import json

import pytest
from typer.testing import CliRunner

from hw.board import load_board
from hw.errors import InputError, ToolError
from sim.build.cache import VARIABLE
from sim.cli import timing as cli_timing
from sim.cli.main import app
from sim.timing import kernel, netlist
from sim.timing.delays import load_delays
from sim.timing.estimate import estimate, judge
from sim.timing.graph import Graph
from tests.sim.timing.test_graph import graph_of, two_luts

TOP = """module top(clk, d, q);
  input clk; input [3:0] d; output reg q; reg [3:0] a;
  always @(posedge clk) begin a <= d; q <= ^a; end
endmodule
"""


def test_endpoints_over_budget_are_counted_with_their_places():
    graph = graph_of({"top": two_luts()})
    delays = sorted(graph.arrivals)
    between = (delays[-1] + delays[-2]) / 2
    found = judge(graph, between, 1.0, crossing=0.0, worst=2)
    assert (found.endpoints, found.endpoints_over) == (3, 1)
    assert found.worst_slack_ps == pytest.approx(between - delays[-1])
    assert [(place.file, place.endpoints, place.endpoints_over) for place in found.places] == [
        ("hw/lib/b.py", 2, 1),
        ("hw/lib/c.py", 1, 0),
    ]
    assert [(path.endpoint, path.source) for path in found.paths] == [
        ("b/D", "hw/lib/b.py:7"),
        ("c/D", "hw/lib/c.py:7"),
    ]
    slower = judge(graph, between, 2.0, crossing=0.0, worst=1)
    assert slower.paths[0].delay_ps == pytest.approx(2 * delays[-1])


def test_nets_with_the_most_loads_are_named():
    text = """module top(clk, d, e, q);
      input clk; input d; input [36:0] e; output reg [36:0] q; reg wide; reg [1:0] both;
      always @(posedge clk) begin wide <= d; both <= e; q <= e & {37{wide}} ^ {both[0], 35'b0, both[1]}; end
    endmodule
    """
    most, second = estimate(text, "top", load_board("u55c"), worst=2).widest
    assert (most.name, most.loads, most.cell) == ("wide", 37, "FDRE")
    assert second.loads < 37  # one of `both`, or of the ports


def test_the_budget_is_the_period_less_uncertainty_and_skew():
    board = load_board("u55c")
    assert board.path_budget_ps == pytest.approx(1e6 / 300 - 35 - 150)
    with pytest.raises(InputError, match="clock_mhz must be slow enough"):
        dataclasses.replace(board, budget=dataclasses.replace(board.budget, skew_ps=4000.0))


def test_crossings_are_charged_only_to_what_is_larger_than_a_die(monkeypatch):
    charged = []
    original = Graph.__init__
    monkeypatch.setattr(
        Graph, "__init__", lambda *a, **k: charged.append(k.get("crossing", 0.0)) or original(*a, **k)
    )
    board = load_board("u55c")
    assert estimate(TOP, "top", board).slr_crossing_ps == 0.0
    tiny = dataclasses.replace(board, user=dataclasses.replace(board.user, lut=1))
    assert estimate(TOP, "top", tiny).slr_crossing_ps == board.budget.slr_crossing_ps
    assert charged == [0.0, 0.0, board.budget.slr_crossing_ps]


def test_a_kernel_is_estimated_once_for_each_budget(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    ran = []
    monkeypatch.setattr(kernel, "estimate", lambda *a, **k: ran.append(a) or estimate(*a, **k))
    board = load_board("u55c")
    first = kernel.kernel_timing(TOP, "top", board)
    assert kernel.kernel_timing(TOP, "top", board) == first
    assert first.logic_depth == 1
    assert len(ran) == 1
    slower = kernel.kernel_timing(TOP, "top", dataclasses.replace(board, clock_mhz=100.0))
    assert slower.worst_slack_ps > first.worst_slack_ps
    assert len(ran) == 2


def test_the_command_prints_and_writes(monkeypatch, tmp_path):
    found = judge(graph_of({"top": two_luts()}), 500.0, 1.0, crossing=0.0, worst=3)
    monkeypatch.setattr(cli_timing, "kernel_timing", lambda *a, **k: found)
    monkeypatch.setattr(
        cli_timing, "kernel_design", lambda *a, **k: type("K", (), {"verilog": "", "top_name": "top"})
    )
    path = tmp_path / "timing.json"
    result = CliRunner().invoke(app, ["timing", "scheduler", "--output", str(path)])
    assert result.exit_code == 0, result.output
    assert "hw/lib/b.py:7" in result.output
    document = json.loads(path.read_text())
    assert document["engine"] == "scheduler"
    assert document["endpoints_over"] == found.endpoints_over > 0
    assert document["logic_depth"] == 2
    assert document["paths"][0]["steps"][0]["name"] == "a"


def test_wrong_input_is_refused():
    result = CliRunner().invoke(app, ["timing", "convolve"])
    assert result.exit_code == 2
    result = CliRunner().invoke(app, ["timing", "scheduler", "--worst", "0"])
    assert result.exit_code == 2


def test_what_yosys_refuses_is_an_error_of_one_line():
    with pytest.raises(ToolError, match="Yosys cannot synthesize top"):
        netlist.read_parts("module top(; endmodule\n", "top", load_delays())
