"""``loomwork calibrate``: memory models against published measurements, by traffic generators in RTL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from sim.calibration import host, shuhai, vitis, xbtest
from sim.calibration.experiment import run_experiments
from sim.calibration.point import TOLERANCE, Measured, Point
from sim.host.console import console, print_table
from sim.host.files import write_text

#: Where the figures are left.
REPORT = Path("build") / "calibration.json"


def all_points() -> list[Point]:
    """Give every calibration point, those that must hold first."""
    found = [*shuhai.points(), *vitis.points(), *xbtest.points(), *host.points()]
    must = [point for point in found if not point.held_out]
    return sorted(must, key=lambda point: float(point.key.rstrip("abc"))) + [p for p in found if p.held_out]


def measure(points: Iterable[Point]) -> list[Measured]:
    """Run the experiments of ``points`` in RTL and give the figures.

    Raises
    ------
    SimulationError
        When a generator hangs or a rule of AXI is broken.
    ToolError
        When the bench cannot be built.
    """
    points = list(points)
    outcomes = run_experiments(
        {f"{point.key}/{name}": e for point in points for name, e in point.experiments.items()}
    )
    return [
        Measured(
            point=point,
            value=point.measure({name: outcomes[f"{point.key}/{name}"] for name in point.experiments}),
        )
        for point in points
    ]


def calibrate(report: Path = REPORT) -> bool:
    """Measure every point, print the tables, write ``report``, and tell whether all that must hold do.

    Points outside the tolerance among those held out are printed as they are and do not count.
    """
    measured = measure(all_points())
    must = [m for m in measured if not m.point.held_out]
    held_out = [m for m in measured if m.point.held_out]
    _print(f"Calibration points: all must be within {TOLERANCE:.0%}", must)
    _print("Further published figures, not required to hold", held_out)
    failed = [m.point.key for m in must if not m.within]
    close = sum(m.within for m in held_out)
    verdict = "all within" if not failed else f"OUTSIDE: {', '.join(failed)};"
    console().print(
        f"{len(must)} points: {verdict} {TOLERANCE:.0%}. "
        f"Held out: {close} of {len(held_out)} within {TOLERANCE:.0%}. Figures: {report}"
    )
    _write(report, measured)
    return not failed


def _print(title: str, measured: Sequence[Measured]) -> None:
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
                "; ".join(part for part in (m.point.source, m.point.note) if part),
            )
        )
    print_table(title, ("#", "pattern", "published", "model", "unit", "deviation", "", "source"), rows)


def _write(report: Path, measured: Sequence[Measured]) -> None:
    entries = [
        {
            "key": m.point.key,
            "title": m.point.title,
            "unit": m.point.unit,
            "published": m.point.published,
            "measured": m.value,
            "deviation": m.deviation,
            "at_least": m.point.at_least,
            "held_out": m.point.held_out,
            "within": m.within,
            "source": m.point.source,
        }
        for m in measured
    ]
    report.parent.mkdir(parents=True, exist_ok=True)
    write_text(report, json.dumps({"tolerance": TOLERANCE, "points": entries}, indent=1) + "\n")
