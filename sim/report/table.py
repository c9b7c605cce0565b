"""The figures of a report by their dotted names."""

from collections.abc import Iterator, Mapping
from typing import Any

from sim.report.report import ADAPTER, Report


def figures_of(report: Report) -> dict[str, Any]:
    """Return all figures of a run by their dotted names in the report; lists are left out."""
    return dict(_figures(ADAPTER.dump_python(report, mode="json"), ""))


def _figures(section: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in section.items():
        if isinstance(value, dict):
            yield from _figures(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            yield prefix + name, value
