"""The estimate of a kernel: budget, groups of endpoints, crossings of dies, command line."""

import dataclasses
import json
import math
import re

import pytest
from typer.testing import CliRunner

from hw.board import load_board
from hw.board.regions import Region
from hw.board.resources import MOST_SHARES, Resources
from hw.errors import InputError, ToolError
from sim.build.cache import VARIABLE
from sim.cli import timing as cli_timing
from sim.cli.main import app
from sim.timing import kernel, netlist
from sim.timing.delays import load_delays
from sim.timing.estimate import RegionUse, estimate, judge
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


#: A register of the top, one in each of two placed parts, and one of the top behind them.
PARTS = """module inner(clk, d, q);
  input clk; input [3:0] d; output reg [3:0] q;
  always @(posedge clk) q <= d ^ {d[2:0], d[3]};
endmodule
module top(clk, d, q);
  input clk; input [3:0] d; output reg [3:0] q; reg [3:0] a; wire [3:0] b, c;
  inner first (clk, a, b);
  inner second (clk, b, c);
  always @(posedge clk) begin a <= d; q <= c; end
endmodule
"""


def test_only_nets_between_regions_are_charged_a_crossing():
    board = load_board("u55c")
    alone = estimate(PARTS, "top", board)
    assert (alone.slr_crossing_ps, alone.crossing_nets) == (0.0, 0)
    assert [(region.slr, region.parts, region.over) for region in alone.regions] == [(0, 3, ())]
    assert alone.regions[0].taken.ff == 16
    regions = (Region(slr=0, parts=("first",), rest=True), Region(slr=1, parts=("second",)))
    cut = estimate(PARTS, "top", board, regions=regions)
    assert (cut.slr_crossing_ps, cut.crossing_nets) == (board.budget.slr_crossing_ps, 8)
    assert [(region.slr, region.parts, region.taken.ff) for region in cut.regions] == [(0, 2, 12), (1, 1, 4)]
    assert estimate(PARTS, "top", load_board("zcu104"), regions=regions[:1]).regions == ()


@pytest.mark.parametrize("name", ["lut", "ff"])
def test_a_region_fits_its_die_by_every_resource(name):
    """Limits are the shares that `loomwork resources` calls a fit."""
    board = load_board("u55c")
    (whole,) = estimate(PARTS, "top", board).regions
    least = math.ceil(getattr(whole.taken, name) / MOST_SHARES[name])
    for have, over in ((least, ()), (least - 1, (name,))):
        user = dataclasses.replace(board.user, **{name: have * board.slrs})
        small = dataclasses.replace(board, user=user)
        regions = (Region(slr=0, parts=("first", "second"), rest=True), Region(slr=1, parts=()))
        near, far = estimate(PARTS, "top", small, regions=regions).regions
        assert (near.over, far.over) == (over, ())


def test_what_no_die_holds_and_nobody_divides_is_charged_between_all_parts():
    board = load_board("u55c")
    tiny = dataclasses.replace(board, user=dataclasses.replace(board.user, lut=board.slrs))
    found = estimate(PARTS, "top", tiny)
    assert (found.slr_crossing_ps, found.crossing_nets, found.regions) == (1360.0, 12, ())
    near = estimate(PARTS, "top", board)
    assert found.worst_slack_ps == pytest.approx(near.worst_slack_ps - 1360.0)


def test_figures_beside_the_count_say_what_longer_nets_would_make_of_it():
    """Of a path with exactly the budget by the fit, some of 20 draws are over it."""
    graph = graph_of({"top": two_luts()})
    found = judge(graph, float(max(graph.arrivals)), 1.0, crossing=0.0, worst=1)
    assert found.endpoints_over == 0
    assert found.doubt.deviation_ps == load_delays()["routed_deviation"]
    assert len(found.doubt.scattered_over) == 20
    assert 0 < sum(over > 0 for over in found.doubt.scattered_over) < 20
    assert (
        found.doubt.scattered_over
        == judge(graph, float(max(graph.arrivals)), 1.0, crossing=0.0, worst=1).doubt.scattered_over
    )
    # Two LUTs at a fill of 70 % are 0.36 tiles: two thirds of their side.
    side = math.sqrt(2 / 8 / MOST_SHARES["lut"])
    assert found.doubt.long_wires_ps == pytest.approx(load_delays()["long_wire"] * side * 2 / 3)
    assert found.doubt.long_wires_over == 0  # there is one part


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
    regions = (
        RegionUse(slr=2, parts=5, taken=Resources(lut=7, ff=9, dsp=3000, bram36=0, uram=0), over=("dsp",)),
    )
    graph = graph_of({"top": two_luts()})
    found = judge(graph, 500.0, 1.0, crossing=0.0, worst=3, regions=regions)
    monkeypatch.setattr(cli_timing, "kernel_timing", lambda *a, **k: found)
    monkeypatch.setattr(
        cli_timing,
        "kernel_design",
        lambda *a, **k: type("K", (), {"verilog": "", "top_name": "top", "regions": ()}),
    )
    path = tmp_path / "timing.json"
    result = CliRunner().invoke(app, ["timing", "scheduler", "--output", str(path)])
    assert result.exit_code == 0, result.output
    assert "hw/lib/b.py:7" in result.output
    assert re.search(r"SLR2 .* 3,000, 108\.4 % over", result.output)
    assert "nets off by 144 ps, 20 draws" in result.output
    document = json.loads(path.read_text())
    assert document["engine"] == "scheduler"
    assert document["endpoints_over"] == found.endpoints_over > 0
    assert document["logic_depth"] == 2
    assert document["paths"][0]["steps"][0]["name"] == "a"
    assert (document["regions"][0]["slr"], document["regions"][0]["taken"]["dsp"]) == (2, 3000)
    assert len(document["doubt"]["scattered_over"]) == 20


def test_wrong_input_is_refused():
    result = CliRunner().invoke(app, ["timing", "convolve"])
    assert result.exit_code == 2
    result = CliRunner().invoke(app, ["timing", "scheduler", "--worst", "0"])
    assert result.exit_code == 2


def test_what_yosys_refuses_is_an_error_of_one_line():
    with pytest.raises(ToolError, match="Yosys cannot synthesize top"):
        netlist.read_parts("module top(; endmodule\n", "top", load_delays())
