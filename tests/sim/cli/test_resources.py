"""Resources counted by Yosys: what a part takes, parts counted once and added up, and the command's table."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from hw.board import load_board
from hw.board.resources import Resources
from hw.errors import ToolError
from hw.registry import find_engine, known_engines
from sim.build import synthesis, yosys
from sim.build.cache import VARIABLE, BuildCache
from sim.build.synthesis import Part, Synthesis, synthesize
from sim.cli import resources as resource_table
from sim.cli.main import app
from sim.cli.resources import region_words, resource_rows
from sim.timing.estimate import RegionUse

#: A multiplier with registers, placed three times, once inside a second cell; a memory and a counter on top.
VERILOG = """
module mul_cell(input clk, input signed [17:0] a, input signed [17:0] b, output reg signed [35:0] o);
  wire signed [35:0] p;
  \\mul_cell.inner  inner(.a(a), .b(b), .p(p));
  always @(posedge clk) o <= p;
endmodule
module \\mul_cell.inner (input signed [17:0] a, input signed [17:0] b, output signed [35:0] p);
  assign p = a * b;
endmodule
module pair_cell(input clk, input signed [17:0] a, input signed [17:0] b, output signed [35:0] o,
                 output signed [35:0] x);
  mul_cell one(.clk(clk), .a(a), .b(b), .o(o));
  mul_cell two(.clk(clk), .a(b), .b(b), .o(x));
