"""Yosys: running it over the parts of a kernel, a part being a module placed as a whole."""

import importlib.util
import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from hw.child import python_command
from hw.errors import ToolError
from sim.build.cache import BuildCache
from sim.host.digest import key_of
from sim.host.process import supervise
from sim.host.progress import ProgressLine

_SCRIPT = """
import sys
from pyosys import libyosys
design = libyosys.Design()
for command in sys.argv[1:]:
    libyosys.run_pass(command, design)
"""
#: Files of a part that is mapped.
NETLIST, STAT = "netlist.json", "stat.json"
_LOG, _SOURCE = "tool.log", "part.v"
_MODULE = re.compile(r"^module\s+\\?([^\s(;]+)", re.MULTILINE)


def part_texts(verilog: str) -> dict[str, str]:
    """Split the text into parts: a module without a dot in its name, and those whose names begin with it.

    Lines of comment go: a header names the board, and a part that boards have in common is one text.
    """
    parts: dict[str, str] = {}
    verilog = re.sub(r"^//.*\n", "", verilog, flags=re.MULTILINE)
    for text in re.split(r"(?<=\nendmodule\n)", verilog):
        if found := _MODULE.search(text):
            name = found[1].split(".")[0]
            parts[name] = parts.get(name, "") + text
    return parts


def mapped(texts: Mapping[str, str], name: str, *, note: str = "") -> Path:
    """Return the folder with a part mapped to cells of UltraScale+: `NETLIST` in Yosys' JSON, and `STAT`.

    It is flattened but for other parts, and kept in the cache of builds by its own text.
    """
    others = sorted(o for o in texts if o != name and re.search(rf"\b{o}\b", texts[name]))
    commands = [
        # Yosys does not know the attribute by which chains of registers stay such, but keeps what is kept.
        # Of equal registers it keeps those that say so themselves, not those whose signals do.
        "setattr -set keep 1 a:shreg_extract=no",
        "proc",
        "setattr -set keep 1 a:keep %ci1 t:$*dff* %i",
        *(f"blackbox {other}" for other in others),
        f"synth_xilinx -family xcup -flatten -noiopad -noclkbuf -top {name}",
        "delete t:$scopeinfo",
        f"tee -q -o {STAT} stat -json",
        f"select {name}",
        f"write_json -selected {NETLIST}",
    ]

    def build(folder: Path) -> None:
        run_yosys(folder, "".join(texts.values()), commands, name, note=note)

    return BuildCache("netlists").get(key_of(["mapped", texts[name], *commands]), build)[0]


def run_yosys(
    folder: Path,
    verilog: str,
    commands: Sequence[str],
    name: str,
    *,
    note: str = "",
    title: str = "Synthesizing",
) -> None:
    """Read Verilog and run commands in a folder; `ToolError` when pyosys is missing, or Yosys fails."""
    if importlib.util.find_spec("pyosys") is None:
        raise ToolError("Yosys is missing: install pyosys, which the extra `dev` of Loomwork brings")
    (folder / _SOURCE).write_text(verilog)
    command = python_command(["-c", _SCRIPT, f"read_verilog {_SOURCE}", *commands])
    run_logged(command, folder, f"{title} {name}", f"Yosys cannot synthesize {name}", note=note)
    (folder / _SOURCE).unlink()


def run_logged(command: Sequence[str], folder: Path, title: str, failure: str, *, note: str = "") -> None:
    """Run a tool in a folder with progress shown and its output in a log.

    Raises `ToolError` when it fails: ``failure`` and the last line of the log.
    """
    with ProgressLine(title) as activity, (folder / _LOG).open("wb") as log:
        tick = partial(activity.update, note)
        status = supervise(command, cwd=folder, environ=os.environ, output=log, tick=tick)
    if status:
        lines = (folder / _LOG).read_text(errors="replace").strip().splitlines()
        raise ToolError(f"{failure}: {lines[-1] if lines else 'no output'}")
