"""``loomwork report``: report files or the database of a sweep in, a page and a table out."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from hw.errors import InputError


def report(
    reports: Annotated[
        list[Path], typer.Argument(help="Report files, .json; or the database of one sweep, .db.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Page to write: report.html, of a sweep one beside it, without."),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Table to write, .csv: a line a run, or a design.")
    ] = None,
    scale_sim: Annotated[
        Path | None,
        typer.Option(
            "--scale-sim", help="Folder for COMPUTE_REPORT.csv, as of SCALE-Sim; of a sweep's layers."
        ),
    ] = None,
    point: Annotated[
        int | None, typer.Option("--point", min=0, help="Design of --scale-sim; the front's fastest without.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", help="Name of a run, once for each; its own or its file's name without."),
    ] = None,
) -> None:
    """Render reports, or a sweep, as one self-contained HTML page; of a sweep also .csv and .json."""
    from sim.host.paths import check_directory, check_distinct, check_writable
    from sim.sweep.store import is_database

    swept = any(file.suffix == ".db" or is_database(file) for file in reports)
    # A sweep's page is named after its database: report.json may already be a simulation's.
    output = output or (reports[0].with_suffix(".html") if swept else Path("report.html"))
    for file in reports:
        check_distinct(("reports", file), ("--output", output), ("--csv", csv))
    for name, path in (("--output", output), ("--csv", csv)):
        check_writable(name, path)
    for name, value in (("--scale-sim", scale_sim), ("--point", point)):
        if value is not None and (not swept or scale_sim is None):
            legal = (
                "left out without --scale-sim"
                if swept
                else "left out: only a sweep's layers have such tables"
            )
            raise InputError(name, str(value), legal)
    if scale_sim is not None:
        check_directory("--scale-sim", scale_sim)
    tables = {}
    if scale_sim is not None:
        from sim.sweep.compute_report import compute_report
        from sim.sweep.results import load_sweep

        tables = compute_report(load_sweep(reports[0]), point, scale_sim)
    write = _write_sweep if swept else _write_runs
    written = write(reports, label or [], output, csv)
    for path, text in tables.items():
        from sim.host.files import write_text

        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    for path in (*written, *tables):
        typer.echo(f"{path}")


def _write_runs(files: Sequence[Path], names: Sequence[str], page: Path, table: Path | None) -> list[Path]:
    """Render reports as a page, and as a table where a path is given; return the paths written.

    Runs have the ``names``, one for each; without any their own labels, or their files' names. Raises
    `InputError` before anything is written.
    """
    from sim.host.files import csv_text, write_text
    from sim.report.figures import labels, named_by_file
    from sim.report.page import render
    from sim.report.report import load
    from sim.report.table import figures_of

    if names and len(names) != len(files):
        raise InputError("--label", len(names), f"given once for each of the {len(files)} reports")
    found = [load(file) for file in files]
    if names:
        found = [replace(run, label=name) for run, name in zip(found, names, strict=True)]
    else:
        found = named_by_file(found, files)
    render(found, page)
    if table is None:
        return [page]
    rows = zip(labels(found), found, strict=True)
    write_text(table, csv_text({"run": name, **figures_of(run)} for name, run in rows))
    return [page, table]


def _write_sweep(files: Sequence[Path], names: Sequence[str], page: Path, table: Path | None) -> list[Path]:
    """Render the database of a sweep as a page, and beside it as a table and as all that is known."""
    from sim.host.paths import check_distinct, check_writable
    from sim.sweep.page import write_sweep_page
    from sim.sweep.results import load_sweep
    from sim.sweep.rows import is_sweep_points

    if len(files) > 1:
        raise InputError("reports", len(files), "one database of a sweep, or reports alone")
    if names:
        raise InputError("--label", len(names), "left out: the designs of a sweep have numbers")
    document, table = page.with_suffix(".json"), table or page.with_suffix(".csv")
    check_distinct(("reports", files[0]), ("--output", page), ("--csv", table), ("JSON", document))
    for path in (table, document):
        check_writable("--output", path)
    if document.exists() and not is_sweep_points(document):
        raise InputError(
            "--output", str(page), f"a page beside which no other {document.name} lies: it would be replaced"
        )
    for line in write_sweep_page(load_sweep(files[0]), page, table, document):
        print(f"loomwork: {line}", file=sys.stderr)
    return [page, table, document]
