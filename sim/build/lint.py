"""Verilator's linter over generated Verilog, with every warning."""

import subprocess
from pathlib import Path

from hw.errors import ToolError
from sim.build.toolchain import find_toolchain
from sim.host.progress import ProgressLine


def lint(verilog: Path, *flags: str) -> str:
    """Return the messages of Verilator's linter; empty when the text passes.  Modules beside the file are
    found by name.

    Raises `ToolError` when Verilator is missing, or refuses the text without a message.
    """
    tools = find_toolchain()
    command = [
        str(tools.verilator.executable),
        "--lint-only",
        *flags,
        "-y",
        str(verilog.parent),
        str(verilog),
    ]
    with ProgressLine(f"Linting {verilog.name}"):
        run = subprocess.run(command, env=tools.environment(), capture_output=True, text=True, check=False)
    said = run.stderr.strip()
    if bool(run.returncode) != bool(said):
        raise ToolError(f"Verilator ended with status {run.returncode} while it read {verilog.name}")
    return said