endmodule
module kernel(input clk, input en, input signed [17:0] a, input signed [17:0] b, output [35:0] o,
              output [35:0] x, output [35:0] y, output reg [7:0] n, output reg [71:0] d);
  reg [71:0] memory [0:511];
  always @(posedge clk) begin
    if (en) memory[{1'b0, n}] <= {a, b, a, b};
    d <= memory[{1'b0, n}];
    n <= en ? n + 1 : n ^ a[7:0];
  end
  pair_cell both(.clk(clk), .a(a), .b(b), .o(o), .x(x));
  mul_cell lone(.clk(clk), .a(a), .b(a), .o(y));
endmodule
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return BuildCache("netlists")


@pytest.mark.soak
def test_parts_are_synthesized_once_and_added_up(cache, monkeypatch):
    found = synthesize(VERILOG, "kernel")
    parts = {part.name: part for part in found.parts}
    assert {name: part.count for name, part in parts.items()} == {"kernel": 1, "pair_cell": 1, "mul_cell": 3}
    assert (parts["mul_cell"].each.dsp, parts["pair_cell"].each.dsp, parts["kernel"].each.dsp) == (1, 0, 0)
    assert parts["kernel"].each.bram36 == 1
    assert parts["kernel"].each.ff >= 8
    assert parts["kernel"].each.lut >= 1
    assert found.total.dsp == 3
    assert found.total.ff == parts["kernel"].each.ff + 3 * parts["mul_cell"].each.ff

    # Another top of the same cells takes them from the cache, and another board's header is none of a part.
    other = "// Generated for another board.\n" + VERILOG.replace("n + 1", "n + 3")
    ran = []
    original = yosys.supervise
    monkeypatch.setattr(yosys, "supervise", lambda *a, **k: ran.append(a[0]) or original(*a, **k))
    again = synthesize(other, "kernel")
    assert len(ran) == 1
    assert again.total.dsp == 3


def test_memories_in_luts_and_registers_that_no_shift_register_may_swallow(cache):
    """A RAM32M16 of 32 words of 14 bits, four registers that stay, and four that become a shift register."""
    text = """
module kernel(input clk, input en, input [4:0] at, input [4:0] from, input [13:0] i, output [13:0] o,
              output kept, output free);
  (* ram_style = "distributed" *) reg [13:0] memory [0:31];
  always @(posedge clk) if (en) memory[at] <= i;
  assign o = memory[from];
  (* shreg_extract = "no" *) reg [3:0] stages = 4'h0;
  assign kept = stages[3];
  always @(posedge clk) stages <= {stages[2:0], i[0]};
  reg [3:0] line = 4'h0;
  assign free = line[3];
  always @(posedge clk) line <= {line[2:0], i[1]};
endmodule
"""
    (part,) = synthesize(text, "kernel").parts
    assert part.memory_lut == 8 + 1
    assert part.each.lut == 8 + 1
    assert part.each.ff == 4
    assert part.each.bram36 == 0


def test_text_that_yosys_refuses_leaves_nothing(cache):
    with pytest.raises(ToolError, match=r"Yosys cannot synthesize kernel: .*missing_cell"):
        synthesize("module kernel(input a);\n missing_cell x(.a(a));\nendmodule\n", "kernel")
    assert not [entry for entry in cache.directory.iterdir() if entry.is_dir()]


def test_cells_that_nobody_counts_are_refused():
    with pytest.raises(ToolError, match="maps kernel to OBUF, which is not one of the cells"):
        synthesis._part("kernel", 1, {"OBUF": 1}, {"kernel": ""})


def test_without_yosys_there_is_one_line(cache, monkeypatch):
    monkeypatch.setattr(yosys.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolError, match="Yosys is missing: install pyosys"):
        synthesize("module kernel(input a, output b);\n assign b = a;\nendmodule\n", "kernel")


def part(name, count, lut, memory_lut=0):
    return Part(
        name=name,
        count=count,
        each=Resources(lut=lut, ff=2 * lut, dsp=3, bram36=4, uram=0),
        memory_lut=memory_lut,
    )


def timing(**over):
    places = tuple(
        SimpleNamespace(part=part, endpoints_over=count) for part, count in over.items() for _ in range(2)
    )
    total = sum(place.endpoints_over for place in places)
    return SimpleNamespace(
        places=places,
        endpoints_over=total,
        worst_slack_ps=-250.0,
        budget_ps=3148.0,
        logic_depth=9,
        regions=(),
    )


def test_lines_of_a_configuration():
    found = Synthesis((part("kernel", 1, 1000, 100), part("rows", 16, 50, 8)))
    estimate = Resources(lut=2000, ff=4000, dsp=60, bram36=70, uram=0)
    user = Resources(lut=18_000, ff=36_000, dsp=510, bram36=680, uram=0)
    assert resource_rows("small", found, estimate, user, timing(rows=3)) == [
        ("small", "kernel", "1", "1,000", "100", "2,000", "3", "4", "0", "0"),
        ("", "rows", "16", "50", "8", "100", "3", "4", "0", "6"),
        ("", "in all", "", "1,800", "228", "3,600", "51", "68", "0", "6"),
        ("", "of the user's region", "", "10.0 %", "", "10.0 %", "10.0 %", "10.0 %", "–", ""),
        ("", "most that fits", "", "70 %", "", "50 %", "80 %", "80 %", "80 %", ""),
        ("", "estimated", "", "2,000", "", "4,000", "60", "70", "0", ""),
    ]
    assert [row[-1] for row in resource_rows("small", found, estimate, user, None)[:3]] == ["–"] * 3


def of_user(**shares):
    """Resources that are shares of what the U55C has for users."""
    counts = {name: int(shares.get(name, 0.1) * have) for name, have in load_board("u55c").user.items()}
    return Resources(**counts)


@pytest.mark.parametrize(
    ("need", "says"),
    [
        (of_user(), "fits, by its cells, on 1 of 3 SLRs at least"),
        (of_user(lut=0.24), "fits, by its cells, on 2 of 3 SLRs at least"),
        (of_user(lut=0.7, dsp=0.8), "fits, by its cells, on 3 of 3 SLRs at least"),
        (of_user(lut=0.74), "does not fit: LUT 74.0 % of 70 %"),
        (of_user(dsp=0.81, uram=1.2), "does not fit: DSP 81.0 % of 80 %, URAM 120.0 % of 80 %"),
        (of_user(bram36=0.801), "does not fit: BRAM36 80.1 % of 80 %"),
    ],
)
def test_what_is_more_than_can_be_routed_does_not_fit(need, says):
    assert resource_table.verdict(need, load_board("u55c")) == says


def test_what_a_board_has_none_of_does_not_fit():
    need = Resources(lut=1, ff=1, dsp=1, bram36=1, uram=1)
    board = load_board("ultra96v2")
    assert resource_table.verdict(need, board) == "does not fit: URAM 1 of none of 80 %"
    assert need.dies(board.user, board.slrs) > board.slrs


@pytest.fixture
def tools(monkeypatch):
    """No tool runs: a part of 77,000 LUTs, whose name is what was to be synthesized."""
    monkeypatch.setattr(
        resource_table,
        "kernel_design",
        lambda engine, *_, sources: SimpleNamespace(top_name=engine.name, verilog="v", regions=()),
    )
    monkeypatch.setattr(
        resource_table, "synthesize", lambda verilog, top: Synthesis((part(verilog + top, 1, 77_000),))
    )
    monkeypatch.setattr(resource_table, "kernel_timing", lambda *_, **__: timing(vattention=4))


@pytest.mark.usefixtures("tools")
def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text("rows: 2\n")
    result = CliRunner().invoke(app, ["resources", "small.yaml", "--output", "counts.json"])
    assert result.exit_code == 0, result.stderr
    assert "77,000" in result.stdout
    said = "small: fits, by its cells, on 1 of 3 SLRs at least; 8 endpoints over budget, "
    assert f"{said}worst slack -0.250 ns of 3.148 ns, estimated, not routed\n" in result.stdout
    (document,) = json.loads(Path("counts.json").read_text())
    assert (document["name"], document["config"]["rows"], document["counted"]["lut"]) == ("small", 2, 77_000)
    assert (document["fits"], document["slrs_needed"], document["endpoints_over"]) == (True, 1, 8)
    board = load_board("u55c")
    engine = find_engine("attention")
    config = engine.config_type(**document["config"])
    assert document["estimated"]["dsp"] == engine.resources(config, board).dsp
    assert document["user"]["lut"] == board.user.lut


def test_a_region_without_room_is_named():
    board = load_board("u55c")
    taken = Resources(lut=10, ff=10, dsp=2500, bram36=0, uram=300)
    regions = tuple(
        RegionUse(slr=slr, parts=1, taken=taken, over=over) for slr, over in ((0, ()), (2, ("dsp", "uram")))
    )
    said = region_words(SimpleNamespace(regions=regions), board)
    assert said == "; SLR2 has no room: DSP 90.3 % of 80 %; SLR2 has no room: URAM 93.8 % of 80 %"
    assert region_words(SimpleNamespace(regions=regions[:1]), board) == region_words(None, board) == ""


def test_an_engine_that_is_none_is_named():
    result = CliRunner().invoke(app, ["resources", "atention"])
    assert result.exit_code == 2
    names = ", ".join(sorted(known_engines()))
    assert f"engine must be one of {names}, or a YAML file, not 'atention'" in result.stderr


@pytest.mark.usefixtures("tools")
@pytest.mark.parametrize("words", [["scheduler"], ["--engine", "scheduler"]])
def test_the_engine_comes_first_or_as_an_option(words):
    result = CliRunner().invoke(app, ["resources", *words])
    assert result.exit_code == 0, result.stderr
    assert "vscheduler" in result.stdout
    assert "default: fits" in result.stdout


@pytest.mark.usefixtures("tools")
def test_counts_are_kept_where_timing_fails(monkeypatch):
    def fail(*_, **__):
        raise ToolError("the netlist has a combinational loop through x")

    monkeypatch.setattr(resource_table, "kernel_timing", fail)
    result = CliRunner().invoke(app, ["resources"])
    assert result.exit_code == 0, result.stderr
    assert "on 1 of 3 SLRs at least; timing not estimated: the netlist has a combinational" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.yaml"], "none.yaml"),
        (["oram", "none.yaml"], "none.yaml"),
        (["--engine", "none"], "none"),
        (["--output", "none/counts.json"], "--output must be in a directory that exists"),
    ],
)
def test_wrong_options_are_one_line(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["resources", *words])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("loomwork: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
