"""A package's own test bench, as a user calls it: ``make -C PACKAGE/tb``."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sim.build.toolchain import find_verilator, package_root


def need_icarus():
    """Skip the test where there is no Icarus Verilog."""
    if not shutil.which("iverilog"):
        pytest.skip("iverilog is not on this machine: there is no simulator with four states")


def make_bench(package, launch, *variables, paths=()):
    """Return the call of make on a launch folder; nothing of Loomwork is imported in the simulator."""
    command = ["make", "-C", str(package / "tb"), f"LAUNCH={launch}", *variables]
    return subprocess.run(
        command, env=environment(*paths), capture_output=True, text=True, check=False, timeout=900
    )


def environment(*paths):
    """Return the user's environment, with the programs of this Python first on the path."""
    found = [*map(str, paths), str(Path(sys.executable).parent), os.environ["PATH"]]
    kept = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    return kept | {"PATH": os.pathsep.join(found), "PYTHONWARNINGS": "ignore", "COCOTB_LOG_LEVEL": "INFO"}


def verilator_path(directory):
    """Return a folder with a ``verilator`` that states its version, as Python's package does not."""
    tool = find_verilator(os.environ.get("PATH", os.defpath), package_root())
    major, minor = tool.version
    script = directory / "verilator"
    root = f"export VERILATOR_ROOT={tool.root}\n" if tool.root is not None else ""
    script.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "Verilator {major}.{minor:03d}" && exit\n'
        f'{root}exec {tool.executable} "$@"\n'
    )
    script.chmod(0o755)
    return directory
