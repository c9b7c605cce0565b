"""Simulators: built once from Verilog, C++ models and flags, kept, and run many times under cocotb.

cocotb's own Verilator runner makes every signal of the design public, which keeps Verilator from optimizing.
That costs three quarters of the speed and six times the build time.  Here only the ports of the testbench's
top are visible; stimulus and memories are compiled models, and Python sleeps while the design runs.
"""

import contextlib
import functools
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from hw.errors import InputError, LoomworkError, ToolError
from hw.lib.arithmetic.models import models_of
from sim.build.cache import BuildCache
from sim.build.cells import FLAGS as CELL_FLAGS
from sim.build.cells import cell_inputs
from sim.build.objects import provide
from sim.build.testbench import first_error, run_tests
from sim.build.toolchain import (
    CXX_STANDARD,
    Toolchain,
    Verilator,
    find_toolchain,
    find_verilator,
    has_fst,
    package_root,
    processor,
)
from sim.host.digest import key_of
from sim.host.progress import ProgressLine

#: Of the compiler on code that runs every cycle and on the run-time library: these unless this variable says
#: otherwise.  -Os loses a third of the speed.  Verilator's own -O3 inlines every placement of a cell; the
#: compiler then takes minutes over one function.  So do partial redundancy elimination and code hoisting,
#: which win no speed.  Runs of some thousand cycles are over sooner with -O0.
OPTIMIZE_VARIABLE = "LOOMWORK_OPTIMIZE"
_OPTIMIZE = "-O2 -fno-tree-pre -fno-code-hoisting"
#: Of simulators that run for a minute: compiling them at -O2 would take longer than it saves.
_QUICK = "-O1"
_MAX_JOBS = 8
_VERILATOR_FLAGS = (
    "--timing",
    "--assert",
    *("--timescale", "1ps/1ps"),
    # Comments say where each line comes from: a third of the text, which nobody reads.
    "--no-decoration",
    *("-Wno-fatal", "-Wno-lint", "-Wno-style", "-Wno-TIMESCALEMOD"),
    # NumPy reaches the memories' stores through the program's own symbols.
    *("-LDFLAGS", "-rdynamic"),
)
#: Without optimizing, most of the compiler's time goes to the headers of each file of C++.  One file takes
#: half the time of forty, with a header compiled ahead for these.
_ONE_FILE = ("--output-split", "0")
#: File of a build with facts that only building it finds out.
_MADE = "made.json"
#: Names that make and the shell read as they stand.
_PLAIN = re.compile(r"[\w./+@-]+")


class SimulationError(LoomworkError):
    """The simulated design failed: a hang, a broken protocol, a failed check."""


@dataclass(frozen=True, kw_only=True)
class Built:
    """A simulator that is ready to run."""

    path: Path  #: Folder of the build: the program, its sources and the build's log.
    top: str  #: Name of the testbench's top module, and of the program.
    trace: str | None  #: Suffix of the waveforms it can write, ``"fst"`` or ``"vcd"``; None without tracing.
    seconds: float  #: Wall time it took to build, or to find.
    cached: bool  #: Whether it was there already.
    versions: Mapping[str, str]  #: Tools it was built with.


@contextlib.contextmanager
def built_quickly() -> Iterator[None]:
    """Have simulators compiled quickly, unless the user's variable says otherwise, until the block ends."""
    given = os.environ.get(OPTIMIZE_VARIABLE)
    os.environ.setdefault(OPTIMIZE_VARIABLE, _QUICK)
    try:
        yield
    finally:
        if given is None:
            os.environ.pop(OPTIMIZE_VARIABLE, None)


@functools.cache
def verilator() -> Verilator:
    """Return this machine's Verilator, found once a process; see `sim.build.toolchain.find_verilator`."""
    return find_verilator(os.environ.get("PATH", os.defpath), package_root())


