"""Yosys: running it over the parts of a kernel, a part being a module placed as a whole."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from hw.errors import ToolError
from sim.host.process import supervise
from sim.host.progress import Activity

_SCRIPT = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
"""
_LOG, _SOURCE = "yosys.log", "part.v"
_MODULE = re.compile(r"^module\s+\\?([^\s(;]+)", re.MULTILINE)


def part_texts(verilog: str) -> dict[str, str]:
    """Split the text into parts: a module without a dot in its name, and those whose names begin with it."""
    parts: dict[str, str] = {}
    for text in re.split(r"(?<=\nendmodule\n)", verilog):
        if found := _MODULE.search(text):
            name = found[1].split(".")[0]
            parts[name] = parts.get(name, "") + text
    return parts


def placed_in(texts: Mapping[str, str], name: str) -> list[str]:
    """Give the other parts that a part places."""
    return sorted(other for other in texts if other != name and re.search(rf"\b{other}\b", texts[name]))


def run_yosys(folder: Path, verilog: str, commands: Sequence[str], name: str, *, note: str = "") -> None:
    """Read Verilog and run commands in a folder, with progress shown.

    Raises
    ------
    ToolError
        When pyosys is missing, or Yosys fails; the message is the last line of its log.
    """
    if importlib.util.find_spec("pyosys") is None:
        raise ToolError("Yosys is missing: install pyosys, which the extra `dev` of Loomwork brings")
    (folder / _SOURCE).write_text(verilog)
    with Activity(f"Synthesizing {name}") as activity, (folder / _LOG).open("wb") as log:
        status = supervise(
            [sys.executable, "-c", _SCRIPT, f"read_verilog {_SOURCE}", *commands],
            cwd=folder,
            environ=os.environ,
            output=log,
            tick=lambda: activity.update(note),
        )
    (folder / _SOURCE).unlink()
    if status:
        lines = (folder / _LOG).read_text(errors="replace").strip().splitlines()
        raise ToolError(f"Yosys cannot synthesize {name}: {lines[-1] if lines else 'no output'}")
