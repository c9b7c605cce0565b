"""One self-contained HTML page of any number of reports: no file beside it, nothing fetched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from hw.errors import InputError
from sim import charts
from sim.files import write_text
from sim.report import Report, glossary

#: How a run whose RTL differs from its golden model is marked in the table.
FAILED = "NO"

#: Dotted name of a figure, or the start of several, and how it is printed.
_Row = tuple[str, str, Callable[[Any], str]]


def _whole(value: int) -> str:
    return f"{value:,}"


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def _signed_percent(value: float) -> str:
    return f"{100 * value:+.2f} %"


def _times(value: float) -> str:
    return f"{value:.3f} x"


def _percent_short(value: float) -> str:
    return f"{100 * value:.1f} %"


def _signed_percent_short(value: float) -> str:
    return f"{100 * value:+.1f} %"


def _times_short(value: float) -> str:
    return f"{value:.2f} x"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _exact(value: bool) -> str:
    return "yes" if value else FAILED


def _scaled(value: float) -> str:
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.2f} {prefix}"
    return f"{value:.2f}"


_TABLE: tuple[tuple[str, tuple[_Row, ...]], ...] = (
    (
        "Correctness",
        (("bit exact", "bit_exact", _exact), ("{}", "errors.*", _number)),
    ),
    (
        "Cycles",
        (
            ("total", "cycles.cycles_total", _whole),
            ("time, µs", "cycles.kernel_microseconds", lambda value: f"{value:,.2f}"),
            ("busy", "cycles.cycles_busy", _whole),
            ("stall: {}", "cycles.cycles_stall.*", _whole),
            ("idle", "cycles.cycles_idle", _whole),
        ),
    ),
    (
        "Multipliers",
        (
            ("useful MACs", "work.useful_macs", _whole),
            ("MAC slots a cycle", "work.mac_slots_per_cycle", _whole),
            ("utilization", "work.mac_utilization_ratio", _percent),
            ("MACs a second", "work.macs_per_second", _scaled),
        ),
    ),
    (
        "Bytes",
        (
            ("compulsory", "traffic.compulsory_bytes", _whole),
            ("moved, useful", "traffic.useful_bytes", _whole),
            ("moved, on the bus", "traffic.bus_bytes", _whole),
            ("useful over compulsory", "traffic.useful_over_compulsory_ratio", _times),
        ),
    ),
    (
        "Roofline",
        (
            ("compute bound, cycles", "roofline.compute_bound_cycles", _whole),
            ("memory bound, cycles", "roofline.memory_bound_cycles", _whole),
            ("bound by", "roofline.bound_by", str),
            ("cycles over bound", "roofline.cycles_over_bound_ratio", _times),
        ),
    ),
    (
        "Prediction",
        (
            ("cycles", "prediction.predicted_cycles", _whole),
            ("error of cycles", "prediction.predicted_cycles_error_ratio", _signed_percent),
            ("error of bytes read", "prediction.predicted_read_error_bytes", _whole),
            ("error of bytes written", "prediction.predicted_write_error_bytes", _whole),
        ),
    ),
    (
        "Simulation",
        (
            ("memory", "simulation.memory_mode", str),
            ("seed", "simulation.seed", str),
            ("cycles, start to interrupt", "simulation.cycles_start_to_done", _whole),
            ("cycles simulated", "simulation.cycles_simulated", _whole),
            ("cycles a second", "simulation.simulated_cycles_per_second", _scaled),
            ("run, s", "simulation.run_seconds", lambda value: f"{value:.2f}"),
            ("build, s", "simulation.build_seconds", lambda value: f"{value:.2f}"),
            ("build from cache", "simulation.build_cached", _yes),
        ),
    ),
    ("Workload and engine", (("{}", "details.*", _number),)),
)

_ORIGIN: tuple[_Row, ...] = (
    ("engine", "engine", str),
    ("board", "board", str),
    ("clock, MHz", "cycles.clock_mhz", _number),
    ("configuration hash", "config_hash", str),
    ("{}", "config.*", json.dumps),
    ("Loomwork revision", "git_revision", lambda value: value or "not a checkout"),
    ("{}", "tool_versions.*", str),
)


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a table: what it is, what that means, and a cell for each run."""

    label: str
    meaning: str
    cells: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A headline figure."""

    label: str
    figure: str
    note: str
    good: bool | None = None


def render(reports: Sequence[Report], path: Path) -> None:
    """Write a page that shows ``reports`` side by side.

    Raises
    ------
    InputError
        When there is no report, or the path cannot be written.
    """
    if not reports:
        raise InputError("reports", 0, "at least one")
    runs = list(zip(labels(reports), reports, strict=True))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    origin = list(_lines(reports, _ORIGIN))
    page = environment.get_template("page.html.j2").render(
        plotly=get_plotlyjs(),
        failed=FAILED,
        font=charts.FONT,
        runs=[label for label, _ in runs],
        engines=", ".join(dict.fromkeys(report.engine for report in reports)),
        boards=", ".join(dict.fromkeys(report.board for report in reports)),
        tiles=_tiles(reports),
        table=[(title, list(_lines(reports, rows))) for title, rows in _TABLE],
        common=[line for line in origin if len(set(line.cells)) == 1],
        differing=[line for line in origin if len(set(line.cells)) > 1],
        glossary=glossary(),
        cycles=_chart(charts.cycle_breakdown(runs), "cycles"),
        roofline=_chart(charts.roofline(runs), "roofline"),
        prediction=_chart(charts.predicted_cycles(runs), "prediction"),
        traffic=_chart(charts.channel_traffic(runs), "traffic"),
    )
    write_text(path, page)


def labels(reports: Sequence[Report]) -> list[str]:
    """Name every run, each differently: its own label, or its engine and board, numbered when it recurs."""
    names = [report.label or f"{report.engine} on {report.board}" for report in reports]
    unique: list[str] = []
    for name in names:
        if names.count(name) == 1:
            unique.append(name)
            continue
        number = 1
        while (numbered := f"{name} #{number}") in unique or numbered in names:
            number += 1
        unique.append(numbered)
    return unique


def _chart(figure: go.Figure, name: str) -> str:
    html: str = figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        div_id=f"chart-{name}",
        config={"displayModeBar": False, "responsive": True},
    )
    return html


def _lines(reports: Sequence[Report], rows: Sequence[_Row]) -> Iterator[Line]:
    meanings = glossary()
    for label, path, show in rows:
        group, _, star = path.rpartition(".")
        if star != "*":
            cells = tuple(show(_at(report, path)) for report in reports)
            yield Line(label=label, meaning=meanings[path], cells=cells)
            continue
        tables = [_at(report, group) for report in reports]
        for key in dict.fromkeys(key for table in tables for key in table):
            cells = tuple(show(table[key]) if key in table else "–" for table in tables)
            yield Line(label=label.format(key.replace("_", " ")), meaning=meanings[group], cells=cells)


def _at(report: Report, path: str) -> Any:
    part: Any = report
    for step in path.split("."):
        part = getattr(part, step)
    return part


def _tiles(reports: Sequence[Report]) -> list[Tile]:
    exact = sum(report.bit_exact for report in reports)
    cycles = [report.cycles.cycles_total for report in reports]
    microseconds = [report.cycles.kernel_microseconds for report in reports]
    binding = " and ".join(sorted({report.roofline.bound_by for report in reports}))
    return [
        Tile(
            label="RTL equals golden model",
            figure=f"{exact} of {len(reports)}",
            note="runs, bit for bit",
            good=exact == len(reports),
        ),
        Tile(
            label="Cycles from start to done",
            figure=_range(cycles, _whole),
            note=f"{_range(microseconds, lambda value: f'{value:,.1f}')} µs",
        ),
        Tile(
            label="Multiplier slots useful",
            figure=_range([report.work.mac_utilization_ratio for report in reports], _percent_short),
            note="from start to done",
        ),
        Tile(
            label="Distance to the roofline",
            figure=_range([report.roofline.cycles_over_bound_ratio for report in reports], _times_short),
            note=f"the {binding} bound",
        ),
        Tile(
            label="Bytes moved",
            figure=_range([report.traffic.useful_over_compulsory_ratio for report in reports], _times_short),
            note="the compulsory bytes",
        ),
        Tile(
            label="Analytic prediction",
            figure=_range(
                [report.prediction.predicted_cycles_error_ratio for report in reports], _signed_percent_short
            ),
            note="off the simulated cycles",
        ),
    ]


def _range(values: Sequence[Any], show: Callable[[Any], str]) -> str:
    low, high = show(min(values)), show(max(values))
    if low == high:
        return low
    for unit in (" %", " x"):
        if low.endswith(unit) and high.endswith(unit):
            low = low.removesuffix(unit)
    return f"{low} … {high}"
