"""Is this machine fit for Loomwork?  One finding a need, and a remedy for each that fails."""

import importlib.metadata
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hw.errors import LoomworkError
from sim.build.cache import VARIABLE, default_directory
from sim.host.process import output_of
from sim.host.tree import available_bytes

#: Least versions and sizes; the sizes are those of building and running the largest shipped engine.
PYTHON = (3, 11)
CXX = 10
DISK_GIB = 2.0
MEMORY_GIB = 4.0

_ROOT = Path(__file__).resolve().parents[2]
_REMAKE = "delete .venv and run make again: it is then made anew"
_GIB = 1 << 30


@dataclass(frozen=True)
class Finding:
    """The finding of one need."""

    name: str  #: The need, in a word or two.
    ok: bool  #: Whether it is met.
    found: str  #: A version, a size, or the fault.
    advice: str  #: The remedy when it is not met.
    required: bool = True  #: Whether Loomwork cannot work without it.


def examine() -> list[Finding]:
    """Look at everything Loomwork needs, and at tools that make it faster or better."""
    return [
        check_python(),
        check_packages(),
        check_compiler(),
        check_tool("make", "apt-get install make"),
        check_tool("perl", "apt-get install perl"),
        check_verilator(),
        check_converter(),
        check_yosys(),
        check_ilp(),
        check_disk(),
        check_memory(),
        check_tool("tclsh", "apt-get install tcl; generated Tcl goes unchecked", required=False),
        check_tool("iverilog", "apt-get install iverilog; four-state tests are then run", required=False),
        check_tool("ccache", "apt-get install ccache; simulators then rebuild faster", required=False),
        check_waveforms(),
    ]


def check_python() -> Finding:
    """Check the version of the interpreter that runs this."""
    found = ".".join(map(str, sys.version_info[:3]))
    advice = f"install Python {PYTHON[0]}.{PYTHON[1]} or newer, then: make PYTHON=python3.11 demo"
    return Finding("Python", sys.version_info >= PYTHON, found, advice)


def check_packages(constraints: Path = _ROOT / "constraints.txt") -> Finding:
    """Compare the installed packages with the pinned versions; without the list, with the declared needs."""
    if constraints.is_file():
        problems, count = _differences(constraints.read_text())
        found = f"{count} as pinned"
    else:
        problems, count = _undeclared()
        found = f"{count} as declared"
    if problems:
        found = "; ".join(problems[:3]) + (f" and {len(problems) - 3} more" if len(problems) > 3 else "")
    return Finding("packages", not problems, found, _REMAKE)


def _differences(constraints: str) -> tuple[list[str], int]:
    problems = []
    count = 0
    for name, pinned, marker in re.findall(r"^([\w.-]+)==(\S+)( ;.*)?", constraints, re.MULTILINE):
        installed = _version(name)
        if installed is None and marker:
            continue  # for another kind of machine
        count += 1
        if installed is None:
            problems.append(f"{name} is missing")
        elif installed != pinned:
            problems.append(f"{name} is {installed}, pinned {pinned}")
    return problems, count


def _undeclared() -> tuple[list[str], int]:
    try:
        needs = importlib.metadata.requires("loomwork") or []
    except importlib.metadata.PackageNotFoundError:
        return ["loomwork is not installed"], 0
    names = [re.split(r"[^\w.-]", need)[0] for need in needs if "extra ==" not in need]
    return [f"{name} is missing" for name in names if _version(name) is None], len(names)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_compiler() -> Finding:
    """Check for a C++ compiler that knows coroutines, which Verilator's runtime uses."""
    major = re.match(r"\d+", output_of("c++", "-dumpversion") or "")
    text = output_of("c++", "--version")
    ok = major is not None and int(major[0]) >= CXX
    found = text.splitlines()[0] if text else "not found"
    return Finding("C++ compiler", ok, found, f"install g++ {CXX} or newer (apt-get install g++)")


