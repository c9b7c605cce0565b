"""The main job: every engine's real input through its generated RTL; a table, Verilog and a page come out."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from hw.board import Board, load_board
from hw.errors import InputError
from hw.registry import ENGINES, find_engine
from hw.verilog import generate, write_package
from sim.adapter import Demo, Tensor
from sim.console import console as default_console
from sim.page import render
from sim.report import Report, save
from sim.run import find_adapter, run
from sim.table import summary


def demo(
    board: str = "u55c",
    directory: Path = Path("build/demo"),
    *,
    engines: Sequence[str] | None = None,
    console: Console | None = None,
) -> bool:
    """Run the demo of every registered engine that has one, and say whether all of it was bit-exact.

    Writes ``<engine>/verilog``, ``<engine>/<launch>.report.json`` and ``report.html`` below ``directory``.  A
    report is saved as soon as its launch is done, so that nothing finished is lost to what comes after.

    Parameters
    ----------
    board
        Name of the board, or the path of its file.
    engines
        Names of the engines to run; all registered ones when not given.
    console
        Where to print; the terminal when not given.

    Raises
    ------
    InputError
        When none of the engines has a demo, or the directory cannot be written.
    ToolError
        When something is missing that a demo needs; the message says how to get it.
    """
    console = console or default_console()
    names = list(engines or sorted(ENGINES))
    on = load_board(board)
    for name in names:
        find_engine(name)  # an unknown name is refused before any work
    demos = [(name, found) for name in names if (found := find_adapter(name).demo(on)) is not None]
    if not demos:
        raise InputError("engines", ", ".join(names), "such that one of them has a demo")
    reports: list[Report] = []
    for name, chosen in demos:
        reports += _show(name, chosen, on, directory / name, console)
    page = directory / "report.html"
    render(reports, page)
    console.print(f"Page     {page}", soft_wrap=True)
    return all(report.bit_exact for report in reports)


def _show(name: str, chosen: Demo, board: Board, directory: Path, console: Console) -> list[Report]:
    console.print(f"[bold]{name}[/bold] on {board.name}: {chosen.title}")
    verilog = directory / "verilog"
    write_package(generate(find_engine(name), chosen.config, board), verilog)
    reports: list[Report] = []
    results: dict[str, Mapping[str, Tensor]] = {}
    files: list[Path] = []
    for launch, tensors in chosen.launches.items():
        folder = directory / _slug(launch)
        done = run(name, chosen.config, board, tensors, seed=0, memory_mode="model", directory=folder)
        report = dataclasses.replace(done.report, label=launch)
        files.append(directory / f"{_slug(launch)}.report.json")
        save(report, files[-1])
        reports.append(report)
        results[launch] = done.outputs
        for mismatch in done.mismatches:
            console.print(f"{launch}: {mismatch}", style="red", markup=False)
    console.print(summary(reports))
    for line in chosen.conclude(results):
        console.print(line)
    console.print()
    console.print(f"Verilog  {verilog}", soft_wrap=True)
    for file in files:
        console.print(f"Report   {file}", soft_wrap=True)
    return reports


def _slug(name: str) -> str:
    """Give a name a file can have."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "launch"
