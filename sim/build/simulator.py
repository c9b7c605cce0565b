"""Simulators: built once from Verilog, C++ models and flags, kept, and run many times under cocotb.

cocotb's own Verilator runner makes every signal of the design public, which keeps Verilator from optimizing:
a quarter of the speed and six times the build time.  Here only the ports of the testbench's top are visible;
stimulus and memories are compiled models, and Python sleeps while the design runs.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from hw.errors import InputError, LoomworkError, ToolError
from sim.build.cache import BuildCache
from sim.build.cells import FLAGS as CELL_FLAGS
from sim.build.cells import cell_inputs
from sim.build.objects import provide
from sim.build.toolchain import CXX_STANDARD, Toolchain, find_toolchain, has_fst
from sim.host.digest import key_of
from sim.host.progress import Activity

#: Of the compiler on code that runs every cycle and on the run-time library: -O2 unless this variable says
#: otherwise.  -Os loses a third of the speed; Verilator's own -O3 inlines every placement of a cell, and the
#: compiler then takes minutes over one function.  Runs of some thousand cycles are over sooner with -O0.
OPTIMIZE_VARIABLE = "LOOMWORK_OPTIMIZE"
_OPTIMIZE = "-O2"
_MAX_JOBS = 8


class SimulationError(LoomworkError):
    """The simulated design did what it must not: a hang, a broken protocol, a failed check."""


@dataclass(frozen=True, kw_only=True)
class Built:
    """A simulator that is ready to run."""

    path: Path  #: Folder of the build: the program, its sources and the build's log.
    top: str  #: Name of the testbench's top module, and of the program.
    trace: str | None  #: Suffix of the waveforms it can write, ``"fst"`` or ``"vcd"``; None without tracing.
    seconds: float  #: Wall time it took to build, or to find.
    cached: bool  #: Whether it was there already.
    versions: Mapping[str, str]  #: Tools it was built with.


@functools.cache
def toolchain() -> Toolchain:
    """Give the tools of this machine, found once a process; see `sim.build.toolchain.find_toolchain`."""
    return find_toolchain()


def build(
    sources: Mapping[str, str],
    *,
    top: str,
    visible: Sequence[str],
    trace: bool = False,
) -> Built:
    """Give the simulator of a design, built first where the cache does not have it.

    Parameters
    ----------
    sources
        Text by file name: ``.v`` and ``.sv`` are compiled by Verilator, ``.cpp`` with the simulator, ``.h``
        and ``.svh`` are there to be included.
    top, visible
        The testbench's top module, and its ports that Python reads, writes or waits for.
    trace
        Whether it can write waveforms; tracing costs build time and speed even when it is off.

    Raises `ToolError` when a tool is missing, too old, or fails on the sources, and `InputError` when the
    cache cannot be written, or a name cannot be used.
    """
    began = time.monotonic()
    for name in sources:
        if Path(name).name != name or Path(name).suffix not in (".v", ".sv", ".cpp", ".h", ".svh"):
            raise InputError("source name", name, "a plain name that ends in .v, .sv, .svh, .cpp or .h")
    tools = toolchain()
    suffix = ("fst" if has_fst(tools) else "vcd") if trace else None
    cache = BuildCache()
    if re.search(r"\s", str(cache.directory)):
        raise InputError("simulator cache", str(cache.directory), "a path without spaces: make refuses them")
    job = _Job(sources, top, visible, suffix, tools, cache)
    with Activity("Building the simulator") as activity:
        path, cached = cache.get(
            job.key,
            lambda folder: job.make(folder, activity),
            waiting=lambda: activity.update("waiting for another process that builds the same"),
        )
    return Built(
        path=path,
        top=top,
        trace=suffix,
        seconds=time.monotonic() - began,
        cached=cached,
        versions=tools.versions() | {"cocotb": version("cocotb")},
    )


def run(
    built: Built,
    *,
    module: str,
    directory: Path,
    environ: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    waves: Path | None = None,
    tick: Callable[[], None] = lambda: None,
) -> float:
    """Run the cocotb module ``module`` in a simulator and give the wall time in seconds.

    It runs in ``directory``, where ``sim.log`` and ``results.xml`` are left, with more environment variables
    and the design's plus-arguments.  Only a simulator built with ``trace`` writes ``waves``.  ``tick`` is
    called several times a second; what it raises ends the simulation. Raises `SimulationError` when a test of
    the module fails or the simulator ends early; the message is the test's own.
    """
    if waves is not None and built.trace is None:
        raise InputError("waves", str(waves), "given only for a simulator built with tracing")
    # cocotb's runner takes half a second to import.
    from sim.build.runner import run_tests

    began = time.monotonic()
    failure = run_tests(
        built.path / built.top,
        module=module,
        directory=directory,
        environ=environ or {},
        arguments=(*(("--trace", "--trace-file", str(waves)) if waves else ()), *arguments),
        tick=tick,
    )
    if failure is not None:
        raise SimulationError(f"{failure}; the simulation's log is {directory / 'sim.log'}")
    return time.monotonic() - began


@dataclass(frozen=True)
class _Job:
    """One build: what goes in, the key that stands for it, and how it is made."""

    sources: Mapping[str, str]
    top: str
    visible: Sequence[str]
    trace: str | None
    tools: Toolchain
    cache: BuildCache

    @property
    def key(self) -> str:
        from_tools = (*self.tools.versions().items(), ("cocotb", version("cocotb")))
        cocotb_folder = str(_cocotb_libraries())  # the program finds cocotb's libraries there
        return key_of(
            [
                *(f"{name}\0{text}" for name, text in sorted(self.sources.items())),
                *(f"{name} {text}" for name, text in from_tools),
                *(self.top, self.control, str(self.trace), self.tools.machine, cocotb_folder),
                *self.verilator_flags,
                *self.make_variables,
            ]
        )

    @functools.cached_property
    def cells(self) -> dict[str, tuple[str, ...]]:
        texts = (text for name, text in self.sources.items() if name.endswith(".v"))
        return cell_inputs("\n".join(texts))

    @property
    def control(self) -> str:
        """Verilator's control file: what is visible, to Python for writing, and for the sake of cells."""
        ports = [("rw", self.top, port) for port in self.visible]
        ports += [("rd", cell, port) for cell, inputs in self.cells.items() for port in inputs]
        return "`verilator_config\n" + "".join(
            f'public_flat_{access} -module "{module}" -var "{port}"\n' for access, module, port in ports
        )

    @property
    def cxx_flags(self) -> tuple[str, ...]:
        return (CXX_STANDARD, *self.tools.machine_flags)

    @property
    def verilator_flags(self) -> list[str]:
        return [
            "--timing",
            "--assert",
            *("--timescale", "1ps/1ps"),
            *("-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-TIMESCALEMOD"),
            *(part for flag in self.cxx_flags for part in ("-CFLAGS", flag)),
            # NumPy reaches the memories' stores through the program's own symbols.
            *("-LDFLAGS", "-rdynamic"),
            *((f"--trace-{self.trace}",) if self.trace else ()),
            *(CELL_FLAGS if self.cells else ()),
        ]

    @property
    def make_variables(self) -> list[str]:
        optimize = os.environ.get(OPTIMIZE_VARIABLE, _OPTIMIZE)
        return [
            f"OPT_FAST={optimize}",
            f"OPT_GLOBAL={optimize}",
            # The packaged Verilator leaves out how the compiler is told of a precompiled header.
            "CFG_CXXFLAGS_PCH_I=-include",
            f"CXX={self.tools.cxx}",
            f"LINK={self.tools.cxx}",
            "AR=ar",
            f"OBJCACHE={self.tools.ccache or ''}",
        ]

    def make(self, folder: Path, activity: Activity) -> None:
        """Build in ``folder``, which then holds the program, the sources and the log."""
        from cocotb_tools.runner import Verilog

        from sim.build.runner import BuildRunner, first_error

        activity.update("Verilator")
        for name, text in {**self.sources, "visible.vlt": self.control}.items():
            (folder / name).write_text(text)
        jobs = min(len(os.sched_getaffinity(0)), _MAX_JOBS)
        tools = (*self.tools.versions().values(), self.tools.machine, *self.make_variables, *self.cxx_flags)
        shared = functools.partial(provide, self.cache.directory / "objects", tools)
        names = ["visible.vlt", *(n for n in sorted(self.sources) if n.endswith((".v", ".sv", ".cpp")))]
        make = ["make", "-j", str(jobs), *self.make_variables]
        runner = BuildRunner(make, self.tools.environment(), shared, activity)
        try:
            runner.build(
                sources=[Verilog(folder / name) for name in names],  # the tag for all that Verilator is given
                hdl_toplevel=self.top,
                build_args=self.verilator_flags,
                build_dir=folder / "objects",
                log_file=folder / "build.log",
            )
        except RuntimeError as error:
            log = self.cache.directory / f"{self.key}.failed.log"
            os.replace(folder / "build.log", log)
            raise ToolError(f"the simulator does not build: {first_error(log)} (the log is {log})") from error
        (folder / "objects" / self.top).rename(folder / self.top)
        shutil.rmtree(folder / "objects")


def _cocotb_libraries() -> Path:
    spec = find_spec("cocotb")
    if spec is None or spec.origin is None:
        raise ToolError("cocotb is missing: install the project's requirements (`make .venv/ready`)")
    return Path(spec.origin).parent / "libs"
