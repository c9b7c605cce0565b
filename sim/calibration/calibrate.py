"""``loomwork calibrate``: memory models against published measurements, by traffic generators in RTL."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from sim.calibration.experiment import run_experiments
from sim.calibration.point import TOLERANCE, CalibrationPoint, MeasuredPoint, all_points
from sim.host.console import console, print_table
from sim.host.files import write_text

#: File of the figures.
REPORT = Path("build") / "calibration.json"


def measure(points: Iterable[CalibrationPoint]) -> list[MeasuredPoint]:
    """Run the experiments of ``points`` in RTL and return the figures.

    Raises `SimulationError` when a generator hangs or a rule of AXI is broken. Raises `ToolError` when the
    bench cannot be built.
    """
    points = list(points)
    outcomes = run_experiments(
        {f"{point.key}/{name}": e for point in points for name, e in point.experiments.items()}
    )
    return [
        MeasuredPoint(
            point=point,
            value=point.value({name: outcomes[f"{point.key}/{name}"] for name in point.experiments}),
        )
        for point in points
    ]


def calibrate(report: Path = REPORT) -> bool:
    """Measure every point, print the tables, write ``report``; return whether all required points hold.

    Held-out points may be outside the tolerance.
    """
    measured = measure(all_points())
    must = [m for m in measured if not m.point.held_out]
    held_out = [m for m in measured if m.point.held_out]
    _print(f"Calibration points: all must be within {TOLERANCE:.0%}", must)
    _print("Further figures, not required to hold", held_out)
    failed = [m.point.key for m in must if not m.within]
    close = Counter(m.point.kind for m in held_out if m.within)
    further = Counter(m.point.kind for m in held_out)
    counts = ", ".join(f"{close[kind]} of {count} {kind}" for kind, count in further.most_common())
    verdict = "all within" if not failed else f"OUTSIDE: {', '.join(failed)};"
    console().print(
        f"{len(must)} points: {verdict} {TOLERANCE:.0%}. "
        f"Further figures within {TOLERANCE:.0%}: {counts}. Figures: {report}"
    )
    _write(report, measured)
    return not failed


def _print(title: str, measured: Sequence[MeasuredPoint]) -> None:
    rows = []
    for m in measured:
        bound = ">= " if m.point.at_least else ""
        rows.append(
            (
                m.point.key,
                m.point.title,
                f"{bound}{m.point.published:.4g}",
                f"{m.value:.4g}",
                m.point.unit,
                f"{m.deviation:+.1%}",
                "" if m.within else "outside",
                m.point.kind,
                "; ".join(part for part in (m.point.source, m.point.note) if part),
            )
        )
    print_table(
        title, ("#", "pattern", "published", "model", "unit", "deviation", "", "figure", "source"), rows
    )


def _write(report: Path, measured: Sequence[MeasuredPoint]) -> None:
    shown = ("key", "title", "unit", "published", "origin", "at_least", "held_out", "source")
    entries = [
        {name: getattr(m.point, name) for name in shown}
        | {"measured": m.value, "deviation": m.deviation, "within": m.within}
        for m in measured
    ]
    write_text(report, json.dumps({"tolerance": TOLERANCE, "points": entries}, indent=1) + "\n")
