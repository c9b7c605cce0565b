"""cocotb's Verilator runner, with our visibility, our build cache's steps, and an end to what it starts."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import cocotb_tools.config
from cocotb_tools import runner

from sim.build.toolchain import Toolchain
from sim.host.process import supervise
from sim.host.progress import Activity

_NOTHING = "cocotb wrote no results"


def run_tests(
    program: Path,
    *,
    module: str,
    directory: Path,
    environ: Mapping[str, str],
    arguments: Sequence[str],
    tick: Callable[[], None],
) -> str | None:
    """Run the tests of ``module`` in ``program``, with its output in ``directory/sim.log``, and give what the
    first failing one says, or how the simulator ended without results; None when all passed.
    """
    directory = directory.absolute()  # the simulation runs there: a relative name would mean another place
    tests = _TestRunner(tick)
    tests.build_dir = program.parent
    results = directory / "results.xml"
    # SystemExit is how the runner speaks of failures under pytest; the results file says which.
    with suppress(SystemExit, RuntimeError):
        tests.test(
            test_module=module,
            hdl_toplevel=program.name,
            hdl_toplevel_lang="verilog",
            build_dir=program.parent,
            test_dir=directory,
            test_args=list(arguments),
            results_xml=str(results),
            log_file=directory / "sim.log",
            extra_env={
                "COCOTB_REWRITE_ASSERTION_FILES": "",  # would import pytest into every simulation
                "COCOTB_ANSI_OUTPUT": "0",
                # Not in the program itself, which all environments with this cocotb share.
                "LD_LIBRARY_PATH": os.pathsep.join(
                    [str(cocotb_tools.config.libs_dir), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
                ),
                **environ,
            },
        )
    failure = _failure(results)
    if failure == _NOTHING:
        return f"the simulator ended early ({first_error(directory / 'sim.log')})"
    return failure


class BuildRunner(runner.Verilator):
    """Builds; every command is supervised and shown.

    `build` raises `RuntimeError` when Verilator or the compiler refuse the sources; `first_error` of its log
    says why.
    """

    def __init__(
        self,
        *,
        make: Sequence[str],
        tools: Toolchain,
        plain: Callable[[Path], Path],
        provide: Callable[..., list[str]],
        activity: Activity,
    ) -> None:
        super().__init__()
        self._make = list(make)
        self._environ = {
            # A make above this one would pass its job server on.
            name: value
            for name, value in tools.environment().items()
            if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CXXFLAGS", "CPPFLAGS", "LDFLAGS")
        }
        self._verilator = [str(tools.verilator.executable)]
        if tools.verilator.root is not None:
            root = plain(tools.verilator.root)
            # Around the program is one in Perl that follows links and reads no spaces; it frees the stack.
            free = 'ulimit -s unlimited 2>/dev/null; exec "$0" "$@"'
            self._verilator = ["sh", "-c", free, str(root / "bin" / "verilator_bin")]
            self._environ["VERILATOR_ROOT"] = str(root)
        self._plain = plain
        self._provide = provide
        self._activity = activity

    def _build_command(self) -> list[list[str]]:
        share, libraries = map(self._plain, (cocotb_tools.config.share_dir, cocotb_tools.config.libs_dir))
        verilate = [
            *(
                *self._verilator,
                "-cc",
                "--exe",
                "--vpi",
                "--prefix",
                "Vtop",
                "-Mdir",
                str(self.build_dir),
            ),
            *("--top-module", self.hdl_toplevel, "-o", self.hdl_toplevel),
            *("-LDFLAGS", f"-L{libraries} -lcocotbvpi_verilator"),
            *(argument.value for argument in self._build_args),
            str(share / "lib" / "verilator" / "verilator.cpp"),
            *(str(source.value) for source in self._sources),
        ]
        return [verilate, [*self._make, "-C", str(self.build_dir), "-f", "Vtop.mk"]]

    def _execute_cmds(self, commands: Sequence[Any], cwd: Any, stdout: TextIO | None = None) -> None:
        objects, sources = Path(self.build_dir), Path(self.build_dir).parent
        verilate, make = commands
        self._supervise(verilate, cwd, stdout, lambda: self._activity.update("Verilator"))

        def compiling() -> None:
            done = len(list(objects.glob("*.o")))
            self._activity.update(f"compiling, {done} files done")

        def make_shared(targets: list[str]) -> None:
            self._supervise([*make, *targets], cwd, stdout, compiling)

        variables = self._provide(objects, sources, make_shared)
        self._supervise([*make, *variables], cwd, stdout, compiling)

    def _supervise(self, command: Sequence[str], cwd: Any, stdout: Any, tick: Callable[[], None]) -> None:
        if supervise(command, cwd=Path(cwd), environ=self._environ, output=stdout, tick=tick):
            raise RuntimeError(f"{command[0]} failed")


class _TestRunner(runner.Verilator):
    """Runs; the simulator is supervised."""

    def __init__(self, tick: Callable[[], None]) -> None:
        super().__init__()
        self._tick = tick

    def _test_command(self) -> list[list[str]]:
        return [[str(Path(self.build_dir) / self.sim_hdl_toplevel), *self.test_args]]

    def _execute_cmds(self, commands: Sequence[Any], cwd: Any, stdout: TextIO | None = None) -> None:
        for command in commands:
            supervise(command, cwd=Path(cwd), environ=self.env, output=stdout, tick=self._tick)


def _failure(results: Path) -> str | None:
    """Give what the first failing test of a results file says, None when all passed."""
    try:
        cases = list(ElementTree.parse(results).iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return _NOTHING
    for case in cases:
        for problem in (*case.iter("failure"), *case.iter("error")):
            return problem.get("error_msg") or problem.get("message") or (problem.text or "").strip()
    return None if cases else _NOTHING


def first_error(log: Path) -> str:
    """Give the first line of a log that tells of an error, else its last."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return "no log was written"
    for line in lines:
        if re.search(r"%Error|\berror\b|Error:|\bFatal\b", line):
            return line.strip()
    return lines[-1].strip() if lines else "the log is empty"
