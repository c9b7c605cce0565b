"""Facts of a Verilog text for tests, and tools that read it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from hw.lib.arithmetic.models import models_of

_PORT = re.compile(r"^  (input|output) (?:\[(\d+):0\] )?(\w+);$", re.MULTILINE)


def module_text(verilog: str, name: str) -> str:
    """Return the text of one module."""
    found = re.search(rf"^module {re.escape(name)}\(.*?^endmodule", verilog, re.MULTILINE | re.DOTALL)
    assert found, f"no module {name}"
    return found[0]


def module_names(verilog: str) -> list[str]:
    """Return the names of all modules, in order."""
    return re.findall(r"^module \\?(\S+?) ?\(", verilog, re.MULTILINE)


def module_ports(verilog: str, name: str) -> dict[str, tuple[str, int]]:
    """Return direction and width of every port of a module."""
    return {
        port: (direction, int(high or 0) + 1)
        for direction, high, port in _PORT.findall(module_text(verilog, name))
    }


#: Waived as for Verilator (`hw.verilog`): a signal without an assignment in a case keeps its value, and parts
#: are selected by shifts.
_SLANG_OPTIONS = ("-Wextra", "-Wpedantic", "-Wno-case-incomplete", "-Wno-width-trunc", "-Werror")
#: slang's driver writes where its process does.
_SLANG = """
import sys
from pyslang.driver import Driver
driver = Driver()
driver.addStandardArgs()
steps = (driver.processOptions, driver.parseAllSources, driver.runFullCompilation)
sys.exit(not (driver.parseCommandLine("slang " + " ".join(sys.argv[1:])) and all(step() for step in steps)))
"""


def slang(verilog: Path, top: str) -> str:
    """Return slang's strict warnings of a text; empty when it passes."""
    texts = [f'"{path}"' for path in (verilog, *models_of(verilog.read_text()))]
    command = [sys.executable, "-c", _SLANG, *texts, "--top", top, *_SLANG_OPTIONS]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert bool(run.returncode) == bool(run.stderr.strip())
    return run.stderr.strip()


#: Yosys ends the process when a pass fails, so it gets one of its own.
_YOSYS = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
print("done")
"""


def yosys(*commands: str) -> str:
    """Run passes of Yosys and return the end of their output: ``done`` without an error."""
    run = subprocess.run(
        [sys.executable, "-c", _YOSYS, *commands], capture_output=True, text=True, check=False
    )
    lines = (run.stdout + run.stderr).strip().splitlines()
    return lines[-1] if lines else ""
