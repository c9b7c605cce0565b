"""One self-contained HTML page of a sweep: the front, the evaluations, and the commands to build a design."""

from collections import Counter
from pathlib import Path
from typing import Any

from sim.host.files import csv_text, write_text
from sim.report.parts import Headline, chart, write_page
from sim.report.text import percent, signed_percent, whole
from sim.sweep import charts
from sim.sweep.marks import main_workloads
from sim.sweep.monotone import Slower, slower_though_larger
from sim.sweep.points import PointResult
from sim.sweep.results import SweepResults, compared, worst_prediction
from sim.sweep.rows import config_text, json_text, reports, rows, short_names, verilog_command

#: Warnings of one kind that are shown; all are counted.
_SHOWN = 12
#: Titles of the charts of cycles against another figure.
_FRONTS = {
    "dsp": "Cycles and DSP",
    "bram36": "Cycles and block RAM",
    "bytes": "Cycles and bytes",
    "microjoules": "Cycles and energy",
}


def write_sweep_page(results: SweepResults, page: Path, table: Path, document: Path) -> list[str]:
    """Write the page, the table (CSV) and the document (JSON) of a sweep, and return the warnings.

    Raises `InputError` when one of them cannot be written.
    """
    write_text(table, csv_text(rows(results)))
    write_text(document, json_text(results))
    slower = slower_though_larger(results)
    columns = [name for name in next(rows(results), {}) if "." not in name or name in short_names(results)]
    write_page(
        "sweep.html.j2",
        page,
        boards=list(dict.fromkeys(point.point.board for point in results.points)),
        read=results.spec.read,
        engines=", ".join(results.spec.engines),
        workloads=main_workloads(results),
        more=len(results.spec.workloads) - len(main_workloads(results)),
        points=len(results.points),
        tiles=_tiles(results, slower),
        fronts=[
            (title, chart(charts.pareto(results, name), f"front-{name}", image=True))
            for name, title in _FRONTS.items()
        ],
        parallel=chart(charts.parallel(results), "parallel", image=True),
        heats=[
            (objective, chart(charts.heat(results, objective), f"heat-{number}", image=True))
            for number, objective in enumerate(results.spec.objectives)
        ],
        roofline=chart(charts.roofline(results), "roofline", image=True),
        split=chart(charts.split(results), "split", image=True) if len(results.spec.engines) > 1 else "",
        objectives=list(results.spec.objectives),
        predictions=(
            chart(charts.predictions(results), "predictions", image=True) if worst_prediction(results) else ""
        ),
        slower=_slower_lines(results, slower)[:_SHOWN],
        failures=Counter(point.failure for point in results.points if point.failure).most_common(_SHOWN),
        columns=columns,
        rows=[[row.get(name) for name in columns] for row in rows(results)],
        designs={point.number: _design(point) for point in results.points},
        table=table.name,
        document=document.name,
    )
    if not slower:
        return []
    lines = _slower_lines(results, slower)
    return [f"larger designs are predicted slower than smaller ones, as {lines[0]}"]


def _tiles(results: SweepResults, slower: list[Slower]) -> list[Headline]:
    failed = sum(bool(point.failure) for point in results.points)
    known = Counter(point.fidelity for point in results.points if not point.failure)
    simulated = known["control"] + known["full"]
    tiles = [
        Headline(
            "Designs",
            whole(len(results.points)),
            f"{failed:,} of them left out" if failed else "none left out",
        ),
        Headline(
            "Front", whole(len(results.front)), "no other is better in one objective and as good in all"
        ),
        Headline(
            "Simulated", whole(simulated + known["synthesis"]), f"{known['synthesis']:,} of them synthesized"
        ),
    ]
    if worst := worst_prediction(results):
        count = sum(1 for point in results.points for _ in compared(point))
        note = f"of {count:,}: point {worst.number}, {worst.workload}"
        tiles.append(
            Headline("Worst prediction", signed_percent(worst.error), note, abs(worst.error) <= 0.02)
        )
    useful = [point for point in results.front if point.figures["utilization"] > 0]
    if useful:
        best = max(useful, key=lambda point: point.figures["utilization"])
        note = f"of the multiplier slots of point {best.number}, on the front"
        tiles.append(Headline("Most useful", percent(best.figures["utilization"], places=1), note))
    larger = {each.larger for each in slower}
    note = "larger than another, and predicted slower"
    return [*tiles, Headline("Larger and slower", whole(len(larger)), note, False if larger else None)]


def _slower_lines(results: SweepResults, slower: list[Slower]) -> list[str]:
    """Return a line for each step of a parameter and workload: how often it is slower, and the worst case."""
    steps: dict[tuple[Any, ...], list[Slower]] = {}
    for each in slower:
        steps.setdefault((each.parameter, each.values, each.workload), []).append(each)
    names, lines = short_names(results), []
    for (parameter, values, workload), found in steps.items():
        worst, count = found[0], f"{len(found):,} designs" if len(found) > 1 else "1 design"
        cycles = f"{worst.cycles:,.0f} and {worst.larger_cycles:,.0f} cycles"
        lines.append(
            f"{names[parameter]} {values[0]} to {values[1]}, {workload}: {count}, up to {worst.excess:+.2%} "
            f"(points {worst.smaller} and {worst.larger}, {cycles})"
        )
    return lines


def _design(point: PointResult) -> dict[str, Any]:
    """Return the page's details of a point."""
    return {
        "configs": {engine: config_text(config) for engine, config in point.point.configs.items() if config},
        "commands": {
            engine: verilog_command(point, engine) for engine, config in point.point.configs.items() if config
        },
        "reports": {workload: dict(outcome.document) for workload, outcome in reports(point).items()},
        "compared": [f"{each.workload}: {each.words}" for each in compared(point)],
        "failures": [
            f"{outcome.fidelity} {outcome.complaint}" for outcome in point.outcomes if outcome.failure
        ],
    }
