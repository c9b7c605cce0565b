"""``loomwork report``: report files in, a page and a table out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hw.errors import InputError
from sim.host.files import write_text
from sim.host.paths import check_distinct
from sim.report.figures import named_by_file
from sim.report.page import render
from sim.report.report import load
from sim.report.table import csv_text


def run_report(files: Sequence[Path], names: Sequence[str], page: Path, table: Path | None) -> list[Path]:
    """Render reports as a page, and as a table where a path is given; give the paths written.

    Runs have the ``names``, one for each; without any their own labels, or their files' names. Raises
    `InputError` before anything is written.
    """
    for file in files:
        check_distinct(("reports", file), ("--output", page), ("--csv", table))
    if names and len(names) != len(files):
        raise InputError("--label", len(names), f"given once for each of the {len(files)} reports")
    reports = [load(file) for file in files]
    if names:
        reports = [replace(report, label=name) for report, name in zip(reports, names, strict=True)]
    else:
        reports = named_by_file(reports, files)
    render(reports, page)
    if table is None:
        return [page]
    write_text(table, csv_text(reports))
    return [page, table]
