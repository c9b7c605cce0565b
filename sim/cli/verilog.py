"""``loomwork verilog``: an engine's package, or one core as a module."""

import time
from pathlib import Path
from typing import Any

from hw.board import Board
from hw.engine import Engine
from sim.host.console import print_files
from sim.host.paths import check_directory, check_distinct

_BUILD = Path("build/verilog")


def write_kernel(
    engine: Engine[Any, Any], board: Board, config: Any, output: Path | None, *, lint: bool
) -> bool:
    """Write the package of a kernel and return whether the linter, if asked, has nothing to say."""
    started = time.perf_counter()
    directory = output or _BUILD / f"{engine.name}-{board.name}"
    check_directory("--output", directory)
    from hw.package.write import configuration_of
    from hw.verilog import write_package
    from sim.build.design import kernel_design

    design = kernel_design(engine, config, board)
    earlier = configuration_of(directory)
    files = write_package(design, directory)
    print_files(f"{engine.name} for {board.title}", files, directory, time.perf_counter() - started)
    if earlier not in ("", configuration_of(directory)):
        print(f"It replaces the package of another configuration, {earlier}.")
    return not lint or _clean(directory / f"{design.top_name}.v")


def write_core(
    name_of_core: str, config: Path | None, output: Path | None, *, name: str | None, lint: bool
) -> bool:
    """Write the module of a core and return whether the linter, if asked, has nothing to say."""
    from hw.cores import find_core
    from hw.cores import write_core as write

    started = time.perf_counter()
    kind = find_core(name_of_core)
    settings = kind.load(config)
    directory = output or _BUILD / kind.name
    check_directory("--output", directory)
    check_distinct(
        ("--config", config), *(("--output", directory / own) for own in ("meta.json", "ports.md"))
    )
    from sim.build.design import core_design

    design = core_design(kind, settings, name=name)
    files = write(design, directory)
    print_files(f"core {kind.name}", files, directory, time.perf_counter() - started)
    return not lint or _clean(directory / f"{design.name}.v")


def _clean(path: Path) -> bool:
    """Print the messages of Verilator's linter and return whether there are none."""
    from sim.build.lint import lint

    said = lint(path, "-Wall")
    print(said or "Verilator's linter has nothing to say")
    return not said
