"""The designs of a sweep's charts: their texts, their axes, and the workloads that are drawn one by one."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from sim.sweep.points import PointResult, Value
from sim.sweep.results import SweepResults
from sim.sweep.rows import short_names
from sim.sweep.space import BOARD

#: Names of resources and bytes on axes.
TITLES = {
    "microseconds": "µs",
    "dsp": "DSP",
    "bram36": "block RAM",
    "uram": "UltraRAM",
    "lut": "LUT",
    "bytes": "bytes moved",
    "microjoules": "energy, µJ",
}
#: Most workloads that are drawn one by one.
MOST_WORKLOADS = 12


def describe(results: SweepResults, result: PointResult) -> str:
    """Return a point's number, parameters and main figures in HTML, for its mark."""
    names = short_names(results)
    chosen = ", ".join(f"{names[name]} {value}" for name, value in result.point.parameters.items())
    if len(results.spec.boards) > 1:
        chosen = ", ".join(filter(None, (result.point.board, chosen)))
    main = [
        name
        for name in ("cycles", "microseconds", "dsp", "lut", "bram36", "uram", "bytes", "microjoules")
        if name in result.figures
    ]
    figures = [f"{result.figures[name]:,.0f} {TITLES.get(name, name)}" for name in main]
    lines = [f"<b>point {result.number}</b>, {result.fidelity}", escape(chosen), ", ".join(figures)]
    return "<br>".join(filter(None, [*lines, escape(result.failure)]))


def marks(results: SweepResults, points: Sequence[PointResult]) -> dict[str, Any]:
    """Return the texts of marks and, for the page's script, the points' numbers."""
    return {
        "customdata": [[describe(results, point), point.number] for point in points],
        "hovertemplate": "%{customdata[0]}<extra></extra>",
    }


def main_workloads(results: SweepResults) -> list[str]:
    """Return the workloads that charts show one by one: those of most cycles, in the sweep's order."""
    workloads = list(results.spec.workloads)
    known = next((point.figures for point in results.points if point.figures), None)
    if len(workloads) <= MOST_WORKLOADS or known is None:
        return workloads
    figures, weights = known, results.spec.workloads
    ranked = sorted(workloads, key=lambda name: -weights[name].weight * figures[f"{name}.cycles"])
    kept = set(ranked[:MOST_WORKLOADS])
    return [name for name in workloads if name in kept]


def axes(point: PointResult) -> Mapping[str, Value]:
    """Return the parameters of a point, and its board."""
    return {BOARD: point.point.board, **point.point.parameters}


def values_of_axis(points: Sequence[PointResult], name: str) -> list[Value]:
    """Return the values of a parameter in order, text after numbers."""
    found = {axes(point)[name] for point in points if name in axes(point)}
    return sorted(
        found,
        key=lambda value: (isinstance(value, str), value if not isinstance(value, str) else 0, str(value)),
    )
