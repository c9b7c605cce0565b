"""Runs side by side on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from sim.report.figures import FAILED, SUMMARY, labels, lines
from sim.report.report import Report


def summary(reports: Sequence[Report], *, title: str = "") -> Table:
    """Give a table with a row for each figure of `sim.report.figures.SUMMARY` and a column for each run."""
    table = Table(box=box.SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False)
    table.add_column("")
    for label in labels(reports):
        table.add_column(Text(label), justify="right")
    for line in lines(reports, SUMMARY):
        cells = (Text(cell, style="bold red" if cell == FAILED else "") for cell in line.cells)
        table.add_row(Text(line.label), *cells)
    return table
