"""cocotb's Verilator runner as a builder, with our visibility and our build cache's steps."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

import cocotb_tools.config
from cocotb_tools import runner

from sim.build.objects import object_files
from sim.build.toolchain import Toolchain
from sim.host.process import supervise
from sim.host.progress import ProgressLine

#: Settings of glibc's allocator.  Verilator makes millions of small objects.  With freed memory kept by the
#: process, in large pages, it takes 7.1 s instead of 10.1 for attention's small kernel.  Another C library
#: ignores them.
_ALLOCATOR = ("tcache_count=60000", "mxfast=0", "top_pad=67108864", "hugetlb=1")


class BuildRunner(runner.Verilator):
    """Builds; every command is supervised and shown.

    `build` raises `RuntimeError` when Verilator or the compiler refuse the sources;
    `sim.build.testbench.first_error` of its log says why.
    """

    def __init__(
        self,
        *,
        make: Sequence[str],
        tools: Toolchain,
        plain: Callable[[Path], Path],
        provide: Callable[..., list[str]],
        activity: ProgressLine,
    ) -> None:
        super().__init__()
        self._make = list(make)
        self._environ = {
            # A make above this one would pass its job server on.
            name: value
            for name, value in tools.environment().items()
            if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CXXFLAGS", "CPPFLAGS", "LDFLAGS")
        }
        tunables = ":".join(f"glibc.malloc.{each}" for each in _ALLOCATOR)
        self._environ.setdefault("GLIBC_TUNABLES", tunables)
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
            *(*self._verilator, "-cc", "--exe", "--vpi", "--prefix", "Vtop", "-Mdir", str(self.build_dir)),
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

        files = object_files(objects)

        def compiling() -> None:
            done = sum(file.exists() for file in files)
            self._activity.update(f"compiling, {done} of {len(files)} files done")

        def make_shared(targets: list[str]) -> None:
            self._supervise([*make, *targets], cwd, stdout, compiling)

        variables = self._provide(objects, sources, make_shared)
        self._supervise([*make, *variables], cwd, stdout, compiling)

    def _supervise(self, command: Sequence[str], cwd: Any, stdout: Any, tick: Callable[[], None]) -> None:
        if supervise(command, cwd=Path(cwd), environ=self._environ, output=stdout, tick=tick):
            raise RuntimeError(f"{command[0]} failed")
