"""One self-contained HTML page of any number of reports: no file beside it, nothing fetched."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hw.errors import InputError
from sim.report import charts
from sim.report.board_share import Share, largest_share, resource_lines, share_of_board
from sim.report.figures import MEASURED, ORIGIN, TABLE, labels, lines, multiplies
from sim.report.parts import Headline, chart, exact_tile, write_page
from sim.report.report import Report
from sim.report.schema import glossary
from sim.report.text import percent, scaled, signed_percent, times, whole


def render(reports: Sequence[Report], path: Path) -> None:
    """Write a page that shows ``reports`` side by side.

    Raises `InputError` when there is no report, or the path cannot be written.
    """
    if not reports:
        raise InputError("reports", 0, "at least one")
    runs = list(zip(labels(reports), reports, strict=True))
    origin = list(lines(reports, ORIGIN))
    shares = [share_of_board(report) for report in reports]
    sources = {report.measured_on for report in reports}
    write_page(
        "report.html.j2",
        path,
        runs=[label for label, _ in runs],
        measured=" and ".join(words for source, words in MEASURED.items() if source in sources),
        engines=", ".join(dict.fromkeys(report.engine for report in reports)),
        boards=", ".join(dict.fromkeys(report.board for report in reports)),
        tiles=_tiles(reports) + _board_tiles(shares),
        resources=resource_lines(shares) if any(shares) else (),
        figures=[(title, list(lines(reports, rows))) for title, rows in TABLE.items()],
        common=[line for line in origin if len(set(line.cells)) == 1],
        differing=[line for line in origin if len(set(line.cells)) > 1],
        glossary=glossary(),
        cycles=chart(charts.cycle_breakdown(runs), "cycles"),
        roofline=chart(charts.roofline(runs), "roofline") if any(map(multiplies, reports)) else "",
        prediction=chart(charts.predicted_cycles(runs), "prediction"),
        traffic=chart(charts.channel_traffic(runs), "traffic"),
        energy=chart(charts.energy_breakdown(runs), "energy") if any(r.energy for r in reports) else "",
    )


def _tiles(reports: Sequence[Report]) -> list[Headline]:
    def over_runs(
        figure: Callable[[Report], float], show: Callable[[Any], str], runs: Sequence[Report] = reports
    ) -> str:
        return _range([figure(report) for report in runs], show)

    binding = " and ".join(sorted({report.roofline.bound_by for report in reports}))
    tenths, hundredths = partial(percent, places=1), partial(times, places=2)
    multiplying = [report for report in reports if multiplies(report)]
    counting = [report for report in reports if report.traffic.useful_over_compulsory_ratio is not None]
    tiles = [
        exact_tile(report.bit_exact for report in reports),
        Headline(
            "Cycles from start to done",
            over_runs(lambda report: report.cycles.cycles_total, whole),
            over_runs(lambda report: report.cycles.kernel_microseconds, lambda time: f"{time:,.1f} µs"),
        ),
        Headline(
            "Distance to the roofline",
            over_runs(lambda report: report.roofline.cycles_over_bound_ratio, hundredths),
            f"the {binding} bound",
        ),
        Headline(
            "Analytic prediction",
            over_runs(lambda report: report.prediction.predicted_cycles_error_ratio, signed_percent),
            _predicted(reports),
        ),
    ]
    if counting:
        moved = over_runs(
            lambda report: report.traffic.useful_over_compulsory_ratio or 0.0, hundredths, counting
        )
        tiles.insert(3, Headline("Bytes moved", moved, f"the compulsory bytes, {_kept(reports)}"))
    if multiplying:
        useful = over_runs(lambda report: report.work.mac_utilization_ratio, tenths, multiplying)
        speed = over_runs(lambda report: report.work.macs_per_second, scaled, multiplying)
        tiles.insert(2, Headline("Multiplier slots useful", useful, f"{speed} useful MACs a second"))
    return tiles


def _board_tiles(shares: Sequence[Share | None]) -> list[Headline]:
    found = [largest_share(share) for share in shares if share is not None]
    if not found:
        return []
    share, name = max(found)
    return [Headline("Of the board", percent(share, places=1), f"of its {name}, the most, estimated")]


def _predicted(reports: Sequence[Report]) -> str:
    """Return the note on the prediction's error: its basis, and whether it is a lower bound."""
    bounds = [report.prediction.predicted_lower_bound for report in reports]
    if not any(bounds):
        return "off the measured cycles"
    which = "a lower bound" if all(bounds) else f"{sum(bounds)} of {len(bounds)} are lower bounds"
    return f"off the measured cycles; {which}, as values of the inputs add to it"


def _kept(reports: Sequence[Report]) -> str:
    """Say whether the engines moved the bytes that were predicted."""
    off = sum(
        abs(report.prediction.predicted_read_error_bytes) + abs(report.prediction.predicted_write_error_bytes)
        for report in reports
    )
    return f"{whole(off)} off the prediction" if off else "as predicted"


def _range(values: Sequence[Any], show: Callable[[Any], str]) -> str:
    low, high = show(min(values)), show(max(values))
    if low == high:
        return low
    for unit in (" %", " x", " µs"):
        if low.endswith(unit) and high.endswith(unit):
            low = low.removesuffix(unit)
    return f"{low} … {high}"
