"""The demo: simulates every engine's RTL on real input; writes tables, Verilog and pages."""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from hw.board import Board, load_board
from hw.errors import InputError
from hw.registry import ENGINES, find_engine
from hw.verilog import write_package
from sim.build.design import kernel_design
from sim.build.simulator import built_quickly
from sim.host.console import console as default_console
from sim.host.progress import ProgressLine
from sim.report.figures import SUMMARY, labels, lines, summary
from sim.report.page import render
from sim.report.parts import Headline, exact_tile, write_page
from sim.report.pictures import embedded
from sim.report.report import save
from sim.run.adapter import Demo
from sim.run.ahead import built_ahead
from sim.run.part import DemoPart, find_part, keep, part_key
from sim.run.result import RunResult
from sim.run.run import find_adapter, run


def demo(
    board: str = "u55c",
    directory: Path = Path("build/demo"),
    *,
    engines: Sequence[str] | None = None,
    console: Console | None = None,
    waves: bool = False,
) -> bool:
    """Run the demo of every registered engine that has one, or of those named; return whether all was
    bit-exact.

    Writes ``<engine>/verilog``, ``<engine>/<launch>.report.json``, ``<engine>/report.html`` and further files
    of an engine's demo below ``directory``, and ``index.html`` with links to all.  A report is saved as soon
    as its launch is done, so that a later failure does not lose it.

    Raises `InputError` when no engine has a demo or the directory cannot be written. Raises `ToolError` when
    a demo lacks a tool; the message says how to get it.
    """
    console = console or default_console()
    names = list(engines or ENGINES)
    on = load_board(board)
    for name in names:
        find_engine(name)  # an unknown name is refused before any work
    demos: dict[str, Demo] = {}
    kept: dict[str, DemoPart] = {}
    parts: list[DemoPart] = []
    with built_quickly(), built_ahead(on) as build:
        for name in names:
            with ProgressLine(f"Preparing {name}"):
                found = find_adapter(name).demo(on)
            if found is not None:
                demos[name] = found
                if waves:
                    continue  # a simulator that records is another one, and kept parts have no waveforms
                if found.kept and (part := find_part(name, part_key(name, found.config, on), directory)):
                    kept[name] = part
                else:
                    build(name, found.config)
        for name, chosen in demos.items():
            console.print(f"[bold]{name}[/bold] on {on.name}: {chosen.title}")
            part = kept.get(name) or _simulated(name, chosen, on, directory, console, waves=waves)
            _print(part, directory, console)
            parts.append(part)
    if not parts:
        raise InputError("engines", ", ".join(names), "such that one of them has a demo")
    # The first ones are built and simulated while the largest is built.
    parts.sort(key=lambda part: not demos[part.engine].first)
    page = directory / "index.html"
    write_page(
        "demo.html.j2",
        page,
        charts=False,
        board=on.title,
        tiles=[_tile(part) for part in parts],
        pictured=max(parts, key=lambda part: len(part.pictures)),
        parts=[(part, labels(part.reports), list(lines(part.reports, SUMMARY))) for part in parts],
    )
    console.print()
    console.print(f"Page     {page}", soft_wrap=True)
    return all(part.bit_exact for part in parts)


def _tile(part: DemoPart) -> Headline:
    cycles = [report.cycles for report in part.reports]
    microseconds = sum(each.kernel_microseconds for each in cycles)
    note = f"runs, bit for bit; {microseconds:,.1f} µs in all at {cycles[0].clock_mhz:g} MHz"
    return dataclasses.replace(exact_tile((r.bit_exact for r in part.reports), part.engine), note=note)


def _print(part: DemoPart, root: Path, console: Console) -> None:
    """Print the content of one engine's part of the page."""
    console.print(summary([*part.reports]))
    for line in filter(None, (part.note, *part.outcome)):
        console.print(line, markup=False)
    console.print()
    for path in part.made:
        console.print(f"Made     {root / path}", soft_wrap=True)
    console.print()


def _simulated(
    name: str, chosen: Demo, board: Board, root: Path, console: Console, *, waves: bool
) -> DemoPart:
    """Simulate an engine's launches."""
    directory = root / name
    verilog = directory / "verilog"
    write_package(kernel_design(find_engine(name), chosen.config, board), verilog)
    saved: dict[str, str] = {}
    results: dict[str, RunResult] = {}
    for launch, given in chosen.launches.items():
        tensors = given(results) if callable(given) else given
        folder = directory / _slug(launch)
        traces = {board.host.name: folder / "bus.trace"} if chosen.traced and board.host else {}
        done = run(
            name, chosen.config, board, tensors,
            seed=0, memory_mode="model", directory=folder, traces=traces,
            signals=folder / "signals.log" if launch in chosen.logged else None,
            waves=directory / f"{_slug(launch)}.vcd" if waves else None,
        )  # fmt: skip
        report = dataclasses.replace(done.report, label=launch)
        file = f"{_slug(launch)}.report.json"
        save(report, directory / file)
        saved[f"{name}/{file}"] = f"Report as data: {launch}"
        if done.waves is not None:
            saved[f"{name}/{done.waves.name}"] = f"Waveforms: {launch}"
        results[launch] = dataclasses.replace(done, measured=report)
        for mismatch in done.mismatches:
            console.print(f"{launch}: {mismatch}", style="red", markup=False)
    reports = [done.report for done in results.values()]
    render(reports, directory / "report.html")
    made = {}
    for file, (title, write) in chosen.documents.items():
        write(results, directory / file)
        made[f"{name}/{file}"] = title
    made[f"{name}/report.html"] = "Report: cycles, bytes, predictions"
    made |= {**saved, f"{name}/verilog": "Verilog, and what Vitis needs with it"}
    part = DemoPart(
        engine=name,
        title=chosen.title,
        outcome=tuple(chosen.conclude(results)),
        pictures={title: embedded(pixels) for title, pixels in chosen.pictures(results).items()},
        reports=reports,
        made=made,
    )
    for done in results.values():
        for path in (*done.traces.values(), *([done.signals] if done.signals else [])):
            path.unlink()
    if chosen.kept:
        keep(part, part_key(name, chosen.config, board), root)
    return part


def _slug(name: str) -> str:
    """Return a name for a file."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "launch"
