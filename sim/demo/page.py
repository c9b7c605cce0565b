"""The page a demo ends in: what every engine was given, what came of it, and where all of it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hw.board import Board
from sim.host.files import write_text
from sim.report import charts
from sim.report.figures import FAILED, SUMMARY, labels, lines
from sim.report.parts import Tile, environment
from sim.report.report import Report


@dataclass(frozen=True, kw_only=True)
class Made:
    """A file of the demo: its path from the index, and what it shows."""

    path: str
    title: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one engine showed.

    Members
    -------
    engine
    title
        What it was given.
    lines
        What its demo says of the outcome.
    reports
        One a launch.
    made
        Files, the first one first.
    """

    engine: str
    title: str
    lines: tuple[str, ...]
    reports: tuple[Report, ...]
    made: tuple[Made, ...]

    @property
    def tile(self) -> Tile:
        """How many launches were exact."""
        exact = sum(report.bit_exact for report in self.reports)
        return Tile(
            label=f"{self.engine}: RTL equals golden model",
            figure=f"{exact} of {len(self.reports)}",
            note="runs, bit for bit",
            good=exact == len(self.reports),
        )


def render_index(parts: Sequence[Part], board: Board, path: Path) -> None:
    """Write the page; its links are relative, so that the folder can be moved.

    Raises
    ------
    InputError
        When the path cannot be written.
    """
    page = (
        environment()
        .get_template("demo_page.html.j2")
        .render(
            board=board.title,
            font=charts.FONT,
            failed=FAILED,
            tiles=[part.tile for part in parts],
            parts=[(part, labels(part.reports), list(lines(part.reports, SUMMARY))) for part in parts],
        )
    )
    write_text(path, page)