def check_tool(name: str, advice: str, *, required: bool = True) -> Finding:
    """Check that a program is on the path and runs."""
    path = shutil.which(name)
    return Finding(name, path is not None, path or "not found", advice, required)


def check_verilator() -> Finding:
    """Check for a Verilator that is new enough for cocotb, on the path or in the environment."""
    from sim.build.toolchain import find_verilator, package_root

    try:
        verilator = find_verilator(os.environ.get("PATH", os.defpath), package_root())
    except LoomworkError as error:
        return Finding("Verilator", False, str(error), _REMAKE)
    major, minor = verilator.version
    return Finding("Verilator", True, f"{major}.{minor:03d} at {verilator.executable}", _REMAKE)


def check_converter() -> Finding:
    """Check that Amaranth finds the Yosys that writes its Verilog."""
    from amaranth._toolchain.yosys import YosysError, find_yosys

    try:
        version = find_yosys(lambda version: version >= (0, 40)).version()
    except YosysError as error:
        return Finding("Verilog writer", False, str(error), _REMAKE)
    return Finding("Verilog writer", True, "Yosys " + ".".join(map(str, version or ())), _REMAKE)


def check_yosys() -> Finding:
    """Check the Yosys of proofs and resource tables, in a process of its own: a native library can crash."""
    text = _python("import pyosys.libyosys, importlib.metadata as m; print(m.version('pyosys'))")
    found, advice = text or "pyosys does not load", f"needed by make test: {_REMAKE}"
    return Finding("Yosys", text is not None, found, advice, required=False)


def check_ilp() -> Finding:
    """Solve a small integer program by PuLP and HiGHS."""
    # A process of its own: HiGHS cannot be imported beside OR-tools.
    answer = _python(
        "import pulp; x = pulp.LpVariable('x', 0, 9, 'Integer'); p = pulp.LpProblem('p', pulp.LpMaximize);"
        "p += x; p += 2 * x <= 9; p.solve(pulp.HiGHS(msg=False)); print(int(x.value()))"
    )
    solved = answer == "4"
    found = _version("highspy") or "" if solved else "does not solve"
    return Finding("HiGHS solver", solved, found, f"needed by the planner: {_REMAKE}")


def check_disk(least_gib: float = DISK_GIB) -> Finding:
    """Check the room for built simulators and waveforms."""
    place = default_directory()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free / _GIB
    advice = f"make room for {least_gib:g} GiB there, by loomwork cache prune, or set {VARIABLE} elsewhere"
    return Finding("disk", free >= least_gib, f"{free:.1f} GiB free at {place}", advice)


def check_memory(least_gib: float = MEMORY_GIB) -> Finding:
    """Check the free memory, which a Verilator build of a large array takes most of."""
    free = available_bytes() / _GIB
    advice = f"close programs until {least_gib:g} GiB are free, or choose fewer rows in the configuration"
    return Finding("memory", free >= least_gib, f"{free:.1f} GiB available", advice)


def check_waveforms() -> Finding:
    """See whether waveforms can be compressed ones (FST); they are VCD otherwise."""
    from sim.build.toolchain import find_toolchain, has_fst

    try:
        compressed = has_fst(find_toolchain())
    except LoomworkError:
        compressed = False
    advice = "apt-get install liblz4-dev zlib1g-dev, for FST waveforms, which are much smaller"
    return Finding("waveforms", compressed, "FST" if compressed else "VCD only", advice, required=False)


def _python(code: str) -> str | None:
    return output_of(sys.executable, "-c", code)


def print_findings(findings: Sequence[Finding]) -> None:
    """Print a table of findings, with advice where one fails."""
    from rich.text import Text

    from sim.host.console import print_table

    rows = []
    for finding in findings:
        if finding.ok:
            mark = Text("ok", style="green")
        elif finding.required:
            mark = Text("FAIL", style="bold red")
        else:
            mark = Text("-", style="yellow")
        rows.append((mark, finding.name, finding.found, "" if finding.ok else finding.advice))
    print_table("Needs of this machine", ("", "need", "found", "what to do"), rows)
