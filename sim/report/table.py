"""Reports as a table for spreadsheets: a line for each run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sim.report.figures import labels
from sim.report.report import ADAPTER, Report


def csv_text(reports: Sequence[Report]) -> str:
    """Return a column for each figure of any run, by its dotted name in the report; lists are left out."""
    rows = [
        {"run": label, **figures_of(report)} for label, report in zip(labels(reports), reports, strict=True)
    ]
    text = io.StringIO()
    columns = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def figures_of(report: Report) -> dict[str, Any]:
    """Return all figures of a run by their dotted names in the report; lists are left out."""
    return dict(_figures(ADAPTER.dump_python(report, mode="json"), ""))


def _figures(section: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in section.items():
        if isinstance(value, dict):
            yield from _figures(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            yield prefix + name, value