def build(sources: Mapping[str, str], *, top: str, visible: Sequence[str], trace: bool = False) -> Built:
    """Return the simulator of a design, built first where the cache does not have it.

    ``sources``: text by file name: ``.v`` and ``.sv`` are compiled by Verilator, ``.cpp`` with the simulator,
    ``.h`` and ``.svh`` are there to be included. ``top``, ``visible``: the testbench's top module, and its
    ports that Python reads, writes or waits for. ``trace``: whether it can write waveforms; tracing costs
    build time and speed even when it is off.

    A build in the cache needs no compiler: a quick one serves where nothing else was asked for, and an
    optimized one where a quick one was. Raises `ToolError` when a tool is missing, too old, or fails on
    the sources, and `InputError` when the cache cannot be written, or a name cannot be used.
    """
    began = time.monotonic()
    for name in sources:
        if Path(name).name != name or Path(name).suffix not in (".v", ".sv", ".cpp", ".h", ".svh"):
            raise InputError("source name", name, "a plain name that ends in .v, .sv, .svh, .cpp or .h")
    models = models_of("\n".join(sources.values()))
    sources = {**sources, **{path.name: path.read_text() for path in models}}
    jobs = [_Job(sources, top, visible, trace, level) for level in _levels()]
    cache = BuildCache("simulators")
    with ProgressLine("Building the simulator") as activity:
        found = next((path for job in jobs if (path := cache.find(job.key))), None)
        path, cached = (
            (found, True)
            if found
            else cache.get(
                jobs[0].key,
                lambda folder: jobs[0].make(folder, activity),
                waiting=lambda: activity.update("waiting for another process that builds the same"),
            )
        )
    made = json.loads((path / _MADE).read_bytes())
    return Built(
        path=path,
        top=top,
        trace=made["trace"],
        seconds=time.monotonic() - began,
        cached=cached,
        versions=made["versions"],
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
    """Run the cocotb module ``module`` in a simulator and return the wall time in seconds.

    It runs in ``directory``, where ``sim.log`` and ``results.xml`` are left, with more environment variables
    and the design's plus-arguments.  Only a simulator built with ``trace`` writes ``waves``.  ``tick`` is
    called several times a second; its exception ends the simulation. Raises `SimulationError` when a test of
    the module fails or the simulator ends early; the message is the test's own.
    """
    if waves is not None and built.trace is None:
        raise InputError("waves", str(waves), "given only for a simulator built with tracing")
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
    """One build: its sources, its key, and how it is made."""

    sources: Mapping[str, str]
    top: str
    visible: Sequence[str]
    trace: bool
    optimize: str  #: Level of the compiler.

    @property
    def key(self) -> str:
        """The compiler is not in it: a finished build runs without any."""
        major, minor = verilator().version
        return key_of(
            [
                *(f"{name}\0{text}" for name, text in sorted(self.sources.items())),
                *(self.top, self.control, str(self.trace), self.optimize, *_VERILATOR_FLAGS),
                *self.cell_flags,
                *(f"Verilator {major}.{minor}", f"cocotb {version('cocotb')}", processor()),
            ]
        )

    @functools.cached_property
    def cells(self) -> dict[str, tuple[str, ...]]:
        texts = (text for name, text in self.sources.items() if name.endswith(".v"))
        return cell_inputs("\n".join(texts))

    @property
    def cell_flags(self) -> tuple[str, ...]:
        return CELL_FLAGS if self.cells else ()

    @property
    def control(self) -> str:
        """Verilator's control file: the ports that Python writes, and the inputs of cells."""
        ports = [("rw", self.top, port) for port in self.visible]
        ports += [("rd", cell, port) for cell, inputs in self.cells.items() for port in inputs]
        return "`verilator_config\n" + "".join(
            f'public_flat_{access} -module "{module}" -var "{port}"\n' for access, module, port in ports
        )

    def make(self, entry: Path, activity: ProgressLine) -> None:
        """Build in ``entry``, which then holds the program, the sources and the log."""
        # They take half a second to import.
        from cocotb_tools.runner import Verilog

        from sim.build.runner import BuildRunner

        activity.update("Verilator")
        tools = find_toolchain()
        trace = ("fst" if has_fst(tools) else "vcd") if self.trace else None
        versions = tools.versions() | {"cocotb": version("cocotb")}
        with _plain_folder(entry) as folder:
            for name, text in {**self.sources, "visible.vlt": self.control}.items():
                (folder / name).write_text(text)
            variables = _make_variables(tools, self.optimize)
            flags = (CXX_STANDARD, *tools.machine_flags)
            jobs = min(len(os.sched_getaffinity(0)), _MAX_JOBS)
            fingerprint = (*versions.values(), processor(), *variables, *flags)
            plain = functools.partial(_plain_name, folder)
            runner = BuildRunner(
                make=["make", "-j", str(jobs), *variables],
                tools=tools,
                plain=plain,
                provide=functools.partial(provide, fingerprint, plain),
                activity=activity,
            )
            names = ["visible.vlt", *(n for n in sorted(self.sources) if n.endswith((".v", ".sv", ".cpp")))]
            try:
                runner.build(
                    # The tag for all that Verilator is given.
                    sources=[Verilog(folder / name) for name in names],
                    hdl_toplevel=self.top,
                    build_args=[
                        *_VERILATOR_FLAGS,
                        *(_ONE_FILE if self.optimize == "-O0" else ()),
                        *(part for flag in flags for part in ("-CFLAGS", flag)),
                        *((f"--trace-{trace}",) if trace else ()),
                        *self.cell_flags,
                    ],
                    build_dir=folder / "objects",
                    log_file=folder / "build.log",
                )
            except RuntimeError as error:
                log = entry.with_name(f"{self.key}.failed.log")
                shutil.copyfile(folder / "build.log", log)
                raise ToolError(
                    f"the simulator does not build: {first_error(log)} (the log is {log})"
                ) from error
            (folder / "objects" / self.top).rename(folder / self.top)
            shutil.rmtree(folder / "objects")
            for link in folder.glob("link-*"):
                link.unlink()
            (folder / _MADE).write_text(json.dumps({"trace": trace, "versions": versions}))


def _levels() -> tuple[str, ...]:
    """Return the level that is built, and another one whose builds serve as well."""
    level = os.environ.get(OPTIMIZE_VARIABLE, "")
    return {"": (_OPTIMIZE, _QUICK), _QUICK: (_QUICK, _OPTIMIZE)}.get(level, (level,))


def _make_variables(tools: Toolchain, optimize: str) -> list[str]:
    return [
        f"OPT_FAST={optimize}",
        f"OPT_GLOBAL={optimize}",
        # The packaged Verilator leaves out the compiler's flag for a precompiled header.
        "CFG_CXXFLAGS_PCH_I=-include",
        f"CXX={tools.cxx}",
        f"LINK={tools.cxx}",
        "AR=ar",
        f"OBJCACHE={tools.ccache or ''}",
    ]


@contextlib.contextmanager
def _plain_folder(folder: Path) -> Iterator[Path]:
    """Return a folder whose name make can read: ``folder``, or one whose files are then moved there."""
    if _PLAIN.fullmatch(str(folder)):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="loomwork-") as place:
        yield Path(place)
        for path in Path(place).iterdir():
            shutil.move(path, folder / path.name)


def _plain_name(folder: Path, path: Path) -> Path:
    """Return a name of ``path`` that make can read: its own, or a link in ``folder``."""
    if _PLAIN.fullmatch(str(path)):
        return path
    link = folder / f"link-{key_of([str(path)])}"
    if not link.is_symlink():
        link.symlink_to(path)
    return link
